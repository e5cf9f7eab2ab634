"""All records are read, in whatever order and in however small pages a store lists them."""

from collections.abc import Iterable, Mapping
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, Op, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore
from paging_stores import Order, PagingStore, fill, shuffling

from langgraft._core.effects import adrive, drive
from langgraft._core.errors import InfrastructureError
from langgraft.memory.stores import programs
from langgraft.memory.stores.programs import FIRST_PAGE, Address, read_all

NAMESPACE = ("bank",)


def _keys(items: Mapping[Address, SearchItem]) -> list[str]:
    return sorted(item.key for item in items.values())


def test_reading_when_the_store_gives_one_page_is_one_page() -> None:
    """In the normal case the corpus is read once, and one search shows that this was all."""
    store = PagingStore(shuffling(1))
    keys = fill(store, NAMESPACE, 2500)
    assert _keys(drive(read_all(NAMESPACE), store)) == keys
    assert store.asked == [(FIRST_PAGE, 0), (FIRST_PAGE, 2500)]


def test_reading_when_a_page_is_full_asks_for_a_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Order among records cannot matter while all of them are in one page."""
    monkeypatch.setattr(programs, "FIRST_PAGE", 100)
    store = PagingStore(shuffling(2))
    keys = fill(store, NAMESPACE, 101)
    assert _keys(drive(read_all(NAMESPACE), store)) == keys
    assert [offset for _, offset in store.asked] == [0, 0, 101]


def test_reading_when_capped_pages_have_a_stable_order_is_one_pass() -> None:
    """As many distinct records as rows are all there are."""
    store = PagingStore(cap=100)
    keys = fill(store, NAMESPACE, 950)
    assert _keys(drive(read_all(NAMESPACE), store)) == keys
    assert [offset for _, offset in store.asked] == [*range(0, 1000, 100), 950]


@settings(deadline=None, max_examples=60)
@given(count=st.integers(0, 120), cap=st.integers(2, 50), seed=st.integers(0, 10**6))
def test_reading_when_a_capped_store_shuffles_is_complete(count: int, cap: int, seed: int) -> None:
    """However records jump between pages, none is missed and none is there twice."""
    store = PagingStore(shuffling(seed), cap=cap)
    keys = fill(store, NAMESPACE, count)
    assert _keys(drive(read_all(NAMESPACE), store)) == keys


async def test_reading_when_asynchronous_is_the_same() -> None:
    """One program serves both."""
    store = PagingStore(shuffling(3), cap=40)
    keys = fill(store, NAMESPACE, 250)
    assert _keys(await adrive(read_all(NAMESPACE), store)) == keys


def test_reading_when_the_prefix_is_empty_is_empty() -> None:
    """Nothing there is no error."""
    assert drive(read_all(("nowhere",)), InMemoryStore()) == {}


def _newest_first(items: list[SearchItem]) -> list[SearchItem]:
    return sorted(items, key=lambda item: item.updated_at, reverse=True)


def _oldest_first(items: list[SearchItem]) -> list[SearchItem]:
    return sorted(items, key=lambda item: item.updated_at)


@pytest.mark.parametrize("order", [list, _newest_first, _oldest_first])
def test_reading_when_the_store_is_written_after_every_page_misses_no_old_record(
    order: Order,
) -> None:
    """Writers need not wait: pages that overlap show that nothing slipped between them."""
    store = PagingStore(order, cap=20)
    keys = fill(store, NAMESPACE, 300)
    written: set[str] = set()

    def write() -> None:
        # A new record, a changed one and a deletion in turn, all over the list.
        turn = len(store.asked)
        key = f"new{turn}" if turn % 3 == 0 else keys[turn * 37 % 300]
        written.add(key)
        value = None if turn % 3 == 1 else {"text": "red"}
        store.put(NAMESPACE, key, value) if value else store.delete(NAMESPACE, key)

    store.after = write
    found = _keys(drive(read_all(NAMESPACE, undisturbed=lambda: False), store))
    assert set(keys) - written <= set(found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("seed", range(20))
def test_reading_when_never_complete_fails_and_names_the_namespace(seed: int) -> None:
    """An incomplete reading is an error, not a smaller corpus."""
    store = PagingStore(shuffling(seed), cap=40)
    fill(store, NAMESPACE, 60)
    with pytest.raises(InfrastructureError, match=r"namespace \('bank',\) in each of 32 readings"):
        drive(read_all(NAMESPACE, undisturbed=lambda: False), store)


def test_reading_when_records_come_and_go_between_passes_starts_anew() -> None:
    """What is gone does not stand for a record that was not seen yet."""
    store = PagingStore(shuffling(5), cap=20)
    keys = fill(store, NAMESPACE, 200)

    def write() -> None:
        if len(store.asked) == 15:
            for key in keys[:50]:
                store.delete(NAMESPACE, key)
                store.put(NAMESPACE, f"new-{key}", {})

    store.after = write
    found = _keys(drive(read_all(NAMESPACE), store))
    assert found == sorted([*keys[50:], *(f"new-{key}" for key in keys[:50])])


def test_reading_when_one_page_lists_a_record_twice_has_it_once() -> None:
    """One search saw everything at one time: nothing is missing."""
    store = PagingStore(lambda items: [*items, *items[:1]])
    keys = fill(store, NAMESPACE, 3)
    assert _keys(drive(read_all(NAMESPACE), store)) == keys


class _WithoutOffset(PagingStore):
    def _page(self, op):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return super()._page(op._replace(offset=0))


def test_reading_when_the_store_ignores_offset_fails_and_says_so() -> None:
    """A store that gives its first page again and again is not read for ever."""
    store: BaseStore = _WithoutOffset(cap=5)
    store.put(NAMESPACE, "k", {})
    with pytest.raises(InfrastructureError, match="a search must heed `offset`"):
        drive(read_all(NAMESPACE), store)


class TextualStore(InMemoryStore):
    """Takes a prefix for the beginning of a text, as database stores have done."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Search from the root, then compare texts."""
        return [self._search(op) if isinstance(op, SearchOp) else self._one(op) for op in ops]

    def _one(self, op: Op) -> Result:
        return super().batch([op])[0]

    def _search(self, op: SearchOp) -> Result:
        found = self._one(op._replace(namespace_prefix=(), limit=10**9, offset=0))
        start = ".".join(op.namespace_prefix)
        items = [
            item
            for item in cast("list[SearchItem]", found)
            if ".".join(item.namespace).startswith(start)
        ]
        return items[op.offset : op.offset + op.limit]


def test_reading_when_the_store_compares_namespaces_as_texts_keeps_whole_labels() -> None:
    """What belongs to `bank2` is not read as if it belonged to `bank`."""
    store = TextualStore()
    for namespace in (NAMESPACE, ("bank2",), (*NAMESPACE, "below"), ("banks", "x")):
        store.put(namespace, "/".join(namespace), {"text": "x"})
    assert _keys(drive(read_all(NAMESPACE), store)) == ["bank", "bank/below"]
