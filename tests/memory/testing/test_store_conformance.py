"""The suite on our stores, around others; `acceptance/stores_of_others.py` has those alone."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest
from acceptance.stores_of_others import POSTGRES_DEPARTURES
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from postgres_server import Schemas

from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore
from langgraft.memory.testing.stores.reference import inmemory_departures
from langgraft.testing import ReferenceStore, StoreConformance, word_index


@pytest.mark.matrix
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


@pytest.mark.matrix
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


@pytest.mark.matrix
class TestRankedStoreOverPostgresStore(StoreConformance):
    """A ranked store fails only what it hands on to PostgreSQL."""

    persistent = True
    nul_characters = False
    departures: ClassVar[Mapping[str, str]] = POSTGRES_DEPARTURES

    @pytest.fixture
    def place(self, postgres: Schemas) -> str:
        """Return where the store is."""
        return postgres.new()

    @pytest.fixture
    def store(self, postgres: Schemas, place: str) -> BaseStore:
        """Return an empty store."""
        return RankedStore(postgres.store(place), BM25())

    @pytest.fixture
    def reopen(self, postgres: Schemas, place: str) -> Callable[[], BaseStore]:
        """Return what opens the store again."""
        return lambda: RankedStore(postgres.store(place), BM25())
