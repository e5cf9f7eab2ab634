"""Banks: one namespace each, whatever else the store holds, and one writer at a time."""

import asyncio
import threading
from collections.abc import Iterable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import Op, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, items, make_episode, make_item, texts
from paging_stores import PagingStore, shuffling

from langgraft._core.effects import drive
from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.bank import (
    RECORDS,
    WriterLock,
    apply_delta,
    as_if_applied,
    ranked_store,
    read_content,
    read_state,
    records_namespace,
)
from langgraft.memory.model import Add, Annotate, MemoryDelta, MemoryItem, Remove, SetState, fold
from langgraft.memory.providers import TrajectoryMemory
from langgraft.memory.rankers import BM25
from langgraft.memory.recall import item_of
from langgraft.memory.stores import programs
from langgraft.memory.stores.programs import Program

BANK = records_namespace(("test",))


class StingyStore(InMemoryStore):
    """Returns three records a search at most, as a store may."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Cap every search."""
        capped = [
            op._replace(limit=min(op.limit, 3)) if isinstance(op, SearchOp) else op for op in ops
        ]
        return super().batch(capped)


class RecordingStore(InMemoryStore):
    """Notes where each search begins."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets: list[int] = []

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Note, and do."""
        listed = list(ops)
        self.offsets += [op.offset for op in listed if isinstance(op, SearchOp)]
        return super().batch(listed)


def test_content_when_the_store_returns_short_pages_is_read_whole() -> None:
    """A cap on the length of a page loses nothing."""
    store = StingyStore()
    delta = MemoryDelta(tuple(Add(make_item(f"i{number}")) for number in range(10)))
    drive(apply_delta(BANK, delta), store)
    assert drive(read_content(BANK), store) == fold([delta])


def test_content_when_longer_than_a_page_is_read_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a store that orders by time could otherwise skip a record."""
    monkeypatch.setattr(programs, "FIRST_PAGE", 100)
    store = RecordingStore()
    delta = MemoryDelta(tuple(SetState(f"s{number}", number) for number in range(101)))
    drive(apply_delta(BANK, delta), store)
    assert drive(read_content(BANK), store) == fold([delta])
    assert store.offsets == [0, 0, 101]


@pytest.mark.parametrize("cap", [None, 40], ids=["no cap", "cap 40"])
def test_content_when_the_store_shuffles_ties_is_read_whole(cap: int | None) -> None:
    """A bank does not shrink because the store lists records written together in any order."""
    store = PagingStore(shuffling(1), cap=cap)
    delta = MemoryDelta(tuple(SetState(f"s{number}", number) for number in range(1200)))
    drive(apply_delta(BANK, delta), store)
    assert drive(read_content(BANK), store) == fold([delta])


def test_state_when_read_is_a_copy() -> None:
    """What a provider does to a value it read does not reach the store."""
    store = InMemoryStore()
    drive(apply_delta(BANK, MemoryDelta((SetState("seen", [1]),))), store)
    (seen,) = drive(read_state(BANK, ["seen"]), store)
    assert isinstance(seen, list)
    seen.append(2)
    drive(read_content(BANK), store).state["seen"].append(3)  # type: ignore[union-attr]
    assert drive(read_state(BANK, ["seen"]), store) == [[1]]


def test_delta_when_applied_to_a_store_does_what_the_fold_does() -> None:
    """Store and fold agree on adding, annotating, removing and erasing in one delta."""
    store = InMemoryStore()
    deltas = [
        MemoryDelta((Add(make_item("a")), Add(make_item("b")), SetState("n", [1]))),
        MemoryDelta((Annotate("a", {"votes": 2}), Annotate("b", {"votes": 1, "uses": 0}))),
        MemoryDelta((Remove("a", "edited"), Add(make_item("c")), Annotate("c", {"votes": 2}))),
        MemoryDelta((Annotate("b", {"votes": None, "uses": None}), SetState("n", None))),
    ]
    for number, delta in enumerate(deltas):
        drive(apply_delta(BANK, delta), store)
        folded = fold(deltas[: number + 1])
        assert drive(read_content(BANK), store).to_bytes() == folded.to_bytes()


def test_delta_when_one_change_does_not_fit_writes_nothing() -> None:
    """A delta is applied whole or not at all."""
    store = InMemoryStore()
    delta = MemoryDelta((Add(make_item("a")), SetState("n", 1), Remove("x", "")))
    with pytest.raises(InputError, match="item 'x' is removed"):
        drive(apply_delta(BANK, delta), store)
    assert store.search(()) == []


@settings(max_examples=60, deadline=None)
@given(
    held=st.lists(items(), max_size=4, unique_by=lambda item: item.id),
    added=st.lists(items(), max_size=3, unique_by=lambda item: item.id),
    gone=st.lists(st.integers(0, 3), max_size=2, unique=True),
    noted=st.integers(0, 3),
    query=texts,
)
def test_bank_when_foreseen_is_what_it_will_be(
    held: list[MemoryItem],
    added: list[MemoryItem],
    gone: list[int],
    noted: int,
    query: str,
) -> None:
    """Whatever is read before a delta is written is what is read after it: content and rankings."""
    store = InMemoryStore()
    drive(
        apply_delta(BANK, MemoryDelta((*map(Add, held), SetState("s", 1), SetState("t", 1)))), store
    )
    left = [item for n, item in enumerate(held) if n not in gone]
    delta = MemoryDelta(
        (
            *(Remove(held[n].id, "gone") for n in gone if n < len(held)),
            *(Add(item) for item in added if item.id not in {each.id for each in left}),
            *(Annotate(item.id, {"votes": 1}) for item in left[noted:]),
            SetState("s", 2),
            SetState("t", None),
        )
    )

    def look() -> Program[Any]:
        content = yield from read_content(BANK)
        state = yield from read_state(BANK, ["s", "t"])
        filters = [None, {"item.success": True}, {"item.source_domain": {"$ne": "a"}}]
        found = []
        for where in filters if query.strip() else []:
            (hits,) = yield [SearchOp(BANK, filter=where, query=query, limit=3)]
            found.append([(item_of(hit), hit.score) for hit in cast("list[SearchItem]", hits)])
        return content.to_bytes(), state, found

    ranked = ranked_store(store, BM25())
    before = drive(read_content(BANK), store).to_bytes()
    seen = drive(as_if_applied(BANK, delta, look(), BM25()), ranked)
    assert drive(read_content(BANK), store).to_bytes() == before
    drive(apply_delta(BANK, delta), ranked)
    assert drive(look(), ranked) == seen


def test_banks_when_one_lies_below_another_do_not_see_each_other() -> None:
    """Neither content nor what is recalled leaks between namespaces."""
    store = InMemoryStore()
    above = TrajectoryMemory(store, namespace=("agents",))
    below = TrajectoryMemory(store, namespace=("agents", "ada"))
    store.put(("agents",), "note", {"key": "open the red door"})
    store.put(("agents", "ada"), "note", {"key": "open the red door"})
    above.file(make_episode("e-above"))
    alone = above.provide("open the red door", asking())
    below.file(make_episode("e-below"))
    below.file(make_episode("e-below-too"))
    assert list(above.content().items) == ["e-above/trajectory"]
    assert len(below.content().items) == 2
    with_neighbor = TrajectoryMemory(store, namespace=("agents",))
    assert with_neighbor.provide("open the red door", asking()) == alone


@pytest.mark.parametrize(
    "namespace",
    [(), ("a", ""), ("a.b",), "ab", ("a", 5), ("langgraph", "a"), ("a", RECORDS), (RECORDS + "2",)],
)
def test_namespace_when_impossible_is_refused(namespace: tuple[str, ...]) -> None:
    """What LangGraph's own `put` refuses, and our reserved label, are refused at once."""
    with pytest.raises(SettingsError, match="namespace"):
        TrajectoryMemory(InMemoryStore(), namespace=namespace)


def test_content_when_foreign_records_are_in_its_place_is_refused() -> None:
    """Nobody else writes where a bank's records are."""
    store = InMemoryStore()
    store.put(BANK, "note", {"text": "hello"})
    with pytest.raises(InputError, match="'note', which is no bank's record"):
        drive(read_content(BANK), store)


async def test_lock_when_held_by_a_task_refuses_to_block_the_event_loop() -> None:
    """A wait that could never end is an error that says what to do."""
    lock = WriterLock()
    async with lock.aheld():
        with pytest.raises(RuntimeError, match="use the async method"), lock.held():
            pass
    with lock.held():
        pass


async def test_lock_when_held_by_a_thread_lets_tasks_wait() -> None:
    """Threads and tasks share one lock."""
    lock, entered, leave = WriterLock(), threading.Event(), threading.Event()
    order: list[str] = []

    def hold() -> None:
        with lock.held():
            entered.set()
            leave.wait(10)
            order.append("thread")

    async def wait() -> None:
        async with lock.aheld():
            order.append("task")

    thread = threading.Thread(target=hold)
    thread.start()
    await asyncio.to_thread(entered.wait, 10)
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    leave.set()
    await waiting
    thread.join()
    assert order == ["thread", "task"]


def test_lock_when_the_holder_fails_is_free_again() -> None:
    """An error inside does not lock the bank for good."""
    lock = WriterLock()
    with pytest.raises(KeyError), lock.held():
        raise KeyError
    with lock.held():
        pass


def test_namespace_of_a_bank_when_others_search_it_shows_them_nothing_of_the_bank() -> None:
    """An application's own tools may keep notes under the same prefix: neither sees the other's."""
    store = InMemoryStore()
    memory = TrajectoryMemory(store, namespace=("users", "ada"))
    store.put(("users", "ada"), "note", {"content": "walk the dog"})
    memory.file(make_episode("e"))
    assert [item.key for item in store.search(("users",))] == ["note"]
    assert [item.key for item in store.search(("users", "ada"))] == ["note"]
    assert store.list_namespaces(prefix=("users",)) == [("users", "ada")]
    assert len(memory.content().items) == 1
    assert len(TrajectoryMemory(store, namespace=("users",)).content().items) == 0
