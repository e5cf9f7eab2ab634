"""One logic, two drivers."""

import sys
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from table_embeddings import TableEmbeddings

from langgraft._core.effects import adrive, drive
from langgraft.memory.embedders import EmbeddingRequest, make_embedder
from langgraft.memory.stores.programs import Program, embed, read_all

NAMESPACE = ("n",)


def _append(key: str, word: str) -> Program[int]:
    """Append a word to a record and return how many there are."""
    (item,) = yield [GetOp(NAMESPACE, key)]
    words = [*(cast("Item", item).value["words"] if item else []), word]
    yield [PutOp(NAMESPACE, key, {"words": words})]
    return len(words)


def _nothing() -> Program[str]:
    return "nothing to do"
    yield []


class _FailingStore(InMemoryStore):
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise LookupError("no such table")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        raise LookupError("no such table")


class _Stopping(InMemoryStore):
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise StopIteration


async def _synchronously(program: Program[object], store: BaseStore) -> object:
    return drive(program, store)


BOTH = pytest.mark.parametrize("run", [_synchronously, adrive], ids=["drive", "adrive"])
Run = Callable[[Program[object], BaseStore], Awaitable[object]]


@BOTH
async def test_drive_when_program_reads_and_writes_then_store_and_result_follow(run: Run) -> None:
    """Results are sent back in, and what the program returns comes out."""
    store = InMemoryStore()
    assert await run(_append("k", "a"), store) == 1
    assert await run(_append("k", "b"), store) == 2
    assert cast("Item", store.get(NAMESPACE, "k")).value == {"words": ["a", "b"]}


@BOTH
async def test_drive_when_program_yields_nothing_then_store_is_not_touched(run: Run) -> None:
    """A program without operations only returns."""
    assert await run(_nothing(), _FailingStore()) == "nothing to do"


@BOTH
async def test_drive_when_store_raises_then_error_arrives_at_the_yield(run: Run) -> None:
    """The program may handle what the store raised and go on; unhandled, it reaches the caller."""

    def careful() -> Program[str]:
        try:
            yield [GetOp(NAMESPACE, "k")]
        except LookupError as error:
            return f"handled {error}"
        return "unreachable"

    assert await run(careful(), _FailingStore()) == "handled no such table"
    with pytest.raises(LookupError, match="no such table"):
        await run(_append("k", "a"), _FailingStore())


def test_drive_when_store_raises_stop_iteration_then_it_is_not_taken_for_the_end() -> None:
    """A store's stray StopIteration is an error, not a result."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        drive(_append("k", "a"), _Stopping())


@pytest.mark.parametrize(
    ("run", "method"), [(_synchronously, "embed_query"), (adrive, "aembed_query")]
)
async def test_drive_when_vectors_are_asked_for_then_embedder_answers(
    run: Run, method: str
) -> None:
    """Each driver uses its own methods, and what the embedder raises arrives at the `embed`."""
    table = TableEmbeddings({"red": [1.0, 2.0]})
    request = EmbeddingRequest(make_embedder(table), ("red",), "query")

    def persistent() -> Program[list[list[float]]]:
        table.error = ConnectionError("down")
        try:
            yield from embed(request)
        except ConnectionError:
            table.error = None
        vectors: list[list[float]] = (yield from embed(request)).tolist()
        return vectors

    assert await run(persistent(), _FailingStore()) == [[1.0, 2.0]]
    assert table.calls == [(method, ["red"])] * 2


def test_drive_when_other_threads_write_to_memory_then_reading_goes_on() -> None:
    """A walk over LangGraph's `InMemoryStore` that a writer disturbed is made again."""
    store = InMemoryStore()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            writers = [pool.submit(_write, store, f"w{number}") for number in range(2)]
            while not all(writer.done() for writer in writers):
                drive(read_all(("bank",)), store)
    finally:
        sys.setswitchinterval(interval)
    assert len(drive(read_all(("bank",)), store)) == 4000


def _write(store: BaseStore, writer: str) -> None:
    for number in range(2000):
        store.put(("bank",), f"{writer}-{number}", {"text": "x"}, index=False)
