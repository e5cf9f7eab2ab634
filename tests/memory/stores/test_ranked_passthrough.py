"""Whatever has no query goes to the wrapped store as it came."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
)
from langgraph.store.memory import InMemoryStore

from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore

_NAMESPACES = st.sampled_from([("a",), ("a", "b"), ("a", "b", "c"), ("d",)])
_KEYS = st.sampled_from("xyz")
_VALUES = st.none() | st.fixed_dictionaries({"text": st.sampled_from(["red", "blue"])})
_OPS: st.SearchStrategy[Op] = st.one_of(
    st.builds(PutOp, _NAMESPACES, _KEYS, _VALUES),
    st.builds(GetOp, _NAMESPACES, _KEYS),
    st.builds(
        SearchOp,
        st.sampled_from([(), ("a",), ("a", "b"), ("e",)]),
        st.none() | st.just({"text": "red"}) | st.just({"text": {"$ne": "red"}}),
        st.integers(0, 4),
        st.integers(0, 3),
        st.sampled_from([None, ""]),
    ),
    st.builds(
        ListNamespacesOp,
        st.none() | st.just((MatchCondition("prefix", ("a", "*")),)),
        st.none() | st.integers(1, 3),
        st.integers(0, 4),
        st.integers(0, 2),
    ),
)


def _plain(result: Result) -> object:
    """Drop the times, which are those of the clock."""
    if isinstance(result, list):
        return [_plain(entry) if hasattr(entry, "key") else entry for entry in result]  # type: ignore[arg-type]
    return None if result is None else (result.namespace, result.key, result.value)


@given(batches=st.lists(st.lists(_OPS, max_size=6), max_size=8))
def test_ranked_store_when_nothing_is_ranked_then_behaves_like_in_memory_store(
    batches: list[list[Op]],
) -> None:
    """Any batches of gets, puts, plain searches and namespace lists give the same results."""
    plain, ranked = InMemoryStore(), RankedStore(InMemoryStore(), BM25())
    for ops in batches:
        assert list(map(_plain, ranked.batch(ops))) == list(map(_plain, plain.batch(ops)))


def test_ranked_store_when_ops_have_no_query_then_the_store_gets_them_unchanged(
    dict_store: BaseStore,
) -> None:
    """Every field of every operation arrives: filters, limits, index, times to live, refreshing."""
    ranked = RankedStore(dict_store, BM25(), field="text", heed_index=False)
    ops: list[Op] = [
        GetOp(("a",), "k", refresh_ttl=False),
        PutOp(("a",), "k", {"text": "red"}, ["text"], 5.0),
        PutOp(("a",), "l", None),
        SearchOp(("a",), {"n": 1}, 3, 2, None, refresh_ttl=False),
        ListNamespacesOp((MatchCondition("suffix", ("a",)),), 2, 7, 1),
    ]
    ranked.batch(ops)
    assert dict_store.log == [ops]  # type: ignore[attr-defined]


def test_ranked_store_when_batch_is_empty_then_the_store_is_not_asked(
    dict_store: BaseStore,
) -> None:
    """No operations, no call."""
    assert RankedStore(dict_store, BM25()).batch([]) == []
    assert dict_store.log == []  # type: ignore[attr-defined]


class _ExpiringStore(InMemoryStore):
    """Supports times to live as far as recording which reads refresh them."""

    supports_ttl = True
    ttl_config: TTLConfig | None = {"refresh_on_read": False, "default_ttl": 60.0}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.refreshed: list[str] = []
        self.lives: list[float | None] = []

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Record, then do as the base class."""
        ops = list(ops)
        for op in ops:
            if isinstance(op, GetOp) and op.refresh_ttl:
                self.refreshed.append(op.key)
            elif isinstance(op, SearchOp):
                assert not op.refresh_ttl
            elif isinstance(op, PutOp):
                self.lives.append(op.ttl)
        return super().batch(ops)


def test_ranked_store_when_store_supports_ttl_then_so_does_it() -> None:
    """Default and given times to live reach the store."""
    ranked = RankedStore(_ExpiringStore(), BM25())
    ranked.put(("a",), "k", {"text": "red"})
    ranked.put(("a",), "l", {"text": "red"}, ttl=5)
    assert ranked.store.lives == [60.0, 5]  # type: ignore[attr-defined]


def test_ranked_store_when_searched_then_only_returned_records_are_refreshed() -> None:
    """A ranked search prolongs the life of its results if asked, not of what it looked at."""
    store = _ExpiringStore()
    ranked = RankedStore(store, BM25())
    for i in range(6):
        ranked.put(("a",), f"k{i}", {"text": "red", "n": i % 2})
    ranked.search(("a",), query="red", filter={"n": 1}, limit=1, offset=1)
    assert store.refreshed == []
    ranked.search(("a",), query="red", filter={"n": 1}, limit=1, offset=1, refresh_ttl=True)
    assert store.refreshed == ["k3"]


def test_ranked_store_when_store_has_no_ttl_then_it_is_refused() -> None:
    """A store that cannot expire records does not pretend to."""
    with pytest.raises(NotImplementedError, match="TTL"):
        RankedStore(InMemoryStore(), BM25()).put(("a",), "k", {"text": "red"}, ttl=5)


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph",), (1,)])
def test_ranked_store_when_namespace_is_invalid_then_raises_like_any_store(namespace: Any) -> None:
    """LangGraph's rules for namespaces hold."""
    with pytest.raises(InvalidNamespaceError):
        RankedStore(InMemoryStore(), BM25()).put(namespace, "k", {"text": "red"})
