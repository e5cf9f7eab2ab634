"""A ranked store asks for vectors outside of its locks, asynchronously where it can, and once."""

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from dict_store import DictStore
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchItem
from langgraph.store.memory import InMemoryStore
from locked_store import LockedStore
from table_embeddings import TableEmbeddings
from typing_extensions import override

from langgraft.memory.embedders import HashingEmbeddings, make_embedder
from langgraft.memory.rankers import BM25, MMR, Dense, Hybrid, Ranker
from langgraft.memory.stores import RankedItem, RankedStore, ReadOnlyStore

NewStore = Callable[[], BaseStore]
NAMESPACE = ("bank",)


def _keys(items: list[SearchItem]) -> list[str]:
    return [item.key for item in items]


def _hashing() -> TableEmbeddings:
    return TableEmbeddings(HashingEmbeddings(64).embed_query)


def _filled(table: TableEmbeddings, texts: dict[str, str], store: BaseStore) -> RankedStore:
    ranked = RankedStore(store, Dense(make_embedder(table)), field="text")
    for key, text in texts.items():
        ranked.put(NAMESPACE, key, {"text": text})
    return ranked


TEXTS = {"a": "open the red door", "b": "go to the blue box", "c": "the red box", "d": ""}


async def test_search_when_asynchronous_then_is_as_synchronous_and_calls_no_sync_method(
    new_store: NewStore,
) -> None:
    """Either way the same hits with the same scores, by the embedder's own methods of that way."""
    for ranker in (Dense, lambda given: Hybrid((BM25(), Dense(given)))):
        sync, later = _hashing(), _hashing()
        store = new_store()
        first, second = (
            RankedStore(store, ranker(sync), field="text"),
            RankedStore(store, ranker(later), field="text"),
        )
        for key, text in TEXTS.items():
            await store.aput(NAMESPACE, key, {"text": text})
        for query in ("red box", "opened door", "red box"):
            found = first.search(NAMESPACE, query=query)
            assert found == (again := await second.asearch(NAMESPACE, query=query))
            assert [item.score for item in found] == [item.score for item in again]
        assert all(not name.startswith("a") for name, _ in sync.calls)
        assert all(name.startswith("a") for name, _ in later.calls)
        assert [texts for _, texts in sync.calls] == [texts for _, texts in later.calls]


def test_index_when_built_then_texts_are_asked_for_in_large_batches() -> None:
    """One request a thousand texts, doubles left out, and one for the query."""
    table = _hashing()
    ranked = RankedStore(InMemoryStore(), Dense(make_embedder(table)), field="text")
    puts = [PutOp(NAMESPACE, f"k{i}", {"text": f"red w{i // 2}"}) for i in range(5000)]
    ranked.batch(puts)
    ranked.search(NAMESPACE, query="w7")
    assert [(name, len(texts)) for name, texts in table.calls] == [
        ("embed_documents", 1000),
        ("embed_documents", 1000),
        ("embed_documents", 500),
        ("embed_query", 1),
    ]
    assert len(set(table.asked())) == 2500


def test_vectors_when_records_change_then_only_new_texts_are_asked_for(
    new_store: NewStore,
) -> None:
    """Rewriting a record with its text, moving it, or searching another prefix asks nothing."""
    table = _hashing()
    ranked = _filled(table, TEXTS, new_store())
    ranked.search(NAMESPACE, query="red")
    asked = len(table.calls)
    ranked.put(NAMESPACE, "a", {"text": TEXTS["a"], "n": 2})
    ranked.put(("bank", "below"), "z", {"text": TEXTS["c"]})
    ranked.search(NAMESPACE, query="red")
    ranked.search((), query="red")
    ranked.refresh()
    ranked.search(NAMESPACE, query="red")
    assert len(table.calls) == asked
    ranked.put(NAMESPACE, "b", {"text": "a green box"})
    ranked.delete(NAMESPACE, "c")
    assert _keys(ranked.search(NAMESPACE, query="green box"))[0] == "b"
    assert table.calls[asked:] == [
        ("embed_documents", ["a green box"]),
        ("embed_query", ["green box"]),
    ]


def test_embedder_when_called_then_no_lock_is_held(new_store: NewStore) -> None:
    """While an embedder works, other threads search the indexes that are ready."""
    table = _hashing()
    ranked = _filled(table, TEXTS, new_store())
    ranked.put(("other",), "x", {"text": "red"})
    ranked.search(("other",), query="red")
    inner, found = table.vector, []

    def vector(text: str) -> list[float]:
        if text not in {"red", "a query"}:
            with ThreadPoolExecutor(1) as pool:
                search = pool.submit(ranked.search, ("other",), query="red")
                found.append(_keys(search.result(timeout=60)))
        return inner(text)

    table.vector = vector  # type: ignore[method-assign]
    ranked.search(NAMESPACE, query="a query")
    ranked.put(NAMESPACE, "e", {"text": "entered later"})
    ranked.search(NAMESPACE, query="a query")
    assert found == [["x"]] * 4, "a blank text is not embedded"


class _GatedEmbeddings(TableEmbeddings):
    """Answers asynchronously once `gate` is open."""

    def __init__(self) -> None:
        super().__init__(HashingEmbeddings(64).embed_query)
        self.entered, self.gate = asyncio.Event(), asyncio.Event()

    @override
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.entered.set()
        await self.gate.wait()
        return await super().aembed_documents(texts)


async def test_search_when_embedder_is_slow_then_loop_goes_on_and_no_write_is_lost() -> None:
    """Other tasks read, write and delete while vectors are on their way; the result knows it."""
    table = _GatedEmbeddings()
    ranked = _filled(table, TEXTS, InMemoryStore())
    search = asyncio.create_task(ranked.asearch(NAMESPACE, query="red box"))
    await table.entered.wait()
    await ranked.aput(NAMESPACE, "c", {"text": "something else"})
    await ranked.aput(NAMESPACE, "e", {"text": "red box"})
    await ranked.adelete(NAMESPACE, "b")
    assert not search.done()
    table.gate.set()
    assert _keys(await search)[0] == "e"
    found = await ranked.asearch(NAMESPACE, query="red box")
    assert sorted(_keys(found)) == ["a", "c", "e"]
    assert found == RankedStore(ranked.store, ranked.ranker, field="text").search(
        NAMESPACE, query="red box"
    )


async def test_search_when_cancelled_while_embedding_then_next_one_works() -> None:
    """A cancelled search leaves neither a half-built index nor a lock."""
    table = _GatedEmbeddings()
    ranked = _filled(table, TEXTS, InMemoryStore())
    search = asyncio.create_task(ranked.asearch(NAMESPACE, query="red box"))
    await table.entered.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    table.gate.set()
    assert _keys(await ranked.asearch(NAMESPACE, query="the red box"))[0] == "c"


@pytest.mark.parametrize("built", [False, True], ids=["while building", "while following"])
def test_embedder_when_it_fails_then_everything_is_as_it_was_and_asked_again(
    new_store: NewStore, built: bool
) -> None:
    """The search raises the embedder's error; records are readable; the next search succeeds."""
    table = _hashing()
    ranked = _filled(table, TEXTS, new_store())
    if built:
        ranked.search(NAMESPACE, query="red")
        ranked.put(NAMESPACE, "e", {"text": "a new red door"})
    table.error = ConnectionError("no route")
    for _ in range(2):
        with pytest.raises(ConnectionError, match="no route"):
            ranked.search(NAMESPACE, query="red")
    assert ranked.get(NAMESPACE, "a") is not None
    assert len(ranked.search(NAMESPACE)) == (5 if built else 4)
    ranked.put(NAMESPACE, "f", {"text": "door"})
    table.error = None
    fresh = RankedStore(ranked.store, Dense(HashingEmbeddings(64)), field="text")
    for query in ("red", "door"):
        expected = fresh.search(NAMESPACE, query=query)
        found = ranked.search(NAMESPACE, query=query)
        assert [(i.key, i.score) for i in found] == [(i.key, i.score) for i in expected]


def test_embedder_when_it_fails_late_then_earlier_batches_are_not_asked_for_again() -> None:
    """What was paid for is kept: after a failure in the third request two stay cached."""
    table = _hashing()
    ranked = RankedStore(InMemoryStore(), Dense(make_embedder(table)), field="text")
    ranked.batch([PutOp(NAMESPACE, f"k{i}", {"text": f"w{i}"}) for i in range(2500)])
    count = table._count

    def fail_third(call: object) -> None:
        table.error = ConnectionError() if len(table.calls) == 2 else None
        count(call)  # type: ignore[arg-type]

    table._count = fail_third  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        ranked.search(NAMESPACE, query="w3")
    assert _keys(ranked.search(NAMESPACE, query="w3", limit=1)) == ["k3"]
    sizes = [len(texts) for name, texts in table.calls if name == "embed_documents"]
    assert sizes == [1000, 1000, 500, 500]


_RANKERS: list[Ranker] = [Dense("hashing:64"), Hybrid(pool=20), MMR(Dense("hashing:64")), BM25()]


@settings(deadline=None)  # the first search of a ranker builds its index
@given(
    ranker=st.sampled_from(_RANKERS),
    every=st.sampled_from([1, 3, 20, 150, 1000]),
    limit=st.integers(1, 12),
    offset=st.integers(0, 8),
)
def test_search_when_filtered_then_is_the_whole_ranking_without_the_others(
    ranker: Ranker, every: int, limit: int, offset: int
) -> None:
    """However few records pass, each page is what filtering the full ranking gives."""
    ranked = _STORES.get(str(ranker)) or _STORES.setdefault(str(ranker), _numbered(ranker))
    full = ranked.search(NAMESPACE, query="red w7 box", limit=10_000)
    expected = [item for item in full if item.value["n"] % every == 0][offset : offset + limit]
    found = ranked.search(
        NAMESPACE, query="red w7 box", filter={f"every_{every}": True}, limit=limit, offset=offset
    )
    assert found == expected
    assert [item.score for item in found] == [item.score for item in expected]


_STORES: dict[str, RankedStore] = {}


def _numbered(ranker: Ranker, store: BaseStore | None = None) -> RankedStore:
    draw = random.Random(0)
    ranked = RankedStore(store or InMemoryStore(), ranker, field="text")
    for i in range(700):
        text = " ".join(draw.choices(["red", "box", "door", f"w{i % 50}"], k=4))
        value = {f"every_{every}": True for every in (1, 3, 20, 150, 1000) if i % every == 0}
        ranked.put(NAMESPACE, f"k{i}", {"text": text, "n": i, **value})
    return ranked


def test_search_when_few_records_pass_then_not_all_are_read() -> None:
    """A filter that one in twenty passes costs some hundred reads, not as many as there are."""
    store = DictStore()
    ranked = _numbered(Dense("hashing:64"), store)
    ranked.search(NAMESPACE, query="red")
    store.log.clear()
    assert len(ranked.search(NAMESPACE, query="red", filter={"every_20": True}, limit=5)) == 5
    read = [op.key for batch in store.log for op in batch if isinstance(op, GetOp)]
    assert len(read) < 350
    assert len(set(read)) == len(read)


def test_item_when_returned_then_says_what_its_score_is_made_of(new_store: NewStore) -> None:
    """A result is an ordinary one, equal and with the same `dict()`, that has parts besides."""
    ranked = RankedStore(new_store(), Hybrid((BM25(), Dense("hashing:64"))), field="text")
    ranked.put(NAMESPACE, "a", {"text": "red box"})
    (found,) = ranked.search(NAMESPACE, query="red box")
    assert isinstance(found, RankedItem)
    assert dict(found.parts) == {
        "bm25": pytest.approx(2 * np.log(1 + 0.5 / 1.5) / 2.5),
        "bm25_rank": 1,
        "dense": 1.0,
        "dense_rank": 1,
    }
    plain = SearchItem(
        found.namespace, found.key, found.value, found.created_at, found.updated_at, found.score
    )
    assert found == plain
    assert plain == found
    assert found.dict() == plain.dict()
    (single,) = RankedStore(ranked.store, BM25(), field="text").search(NAMESPACE, query="red box")
    assert isinstance(single, RankedItem)
    assert single.parts == {"bm25": single.score}


def test_search_when_bank_is_frozen_then_is_the_same(new_store: NewStore) -> None:
    """A read-only store ranks as the store it wraps."""
    store = new_store()
    ranked = _filled(_hashing(), TEXTS, store)
    frozen = RankedStore(ReadOnlyStore(store), Hybrid((BM25(), Dense("hashing:64"))), field="text")
    live = RankedStore(ranked.store, Hybrid((BM25(), Dense("hashing:64"))), field="text")
    assert frozen.search(NAMESPACE, query="red box") == live.search(NAMESPACE, query="red box")


def test_index_when_threads_and_tasks_mix_then_each_sees_its_own_writes() -> None:
    """Threads and tasks on one dense store find what they wrote last, and agree at the end."""
    ranked = RankedStore(LockedStore(), Dense(_hashing()), field="text")

    def work(worker: int) -> None:
        for i in range(15):
            ranked.put(NAMESPACE, f"{worker}-{i % 3}", {"text": f"x{worker}y{i}"})
            top = ranked.search(NAMESPACE, query=f"x{worker}y{i}", limit=1)
            assert _keys(top) == [f"{worker}-{i % 3}"]

    async def tasks() -> None:
        async def one(worker: int) -> None:
            for i in range(10):
                await ranked.aput(NAMESPACE, f"{worker}-{i % 3}", {"text": f"x{worker}y{i}"})
                top = await ranked.asearch(NAMESPACE, query=f"x{worker}y{i}", limit=1)
                assert _keys(top) == [f"{worker}-{i % 3}"]

        await asyncio.gather(*(one(100 + i) for i in range(6)))

    with ThreadPoolExecutor(5) as pool:
        futures = [pool.submit(work, i) for i in range(4)]
        futures.append(pool.submit(asyncio.run, tasks()))
        for future in futures:
            future.result(timeout=600)
    fresh = RankedStore(ranked.store, Dense("hashing:64"), field="text")
    found, expected = (
        [(item.key, item.score) for item in store.search((), query="x1y14", limit=100)]
        for store in (ranked, fresh)
    )
    assert found == expected
