"""Random sequences of operations, on a store and on the reference: the same answers."""

import itertools
from collections.abc import Sequence
from typing import Any

import hypothesis
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langgraft.memory.testing.stores.reference import ReferenceStore
from langgraft.memory.testing.stores.suite import Calls, Namespace, StoreSuite

_labels = st.sampled_from(["a", "ab", "b", "%", "_", "é"])
_paths = st.lists(_labels, max_size=3).map(tuple)
_keys = st.sampled_from(["k", "K", "k2", "é", " "])
_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 1200), st.sampled_from(["", "x", "ab", "é\n"])
)
_inner = st.one_of(_leaves, st.lists(_leaves, max_size=2))
_fields = st.sampled_from(["f", "g"])
_values = st.dictionaries(_fields, _inner, max_size=2)
_limits = st.integers(0, 4)
# Whether a field that is missing equals `None`, stores answer differently; the filter cases ask.
_wanted = _inner.filter(lambda value: value is not None)
_conditions = st.one_of(_wanted, st.builds(lambda value: {"$eq": value}, _wanted))


@st.composite
def operations(draw: st.DrawFn, root: str) -> Op:
    """Draw an operation in the namespaces under `root`."""
    path = (root, *draw(_paths))
    match draw(st.sampled_from(["put", "put", "put", "delete", "get", "search", "list"])):
        case "put":
            return PutOp(path, draw(_keys), draw(_values))
        case "delete":
            return PutOp(path, draw(_keys), None)
        case "get":
            return GetOp(path, draw(_keys))
        case "search":
            asked = draw(st.none() | st.dictionaries(_fields, _conditions, max_size=2))
            return SearchOp(path, filter=asked, limit=draw(_limits | st.just(100)))
        case _:
            suffix = draw(st.none() | st.lists(_labels | st.just("*"), min_size=1, max_size=2))
            conditions = [MatchCondition("prefix", path)]
            conditions += [] if suffix is None else [MatchCondition("suffix", tuple(suffix))]
            depth = draw(st.none() | st.integers(1, 4))
            return ListNamespacesOp(tuple(conditions), depth, 100, 0)


class DifferentialCases(StoreSuite):
    """Whatever is done, the store answers as the reference does."""

    def test_operations_when_drawn_at_random_do_as_the_reference(self, calls: Calls) -> None:
        """Any sequence of batches has equal results, but for the order of searches and times."""
        numbers = itertools.count()

        @hypothesis.settings(max_examples=self.examples, deadline=None, database=None)
        @hypothesis.given(data=st.data())
        def check(data: st.DataObject) -> None:
            root = f"example-{next(numbers)}"  # one store serves all examples
            reference = ReferenceStore()
            batches = data.draw(
                st.lists(st.lists(operations(root), max_size=6), min_size=1, max_size=5)
            )
            closing: list[Op] = [SearchOp((root,), limit=1000), _everything(root)]
            for batch in [*batches, closing]:
                expected, got = reference.batch(batch), calls.batch(batch)
                assert len(got) == len(batch)
                for op, result, wanted in zip(batch, got, expected, strict=True):
                    _check(op, result, wanted)

        check()


def _everything(root: str) -> ListNamespacesOp:
    return ListNamespacesOp((MatchCondition("prefix", (root,)),), None, 1000, 0)


def _check(op: Op, result: Result, wanted: Result) -> None:
    if isinstance(op, SearchOp):
        found = [_plain(item) for item in _items(result)]
        assert len(found) == len(_items(wanted)), op
        if op.limit >= 100:
            assert _sorted(found) == _sorted([_plain(item) for item in _items(wanted)]), op
        assert len({(namespace, key) for namespace, key, _ in found}) == len(found), op
    elif isinstance(op, ListNamespacesOp):
        assert sorted(_namespaces(result)) == sorted(_namespaces(wanted)), op
    elif isinstance(op, GetOp):
        assert _plain(result) == _plain(wanted), op
    else:
        assert result is None, op


def _plain(result: Any) -> tuple[Namespace, str, Any]:
    if result is None:
        return (), "", None
    assert isinstance(result, Item)
    return result.namespace, result.key, result.value


def _items(result: Result) -> Sequence[SearchItem]:
    assert isinstance(result, list)
    return [item for item in result if isinstance(item, SearchItem)]


def _namespaces(result: Result) -> list[Namespace]:
    assert isinstance(result, list)
    return [each for each in result if isinstance(each, tuple)]


def _sorted(found: list[tuple[Namespace, str, Any]]) -> list[tuple[Namespace, str, Any]]:
    return sorted(found, key=lambda each: each[:2])
