"""An index follows every write made through its store, from any thread or task."""

import asyncio
import random
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore
from locked_store import LockedStore

from langgraft._core.errors import InputError
from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore

NewStore = Callable[[], BaseStore]
NAMESPACE = ("bank",)


def _keys(items: list[SearchItem]) -> list[str]:
    return [item.key for item in items]


def _ranking(store: RankedStore, query: str) -> list[tuple[str, float | None]]:
    return [(item.key, item.score) for item in store.search((), query=query, limit=1000)]


def _ops(store: BaseStore, kind: type) -> list[Op]:
    log: list[list[Op]] = store.log  # type: ignore[attr-defined]
    return [op for batch in log for op in batch if isinstance(op, kind)]


def test_index_when_built_then_only_written_records_are_read_again(dict_store: BaseStore) -> None:
    """One build a prefix; later searches fetch what changed and what they return."""
    ranked = RankedStore(dict_store, BM25(), field="text", heed_index=False)
    for i in range(20):
        ranked.put(NAMESPACE, f"k{i}", {"text": f"red w{i}"})
    ranked.search(NAMESPACE, query="w3")
    pages = len(_ops(dict_store, SearchOp))
    dict_store.log.clear()  # type: ignore[attr-defined]
    ranked.put(NAMESPACE, "k4", {"text": "blue w3"})
    assert _keys(ranked.search(NAMESPACE, query="w3")) == ["k3", "k4"]
    assert pages == 4, "three pages of at most 7, and an empty one"
    assert _ops(dict_store, SearchOp) == []
    fetched = [cast("GetOp", op).key for op in _ops(dict_store, GetOp)]
    assert fetched == ["k4", "k3", "k4"]


def test_index_when_records_change_past_it_then_refresh_finds_them(new_store: NewStore) -> None:
    """What was written to the wrapped store itself shows after `refresh`; what is gone, at once."""
    ranked = RankedStore(new_store(), BM25())
    ranked.put(NAMESPACE, "a", {"text": "red ball"})
    ranked.put(NAMESPACE, "b", {"text": "red box"})
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["a", "b"]
    ranked.store.delete(NAMESPACE, "a")
    ranked.store.put(NAMESPACE, "c", {"text": "red hat"})
    assert _keys(ranked.search(NAMESPACE, query="red", limit=1)) == ["b"]
    ranked.refresh()
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["b", "c"]


def test_index_when_a_record_loses_its_text_then_it_is_no_document(new_store: NewStore) -> None:
    """Overwriting a document by a record without text takes it out of the statistics."""
    ranked = RankedStore(new_store(), BM25())
    for key in "ab":
        ranked.put(NAMESPACE, key, {"text": "red"})
    ranked.search(NAMESPACE, query="red")
    ranked.put(NAMESPACE, "a", {"done": True})
    fresh = RankedStore(ranked.store, BM25())
    assert _ranking(ranked, "red") == _ranking(fresh, "red")
    assert [key for key, _ in _ranking(ranked, "red")] == ["b"]


def test_index_when_more_prefixes_are_searched_than_kept_then_results_stay_right(
    new_store: NewStore,
) -> None:
    """Dropping the least recently searched index costs time, not correctness."""
    ranked = RankedStore(new_store(), BM25(), max_indexes=2)
    for i in range(60):
        user = (f"user{i % 4}",)
        ranked.put(user, f"k{i}", {"text": f"red w{i}"})
        assert _keys(ranked.search(user, query=f"w{i}")) == [f"k{i}"]
    assert _keys(ranked.search((), query="w59 w0")) == ["k0", "k59"]


def _work(ranked: RankedStore, worker: int, rounds: int) -> None:
    """Write, overwrite and delete records; each must be seen by one's own next search."""
    draw = random.Random(worker)
    for i in range(rounds):
        key, word = f"{worker}-{i % 5}", f"w{worker}x{i}"
        ranked.put(NAMESPACE, key, {"text": f"red {word}"})
        assert _keys(ranked.search(NAMESPACE, query=word)) == [key]
        if draw.random() < 0.3:
            ranked.delete(NAMESPACE, key)
            assert ranked.search(NAMESPACE, query=word) == []


async def _awork(ranked: RankedStore, worker: int, rounds: int) -> None:
    """Do as `_work`, giving way to other tasks."""
    draw = random.Random(worker)
    for i in range(rounds):
        key, word = f"{worker}-{i % 5}", f"w{worker}x{i}"
        await ranked.aput(NAMESPACE, key, {"text": f"red {word}"})
        assert _keys(await ranked.asearch(NAMESPACE, query=word)) == [key]
        if draw.random() < 0.3:
            await ranked.adelete(NAMESPACE, key)
            assert await ranked.asearch(NAMESPACE, query=word) == []


def test_index_when_threads_and_tasks_mix_then_no_update_is_lost() -> None:
    """Four threads and twenty tasks on one store each see their own writes, and agree at the end.

    The index is dropped now and then, so that builds and writes overlap too.
    """
    ranked = RankedStore(LockedStore(), BM25())

    async def tasks() -> None:
        await asyncio.gather(*(_awork(ranked, 100 + i, 15) for i in range(20)))

    def refresh() -> None:
        for _ in range(20):
            ranked.refresh()
            ranked.search((), query="red")

    with ThreadPoolExecutor(max_workers=6) as pool:
        futures = [pool.submit(_work, ranked, i, 40) for i in range(4)]
        futures += [pool.submit(asyncio.run, tasks()), pool.submit(refresh)]
        for future in futures:
            future.result(timeout=600)
    assert _ranking(ranked, "red w1x39") == _ranking(RankedStore(ranked.store, BM25()), "red w1x39")


async def test_search_when_a_write_is_under_way_then_does_not_wait_for_it() -> None:
    """A slow write blocks neither tasks nor threads, and is seen once it has ended."""
    store = _GatedStore()
    ranked = RankedStore(store, BM25())
    ranked.put(NAMESPACE, "a", {"text": "red"})
    ranked.search(NAMESPACE, query="red")
    write = asyncio.create_task(ranked.aput(NAMESPACE, "b", {"text": "red red"}))
    await store.entered.wait()
    assert _keys(await ranked.asearch(NAMESPACE, query="red")) == ["a"]
    assert _keys(await asyncio.to_thread(ranked.search, NAMESPACE, query="red")) == ["a"]
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["a"]
    store.gate.set()
    await write
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["b", "a"]


class _GatedStore(InMemoryStore):
    """Asynchronous writes wait for a gate; a cancelled one is carried out all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate = asyncio.Event(), asyncio.Event()
        self.late: list[asyncio.Task[None]] = []

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Hand writes to a task of the store's own, as batching stores do."""
        ops = list(ops)
        if not any(isinstance(op, PutOp) for op in ops):
            return self.batch(ops)
        self.entered.set()
        task = asyncio.create_task(self._later(ops))
        self.late.append(task)
        await asyncio.shield(task)
        return [None] * len(ops)

    async def _later(self, ops: list[Op]) -> None:
        await self.gate.wait()
        self.batch(ops)


async def test_search_when_a_cancelled_write_lands_later_then_it_is_seen() -> None:
    """Cancelling the caller does not hide what the store goes on to do."""
    store = _GatedStore()
    ranked = RankedStore(store, BM25())
    ranked.put(NAMESPACE, "a", {"text": "red"})
    ranked.search(NAMESPACE, query="red")
    write = asyncio.create_task(ranked.aput(NAMESPACE, "b", {"text": "red red"}))
    await store.entered.wait()
    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["a"]
    store.gate.set()
    await store.late[0]
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["b", "a"]


class _HalfFailingStore(InMemoryStore):
    """Carries out the first write of a batch and fails at the second."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as the base class, up to the second write."""
        ops = list(ops)
        if len([op for op in ops if isinstance(op, PutOp)]) < 2:
            return super().batch(ops)
        super().batch(ops[:1])
        raise OSError("disk full")


def test_search_when_a_write_failed_halfway_then_what_was_written_is_seen() -> None:
    """The error reaches the caller, and the index follows what the store holds."""
    ranked = RankedStore(_HalfFailingStore(), BM25())
    ranked.put(NAMESPACE, "a", {"text": "red"})
    ranked.search(NAMESPACE, query="red")
    with pytest.raises(OSError, match="disk full"):
        ranked.batch([PutOp(NAMESPACE, key, {"text": "red red"}) for key in "bc"])
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["b", "a"]


class _UnansweringStore(InMemoryStore):
    """Does not answer a write of `slow`, and carries it out when told; refuses one of `bad`."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[Op] = []

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as the base class, but for the two."""
        ops = list(ops)
        values = [op.value for op in ops if isinstance(op, PutOp)]
        if {"text": "red slow"} in values:
            self.late += ops
            raise TimeoutError("no answer")
        if {"text": "bad"} in values:
            raise InputError("bad is refused")
        return super().batch(ops)


def test_search_when_a_write_without_an_answer_lands_later_then_it_is_seen() -> None:
    """A server may go on with what its client gave up, and a refused write is no answer to it."""
    store = _UnansweringStore()
    ranked = RankedStore(store, BM25())
    ranked.put(NAMESPACE, "a", {"text": "red"})
    with pytest.raises(TimeoutError):
        ranked.put(NAMESPACE, "b", {"text": "red slow"})
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["a"]
    with pytest.raises(InputError):
        ranked.put(NAMESPACE, "b", {"text": "bad"})
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["a"]
    InMemoryStore.batch(store, store.late)
    assert _keys(ranked.search(NAMESPACE, query="red")) == ["a", "b"]


class _InterruptedStore(InMemoryStore):
    """Lets something happen right after the first page of a search."""

    def __init__(self, interrupt: Callable[[], None], *, cap: int) -> None:
        super().__init__()
        self.interrupt: Callable[[], None] | None = None
        self._armed, self._cap = interrupt, cap

    def arm(self) -> None:
        """Have the next page interrupted."""
        self.interrupt = self._armed

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Cap searches, then let it happen."""
        ops = [
            op._replace(limit=min(op.limit, self._cap)) if isinstance(op, SearchOp) else op
            for op in ops
        ]
        results = super().batch(ops)
        if self.interrupt and any(isinstance(op, SearchOp) for op in ops):
            interrupt, self.interrupt = self.interrupt, None
            interrupt()
        return results


@pytest.mark.parametrize("cap", [10, 10_000])
def test_build_when_a_record_is_deleted_between_pages_then_no_other_is_missed(cap: int) -> None:
    """A deletion that shifts records over the edge of a page does not lose them."""
    ranked: RankedStore
    store = _InterruptedStore(lambda: ranked.delete(NAMESPACE, "k0000"), cap=cap)
    ranked = RankedStore(store, BM25())
    for i in range(2500 if cap > 1000 else 45):
        ranked.put(NAMESPACE, f"k{i:04}", {"text": "red"})
    store.arm()
    assert ranked.search(NAMESPACE, query="red", limit=1)[0].key == "k0001"
    assert len(ranked.search(NAMESPACE, query="red", limit=5000)) == (2499 if cap > 1000 else 44)


def test_build_when_a_refresh_crosses_it_then_it_starts_again() -> None:
    """`refresh` during a build makes that build worthless, not wrong."""
    ranked: RankedStore

    def past_it() -> None:
        store.put(NAMESPACE, "new", {"text": "red new"})
        ranked.refresh()

    store = _InterruptedStore(past_it, cap=10)
    ranked = RankedStore(store, BM25())
    for i in range(9):
        ranked.put(NAMESPACE, f"k{i}", {"text": "red"})
    store.arm()
    assert _keys(ranked.search(NAMESPACE, query="new")) == ["new"]


async def test_build_when_many_tasks_search_at_once_then_records_are_listed_once() -> None:
    """Of tasks that find no index one builds it, and the others wait instead of doing the same."""
    store = _Listing()
    store.put(NAMESPACE, "a", {"text": "red"})
    ranked = RankedStore(store, BM25(), field="text")
    found = await asyncio.gather(*(ranked.asearch(NAMESPACE, query="red") for _ in range(50)))
    assert all(_keys(each) == ["a"] for each in found)
    assert store.listings <= 3  # the records, what puts said, and a look for an end of each


class _Listing(InMemoryStore):
    """Counts full listings."""

    def __init__(self) -> None:
        super().__init__()
        self.listings = 0

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        self.listings += any(isinstance(op, SearchOp) and not op.offset for op in listed)
        await asyncio.sleep(0)
        return await super().abatch(listed)
