"""The suite on the stores at hand: LangGraph's own, its corrected form, and ours around them."""

from collections.abc import Mapping
from typing import ClassVar

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore
from langgraft.memory.testing.stores.defects import inmemory_departures
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
