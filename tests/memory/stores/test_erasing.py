"""Erasing what lies under a namespace."""

import hypothesis.strategies as st
from hypothesis import given
from langgraph.store.memory import InMemoryStore

from langgraft._core.effects import adrive, drive
from langgraft.memory.stores.programs import PAGE, erase

LABELS = st.lists(st.sampled_from(["a", "a1", "b"]), min_size=1, max_size=3).map(tuple)
ADDRESSES = st.sets(st.tuples(LABELS, st.sampled_from(["k", "l"])), max_size=12)


@given(addresses=ADDRESSES, prefix=LABELS)
async def test_erase_when_asked_then_removes_what_lies_inside_and_nothing_else(
    addresses: set[tuple[tuple[str, ...], str]], prefix: tuple[str, ...]
) -> None:
    """Every record in the namespace or below goes; all others stay."""
    stores = [InMemoryStore(), InMemoryStore()]
    for store in stores:
        for namespace, key in addresses:
            store.put(namespace, key, {"n": 1})
    inside = {each for each in addresses if each[0][: len(prefix)] == prefix}
    assert drive(erase(prefix), stores[0]) == len(inside)
    assert await adrive(erase(prefix), stores[1]) == len(inside)
    for store in stores:
        left = {(item.namespace, item.key) for item in store.search((), limit=100)}
        assert left == addresses - inside


def test_erase_when_there_are_many_then_removes_all() -> None:
    """More records than a batch takes are removed in several."""
    store = InMemoryStore()
    for number in range(PAGE + 1):
        store.put(("a",), str(number), {"n": number})
    assert drive(erase(("a",)), store) == PAGE + 1
    assert store.search(("a",)) == []
