"""LangGraph's `InMemoryStore`, shared by threads and tasks through whatever is put around it."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from table_embeddings import TableEmbeddings

from langgraft._core.effects import acarry_out, carry_out
from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore, ReadOnlyStore
from langgraft.memory.stores.named import GuardedStore

Wrap = Callable[[InMemoryStore], BaseStore]
WRAPS: dict[str, Wrap] = {
    "read only": ReadOnlyStore,
    "ranked": lambda store: RankedStore(store, BM25()),
    "guarded": lambda store: GuardedStore(store, (), name="memory"),
}
EVERYWHERE = pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
WRITTEN = 800


@contextmanager
def a_writer(store: BaseStore) -> Iterator[threading.Thread]:
    """Write new records and namespaces in another thread, which takes turns as often as can be."""

    def write() -> None:
        for number in range(WRITTEN):
            store.put(("bank", str(number % 7)), f"k{number}", {"text": "x"}, index=False)
            store.put(("other", str(number)), "k", {"text": "x"}, index=False)

    thread, interval = threading.Thread(target=write), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        yield thread
    finally:
        thread.join()
        sys.setswitchinterval(interval)


@EVERYWHERE
def test_reader_when_others_write_past_it_is_not_disturbed(wrap: Wrap) -> None:
    """An app's own nodes write to the store that memory is kept in."""
    store = InMemoryStore()
    view = wrap(store)
    with a_writer(store) as writer:
        while writer.is_alive():
            view.batch([SearchOp(("bank",), limit=10_000), GetOp(("new",), "k")])
    assert len(view.search(("bank",), limit=10_000)) == WRITTEN


@EVERYWHERE
async def test_task_when_threads_write_past_it_is_not_disturbed(wrap: Wrap) -> None:
    """The same in an event loop."""
    store = InMemoryStore()
    view = wrap(store)
    with a_writer(store) as writer:
        while writer.is_alive():
            await view.abatch([SearchOp(("bank",), limit=10_000), GetOp(("new",), "k")])
            await asyncio.sleep(0)
    assert len(await view.asearch(("bank",), limit=10_000)) == WRITTEN


@pytest.mark.parametrize("asynchronous", [False, True])
def test_batch_when_read_by_others_is_whole(*, asynchronous: bool) -> None:
    """Nobody of ours sees half of what another view of the store writes at once."""
    store = InMemoryStore()
    done = threading.Event()
    halves: list[int] = []

    def read() -> None:
        while not done.is_set():
            ops = [GetOp(("bank",), f"k{number}") for number in range(20)]
            found = asyncio.run(acarry_out(store, ops)) if asynchronous else carry_out(store, ops)
            seen = {item.value["n"] for item in found if item is not None}  # type: ignore[union-attr]
            halves.extend([len(seen)] if len(seen) > 1 else [])

    reader, interval = threading.Thread(target=read), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    reader.start()
    try:
        for n in range(600):
            carry_out(store, [PutOp(("bank",), f"k{key}", {"n": n}) for key in range(20)])
    finally:
        done.set()
        reader.join()
        sys.setswitchinterval(interval)
    assert halves == []


async def test_store_when_it_embeds_lets_others_in_meanwhile() -> None:
    """No lock is held while a model is asked."""
    asked, answered = asyncio.Event(), asyncio.Event()

    class Slow(TableEmbeddings):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            asked.set()
            await answered.wait()
            return [[1.0, 0.0] for _ in texts]

    store = InMemoryStore(index={"dims": 2, "embed": Slow({}), "fields": ["text"]})
    writing = asyncio.create_task(acarry_out(store, [PutOp(("bank",), "k", {"text": "red"})]))
    await asked.wait()
    assert await asyncio.to_thread(carry_out, store, [GetOp(("bank",), "k")]) == [None]
    answered.set()
    await writing
    assert carry_out(store, [GetOp(("bank",), "k")]) != [None]


def test_error_when_it_is_another_one_is_not_tried_again() -> None:
    """Only a walk that broke off is made again."""

    class Broken(InMemoryStore):
        calls = 0

        def batch(self, ops: object) -> list[object]:  # type: ignore[override]
            self.calls += 1
            raise RuntimeError("no such luck")

    store = Broken()
    with pytest.raises(RuntimeError, match="no such luck"):
        carry_out(store, [])
    assert store.calls == 1
