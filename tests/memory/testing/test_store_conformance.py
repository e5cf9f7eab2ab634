"""The suite on the stores at hand: LangGraph's own, its corrected form, and ours around them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from langgraft.memory.rankers import BM25
from langgraft.memory.stores import ForkedStore, RankedStore
from langgraft.memory.testing.stores.defects import inmemory_departures
from langgraft.memory.testing.stores.suite import Mode
from langgraft.testing import ReferenceStore, StoreConformance, word_index


class TestInMemoryStore(StoreConformance):
    """LangGraph's `InMemoryStore` fails exactly where `INMEMORY_DEFECTS` says."""

    semantic = True
    departures: ClassVar[Mapping[str, str]] = inmemory_departures()

    @pytest.fixture
    def store(self) -> BaseStore:
        """Return an empty store."""
        return InMemoryStore()

    @pytest.fixture
    def semantic_store(self) -> BaseStore:
        """Return an empty store with an index."""
        return InMemoryStore(index=word_index())


class TestReferenceStore(StoreConformance):
    """The reference keeps every promise."""

    semantic = True
    dotted_filters = True

    @pytest.fixture
    def store(self) -> BaseStore:
        """Return an empty store."""
        return ReferenceStore()

    @pytest.fixture
    def semantic_store(self) -> BaseStore:
        """Return an empty store with an index."""
        return ReferenceStore(index=word_index())


class TestRankedStore(StoreConformance):
    """A ranked store adds nothing wrong to the store it wraps."""

    dotted_filters = True

    @pytest.fixture
    def store(self) -> BaseStore:
        """Return an empty store."""
        return RankedStore(ReferenceStore(), BM25())


class TestRankedStoreOverInMemoryStore(StoreConformance):
    """What a ranked store passes on is as the wrapped store has it."""

    departures: ClassVar[Mapping[str, str]] = {
        test: why
        for test, why in inmemory_departures().items()
        if test != "test_search_when_the_prefix_is_a_list_does_as_with_a_tuple"
    }

    @pytest.fixture
    def store(self) -> BaseStore:
        """Return an empty store."""
        return RankedStore(InMemoryStore(), BM25())


class TestForkedStore(StoreConformance):
    """A fork of an empty store is a store like any other."""

    @pytest.fixture
    def store(self) -> BaseStore:
        """Return an empty fork."""
        return ForkedStore(ReferenceStore(), ReferenceStore())


_OPERATORS_ONLY = "A mapping in a filter is taken for operators only, and refused otherwise."
SQLITE_DEPARTURES: Mapping[str, str] = {
    "test_record_when_put_again_keeps_when_it_was_created": (
        "A record that is put again is replaced by one created then."
    ),
    "test_times_when_read_are_in_order_and_know_their_zone": "Times are read without a zone.",
    "test_integers_when_beyond_64_bits_come_back_exact": "Integers beyond 64 bits are refused.",
    "test_eq_when_given_does_as_a_plain_value": "`$eq` never equals a list.",
    "test_ne_when_the_field_is_missing_lets_the_record_through": (
        "In SQL a missing field is neither equal nor unequal to anything."
    ),
    "test_comparison_when_the_field_holds_a_text_leaves_the_record_out_of_numbers": (
        "A text counts as the number 0."
    ),
    "test_filter_when_names_and_values_are_hostile_takes_them_literally": (
        "Filters may only name fields of letters, digits, `_`, `-` and `.`."
    ),
    "test_filter_when_a_mapping_is_given_asks_for_what_it_names": _OPERATORS_ONLY,
    "test_filter_when_conditions_are_nested_compares_inside": _OPERATORS_ONLY,
}
"""Case → what LangGraph's `SqliteStore` 3.1 does instead; all of it is outside of langgraft."""


class TestSqliteStore(StoreConformance):
    """LangGraph's `SqliteStore`, without an index, fails exactly where the table says."""

    modes: ClassVar[Sequence[Mode]] = ("sync",)  # its asynchronous calls are another class
    persistent = True
    dotted_filters = True
    departures: ClassVar[Mapping[str, str]] = SQLITE_DEPARTURES

    @pytest.fixture
    def path(self, tmp_path: Path) -> str:
        """Return where the store is."""
        return str(tmp_path / "store.sqlite")

    @pytest.fixture
    def opened(self) -> Iterator[ExitStack]:
        """Return what closes the stores that were opened."""
        with ExitStack() as opened:
            yield opened

    @pytest.fixture
    def reopen(self, path: str, opened: ExitStack) -> Callable[[], BaseStore]:
        """Return what opens the store again."""

        def reopen() -> BaseStore:
            store = opened.enter_context(SqliteStore.from_conn_string(path))
            store.setup()
            return store

        return reopen

    @pytest.fixture
    def store(self, reopen: Callable[[], BaseStore]) -> BaseStore:
        """Return an empty store."""
        return reopen()
