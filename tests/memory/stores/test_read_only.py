"""A read-only store reads everything and writes nothing."""

import asyncio
from collections.abc import Callable

import pytest
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, Op, PutOp, SearchOp

from langgraft._core.errors import ReadOnlyStoreError
from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore, ReadOnlyStore

NewStore = Callable[[], BaseStore]


async def test_read_only_when_reading_then_answers_like_the_store(new_store: NewStore) -> None:
    """Gets, searches and namespace lists pass, synchronously and asynchronously."""
    store = new_store()
    store.put(("a", "b"), "k", {"text": "red"})
    ops: list[Op] = [GetOp(("a", "b"), "k"), SearchOp(("a",)), ListNamespacesOp()]
    expected = store.batch(ops)
    frozen = ReadOnlyStore(store)
    assert frozen.batch(iter(ops)) == expected
    assert await frozen.abatch(iter(ops)) == expected


@pytest.mark.parametrize("value", [{"text": "blue"}, None], ids=["put", "delete"])
async def test_read_only_when_a_batch_writes_then_nothing_reaches_the_store(
    dict_store: BaseStore, value: dict[str, str] | None
) -> None:
    """The error names namespace and key, and not even the reads of the batch are carried out."""
    dict_store.put(("a",), "k", {"text": "red"})
    frozen = ReadOnlyStore(dict_store)
    before = len(dict_store.log)  # type: ignore[attr-defined]
    ops: list[Op] = [GetOp(("a",), "k"), PutOp(("a",), "k", value)]
    with pytest.raises(ReadOnlyStoreError, match=r"'k' in namespace \('a',\)"):
        frozen.batch(ops)
    with pytest.raises(ReadOnlyStoreError, match="put" if value else "delete"):
        await frozen.abatch(ops)
    with pytest.raises(ReadOnlyStoreError):
        frozen.put(("a",), "other", {"text": "green"})
    with pytest.raises(ReadOnlyStoreError):
        await frozen.adelete(("a",), "k")
    assert len(dict_store.log) == before  # type: ignore[attr-defined]
    item = dict_store.get(("a",), "k")
    assert item is not None
    assert item.value == {"text": "red"}


def test_read_only_when_reading_then_times_to_live_stay(dict_store: BaseStore) -> None:
    """A read of frozen memory must not prolong a record's life."""
    frozen = ReadOnlyStore(dict_store)
    frozen.get(("a",), "k", refresh_ttl=True)
    frozen.search(("a",), refresh_ttl=True)
    ops = [op for batch in dict_store.log for op in batch]  # type: ignore[attr-defined]
    assert [op.refresh_ttl for op in ops] == [False, False]


def test_read_only_when_ranked_then_answers_like_the_writable_store(new_store: NewStore) -> None:
    """The frozen index gives the results of the changing one, and refuses writes just the same."""
    store = new_store()
    writable = RankedStore(store, BM25())
    for i in range(30):
        writable.put(("a",), f"k{i:02}", {"text": f"red {i % 4} key {'x ' * (i % 3)}"})
    frozen = RankedStore(ReadOnlyStore(store), BM25())
    for query in ("red 1", "key x", "3", "nothing"):
        expected = writable.search(("a",), query=query)
        assert frozen.search(("a",), query=query) == expected
        assert asyncio.run(frozen.asearch(("a",), query=query)) == expected
    with pytest.raises(ReadOnlyStoreError):
        frozen.put(("a",), "k00", {"text": "blue"})
    assert frozen.search(("a",), query="red 1") == writable.search(("a",), query="red 1")
