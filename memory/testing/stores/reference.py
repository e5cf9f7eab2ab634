"""The reference, LangGraph's `InMemoryStore` corrected where it is wrong, and random operations on both.

Where that is, verified against langgraph-checkpoint 4.3.2, `INMEMORY_DEFECTS` lists. The suite runs
on `InMemoryStore` with exactly these cases expected to fail: when upstream mends one, our tests say
so.
"""

import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

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
from langgraph.store.memory import InMemoryStore

from langgraft.memory.stores.filters import check_filter, passes
from langgraft.memory.stores.programs import Address
from langgraft.memory.testing.stores.base import Calls, Namespace, StoreSuite

Vectors = list[list[float]]


class ReferenceStore(InMemoryStore):
    """What a conforming store does, in the simplest way; for comparison, not for use.

    LangGraph's documentation names `InMemoryStore` as the reference. `defects` lists where this
    one departs from it and why. Embeddings are always called synchronously.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lock = Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Read what is asked, then write; hold nothing that a caller can reach."""
        asked = [_own(op) for op in ops]
        with self._lock:
            results = [deepcopy(self._answer(op)) for op in asked]
            created = {address: item.created_at for address, item in self._written(asked)}
            for op in asked:
                if isinstance(op, PutOp):
                    self._vectors[op.namespace].pop(op.key, None)
            super().batch([op for op in asked if isinstance(op, PutOp)])
            for address, item in self._written(asked):
                item.created_at = created.get(address, item.created_at)
            for namespace in [each for each, held in self._data.items() if not held]:
                del self._data[namespace]
            return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`."""
        return self.batch(ops)

    def _answer(self, op: Op) -> Result:
        match op:
            case PutOp():
                return None
            case GetOp():
                return self._data.get(op.namespace, {}).get(op.key)
            case _:
                return super().batch([op])[0]

    def _written(self, ops: Iterable[Op]) -> list[tuple[Address, Item]]:
        """List the stored items that `ops` write to."""
        addresses = {(op.namespace, op.key) for op in ops if isinstance(op, PutOp)}
        held = [(address, self._data.get(address[0], {}).get(address[1])) for address in addresses]
        return [(address, item) for address, item in held if item is not None]

    def _filter_items(self, op: SearchOp) -> list[tuple[Item, Vectors]]:
        every = super()._filter_items(op._replace(filter=None, offset=0, limit=sys.maxsize))
        return [(item, vectors) for item, vectors in every if passes(item.value, op.filter)]

    def _insertinmem_store(
        self, to_embed: dict[str, list[tuple[Namespace, str, str]]], embeddings: Vectors
    ) -> None:
        for fields, vector in zip(to_embed.values(), embeddings, strict=True):
            for namespace, key, path in fields:
                self._vectors[namespace][key][path] = vector


def _own(op: Op) -> Op:
    """Return an operation that shares nothing with the caller."""
    match op:
        case PutOp():
            return op._replace(namespace=tuple(op.namespace), value=deepcopy(op.value))
        case GetOp():
            return op._replace(namespace=tuple(op.namespace))
        case SearchOp():
            check_filter(op.filter)
            return op._replace(namespace_prefix=tuple(op.namespace_prefix))
        case _:
            return op


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing that `InMemoryStore` does and the reference does not."""

    what: str
    """What happens."""
    why: str
    """Why the reference departs."""
    tests: Sequence[str]
    """The cases of the suite that show it."""


INMEMORY_DEFECTS: Final[Sequence[Defect]] = (
    Defect(
        "A batch with two equal texts to be indexed raises ValueError and writes nothing"
        " (langgraph#8822).",
        "Whether two records say the same is not the caller's to find out; each alone is taken.",
        ("test_texts_when_equal_in_one_batch_are_both_indexed",),
    ),
    Defect(
        "`created_at` is set anew by every overwrite.",
        "`Item` documents it as the time of creation, and the database stores keep it.",
        ("test_record_when_put_again_keeps_when_it_was_created",),
    ),
    Defect(
        "The vector of a text stays when the record is overwritten without that text.",
        "A record is replaced as a whole: it must not be found by what it no longer says.",
        ("test_query_when_a_text_is_gone_does_not_rank_by_it",),
    ),
    Defect(
        "`get`, and a deletion of nothing, create the namespace they name.",
        "Reading must not change what is listed.",
        ("test_reads_when_they_find_nothing_create_no_namespace",),
    ),
    Defect(
        "A namespace stays listed after its last record was deleted.",
        "In the database stores a namespace is what records are in, and nothing else.",
        (
            "test_namespace_when_its_last_record_is_deleted_is_gone",
            "test_operations_when_drawn_at_random_do_as_the_reference",
        ),
    ),
    Defect(
        "Values are kept and handed out by reference: changing one changes the store.",
        "A store that serializes cannot do so, and code that relies on it loses data there.",
        (
            "test_value_when_changed_after_it_was_put_is_stored_as_it_was",
            "test_value_when_changed_after_it_was_got_is_stored_as_it_was",
            "test_value_when_changed_after_it_was_searched_is_stored_as_it_was",
        ),
    ),
    Defect(
        "`$gt`, `$gte`, `$lt` and `$lte` raise for a record whose field is missing or no number.",
        "One record of another shape must not make a namespace unsearchable.",
        (
            "test_comparison_when_the_field_is_missing_leaves_the_record_out",
            "test_comparison_when_the_field_holds_a_text_leaves_the_record_out_of_numbers",
        ),
    ),
    Defect(
        "A search whose prefix is a list silently finds nothing.",
        "The listing of namespaces takes lists; a prefix that was read from JSON is one.",
        ("test_search_when_the_prefix_is_a_list_does_as_with_a_tuple",),
    ),
)
"""Where LangGraph's `InMemoryStore` departs from the reference, and why."""


def inmemory_departures() -> Mapping[str, str]:
    """Return the cases that `InMemoryStore` fails, each with what happens."""
    return {test: defect.what for defect in INMEMORY_DEFECTS for test in defect.tests}


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
        known = "test_operations_when_drawn_at_random_do_as_the_reference" in self.departures
        more = {hypothesis.Phase.shrink, hypothesis.Phase.explain}  # nobody reads what is known
        phases = [phase for phase in hypothesis.Phase if not (known and phase in more)]

        @hypothesis.settings(
            max_examples=self.examples, deadline=None, database=None, phases=phases
        )
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
