"""A search under a filter is the whole ranking without what does not pass, and reads little."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dict_store import DictStore
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, Op, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore
from locked_store import LockedStore

from langgraft.memory.rankers import BM25, MMR, Dense, Hybrid, Ranker, TermOverlap, base
from langgraft.memory.stores import (
    RankedItem,
    RankedStore,
    ReadOnlyStore,
)
from langgraft.memory.stores.filters import passes

NAMESPACE = ("bank",)
RANKERS: dict[str, Ranker] = {
    "overlap": TermOverlap(ties="newest"),
    "bm25": BM25(),
    "dense": Dense("hashing:16"),
    "hybrid": Hybrid((BM25(), Dense("hashing:16")), pool=3),
    "mmr": MMR(BM25(), candidates=3),
}
TEXTS = st.lists(st.sampled_from(["red", "blue", "1", "key"]), max_size=4).map(" ".join)
VALUES = st.sampled_from([None, 1, 2, "a", "b", ["a"], {"x": 1}, {"x": {"y": 2}}])
RECORDS = st.just({"n": 1}) | st.fixed_dictionaries(
    {"text": TEXTS, "n": VALUES}, optional={"m": VALUES}
)
CONDITIONS = VALUES | st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), VALUES, min_size=1, max_size=2
)
FILTERS = st.dictionaries(st.sampled_from(["n", "m", "n.x", "m.x.y"]), CONDITIONS, max_size=2)
WRITES = st.tuples(st.sampled_from("abcdefghijkl"), st.none() | RECORDS)
SEARCHES = st.tuples(TEXTS, FILTERS, st.integers(1, 5), st.integers(0, 2))
STEPS = st.lists(WRITES | WRITES | WRITES | SEARCHES, max_size=40)


@pytest.fixture(autouse=True)
def _search_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small corpora searched in both ways."""
    monkeypatch.setattr(base, "FEW", 3)


def _assert_is_the_ranking_without_the_others(
    ranked: RankedStore, query: str, passing: dict[str, Any], *, limit: int, offset: int
) -> None:
    fresh = RankedStore(ranked.store, ranked.ranker)
    query = query or "red"
    whole = fresh.search(NAMESPACE, query=query, limit=100)
    expected = [item for item in whole if passes(item.value, passing)]
    found = ranked.search(NAMESPACE, query=query, filter=passing, limit=limit, offset=offset)
    assert found == expected[offset : offset + limit]
    assert [item.score for item in found] == [
        item.score for item in expected[offset : offset + limit]
    ]
    if found and not offset and (tied := _tied(found[0])):
        assert tied == sum(item.score == expected[0].score for item in expected)


def _tied(item: SearchItem) -> int:
    assert isinstance(item, RankedItem)
    return item.tied


def _play(ranked: RankedStore, steps: list[Any]) -> None:
    for step in steps:
        if len(step) == 2:
            key, record = step
            if record is None:
                ranked.delete(NAMESPACE, key)
            else:
                ranked.put(NAMESPACE, key, record)
        else:
            query, passing, limit, offset = step
            _assert_is_the_ranking_without_the_others(
                ranked, query, passing, limit=limit, offset=offset
            )


@pytest.mark.parametrize("name", RANKERS)
@settings(deadline=None, max_examples=60)
@given(steps=STEPS)
def test_search_when_filtered_between_writes_then_is_the_ranking_without_the_others(
    name: str, steps: list[Any]
) -> None:
    """Whatever changes between searches, and whichever fields they name first."""
    _play(RankedStore(InMemoryStore(), RANKERS[name]), steps)


@pytest.mark.parametrize("name", RANKERS)
@settings(deadline=None, max_examples=20)
@given(before=STEPS, searches=st.lists(SEARCHES, max_size=5))
def test_search_when_filtered_over_frozen_contents_then_is_the_ranking_without_the_others(
    name: str, before: list[Any], searches: list[Any]
) -> None:
    """The index for frozen contents searches some of its documents as well."""
    store = InMemoryStore()
    _play(RankedStore(store, TermOverlap()), before)
    _play(RankedStore(ReadOnlyStore(store), RANKERS[name]), searches)


@pytest.mark.parametrize("name", RANKERS)
@settings(deadline=None, max_examples=10)
@given(before=STEPS, after=STEPS)
def test_search_when_filtered_with_a_directory_then_fields_are_read_again(
    name: str, before: list[Any], after: list[Any]
) -> None:
    """An index that was opened from its directory gets its fields from the store."""
    store = InMemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        for steps in (before, after):
            with RankedStore(store, RANKERS[name], directory=Path(folder)) as ranked:
                _play(ranked, steps)


def _many(store: BaseStore, ranker: Ranker, count: int = 600) -> RankedStore:
    """Every 200th record is rare."""
    ranked = RankedStore(store, ranker)
    for i in range(count):
        ranked.put(NAMESPACE, f"k{i:03}", {"text": f"red w{i}", "n": i, "rare": i % 200 == 7})
    return ranked


def _ops(store: DictStore, kind: type[Op]) -> int:
    return sum(isinstance(op, kind) for batch in store.log for op in batch)


@pytest.mark.parametrize("name", RANKERS)
def test_search_when_few_pass_then_only_what_is_returned_is_read(
    name: str, dict_store: DictStore
) -> None:
    """The store is not asked for records that the filter excludes, however many rank higher."""
    ranked = _many(dict_store, RANKERS[name])
    ranked.search(NAMESPACE, query="red", filter={"rare": True})
    for limit in (1, 2, 10):
        dict_store.log.clear()
        found = ranked.search(NAMESPACE, query="red", filter={"rare": True}, limit=limit)
        assert len(found) == min(limit, 3)
        assert (_ops(dict_store, GetOp), _ops(dict_store, SearchOp)) == (len(found), 0)


def test_search_when_half_pass_then_no_more_than_is_returned_is_read(
    dict_store: DictStore,
) -> None:
    """Where nearly all documents are ranked, those that cannot pass are left out all the same."""
    ranked = _many(dict_store, BM25())
    ranked.search(NAMESPACE, query="red", filter={"n": {"$gte": 300}})
    dict_store.log.clear()
    assert len(ranked.search(NAMESPACE, query="red", filter={"n": {"$gte": 300}})) == 10
    assert (_ops(dict_store, GetOp), _ops(dict_store, SearchOp)) == (10, 0)


def test_search_when_fields_are_known_then_records_were_read_once(dict_store: DictStore) -> None:
    """The reading an index is built from serves its first filter; a new key costs another one."""
    plain, filtered = _many(dict_store, BM25(), 40), RankedStore(dict_store, BM25())
    dict_store.log.clear()
    plain.search(NAMESPACE, query="red")
    once = _ops(dict_store, SearchOp)
    for count, passing in ((once, {"n": 3}), (0, {"n": 4}), (once, {"n": 4, "rare": False})):
        dict_store.log.clear()
        assert filtered.search(NAMESPACE, query="red", filter=passing)
        assert _ops(dict_store, SearchOp) == count


def test_search_when_a_field_is_not_json_then_records_tell(dict_store: DictStore) -> None:
    """A value that cannot be compared beforehand is found among the ranked records."""
    ranked = RankedStore(dict_store, BM25())
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 31)]
    for day in days:
        ranked.put(NAMESPACE, f"k{day.day:02}", {"text": "red", "day": day})
    for day in (days[20], days[0]):
        found = ranked.search(NAMESPACE, query="red", filter={"day": day})
        assert [item.value["day"] for item in found] == [day]
        assert _tied(found[0]) == 0, "29 others share the score and do not pass"


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("name", ["overlap", "bm25", "dense"])
def test_search_when_filtered_then_ties_are_those_that_pass(name: str, n: int) -> None:
    """Where few pass, the best of them says how many share its score; else nothing wrong."""
    ranked = RankedStore(InMemoryStore(), RANKERS[name])
    for i in range(15):
        ranked.put(NAMESPACE, f"k{i:02}", {"text": "red", "n": min(i % 5, 1) * 3 + 1})
    best = ranked.search(NAMESPACE, query="red", filter={"n": n}, limit=1)[0]
    assert _tied(best) == (3 if n == 1 else 0)


def test_search_when_values_changed_past_the_store_then_they_do_not_pass() -> None:
    """What no longer passes is not returned, and does not take the place of what does."""
    ranked = _many(InMemoryStore(), BM25())
    ranked.search(NAMESPACE, query="red", filter={"rare": True})
    ranked.store.put(NAMESPACE, "k007", {"text": "red w7", "rare": False})
    ranked.store.delete(NAMESPACE, "k207")
    found = ranked.search(NAMESPACE, query="red", filter={"rare": True}, limit=1)
    assert [item.key for item in found] == ["k407"]
    assert ranked.search(NAMESPACE, query="red", filter={"rare": True}, limit=3) == found


class _InterruptedStore(InMemoryStore):
    """Lets something happen once, right before or after a listing is made."""

    def __init__(self, *, before: bool = False) -> None:
        super().__init__()
        self.before = before
        self.interrupt: Callable[[], None] | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as the base class."""
        ops = list(ops)
        interrupt = None
        if any(isinstance(op, SearchOp) for op in ops):
            interrupt, self.interrupt = self.interrupt, None
        if interrupt and self.before:
            interrupt()
        results = super().batch(ops)
        if interrupt and not self.before:
            interrupt()
        return results


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("entered", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
def test_search_when_written_while_fields_are_read_then_the_newer_values_count(
    indexed: bool, entered: bool, before: bool
) -> None:
    """A reading never hides a write, entered in the index or not, that it has seen or not."""
    store = _InterruptedStore(before=before)
    ranked = RankedStore(store, BM25())
    for key, n in (("a", 1), ("b", 1), ("c", 2)):
        ranked.put(NAMESPACE, key, {"text": "red", "n": n})

    def write() -> None:
        ranked.put(NAMESPACE, "a", {"text": "red", "n": 2})
        ranked.delete(NAMESPACE, "b")
        ranked.put(NAMESPACE, "c", {"text": "red", "n": 1})
        ranked.put(NAMESPACE, "d", {"text": "red", "n": 1})
        if entered:
            ranked.search(NAMESPACE, query="red")

    if indexed:
        ranked.search(NAMESPACE, query="red")
    store.interrupt = write
    ranked.search(NAMESPACE, query="red", filter={"n": 1})
    for n, keys in ((1, "cd"), (2, "a")):
        found = ranked.search(NAMESPACE, query="red", filter={"n": n})
        assert "".join(item.key for item in found) == keys


@pytest.mark.parametrize("name", RANKERS)
def test_search_when_the_first_records_come_while_fields_are_read_then_the_next_finds_them(
    name: str,
) -> None:
    """Fields may know documents that the index, still empty, does not."""
    store = _InterruptedStore(before=True)
    ranked = RankedStore(store, RANKERS[name])
    assert ranked.search(NAMESPACE, query="red") == []
    store.interrupt = lambda: ranked.put(NAMESPACE, "a", {"text": "red", "n": 1})
    assert ranked.search(NAMESPACE, query="red", filter={"n": 1}) == []
    assert len(ranked.search(NAMESPACE, query="red", filter={"n": 1})) == 1


def test_search_when_a_refresh_crosses_the_reading_of_fields_then_the_next_starts_anew() -> None:
    """What was read for an index that is forgotten does no harm."""
    store = _InterruptedStore()
    ranked = _many(store, BM25(), 10)
    ranked.search(NAMESPACE, query="red")
    store.interrupt = ranked.refresh
    assert ranked.search(NAMESPACE, query="red", filter={"n": 3})
    store.put(NAMESPACE, "new", {"text": "red", "n": 3})
    ranked.refresh()
    assert len(ranked.search(NAMESPACE, query="red", filter={"n": 3})) == 2


def test_search_when_reading_fields_fails_then_the_next_search_reads_them() -> None:
    """An error of the store reaches the caller and leaves nothing half done."""
    store = _InterruptedStore()
    ranked = _many(store, BM25(), 10)
    ranked.search(NAMESPACE, query="red")

    def fail() -> None:
        raise OSError("gone")

    store.interrupt = fail
    with pytest.raises(OSError, match="gone"):
        ranked.search(NAMESPACE, query="red", filter={"n": 3})
    assert [item.key for item in ranked.search(NAMESPACE, query="red", filter={"n": 3})] == ["k003"]


def _work(ranked: RankedStore, worker: int) -> None:
    """Change a field; each must see its own change in its next search, whatever others do."""
    draw = random.Random(worker)
    for i in range(30):
        key = f"{worker}-{i % 3}"
        name = draw.choice(["m", "n", "o"])
        ranked.put(NAMESPACE, key, {"text": f"red w{i}", name: key})
        found = ranked.search(NAMESPACE, query="red", filter={name: key})
        assert [item.key for item in found] == [key]


async def _awork(ranked: RankedStore, worker: int) -> None:
    """Do as `_work`, giving way to other tasks."""
    for i in range(20):
        key, name = f"{worker}-{i % 3}", "mno"[i % 3]
        await ranked.aput(NAMESPACE, key, {"text": f"red w{i}", name: key})
        found = await ranked.asearch(NAMESPACE, query="red", filter={name: key})
        assert [item.key for item in found] == [key]


def test_search_when_threads_and_tasks_filter_then_each_sees_its_own_writes() -> None:
    """Fields are read while others write; the indexes are dropped now and then."""
    ranked = RankedStore(LockedStore(), BM25())

    async def tasks() -> None:
        await asyncio.gather(*(_awork(ranked, 100 + i) for i in range(10)))

    def refresh() -> None:
        for _ in range(20):
            ranked.refresh()
            ranked.search(NAMESPACE, query="red", filter={"o": "x"})

    with ThreadPoolExecutor(max_workers=5) as pool:
        futures = [pool.submit(_work, ranked, i) for i in range(3)]
        futures += [pool.submit(asyncio.run, tasks()), pool.submit(refresh)]
        for future in futures:
            future.result(timeout=600)
