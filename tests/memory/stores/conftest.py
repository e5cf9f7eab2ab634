"""Stores to wrap: LangGraph's own, and one that a user might write."""

from collections.abc import Callable

import pytest
from dict_store import DictStore
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore


@pytest.fixture(params=[InMemoryStore, DictStore])
def new_store(request: pytest.FixtureRequest) -> Callable[[], BaseStore]:
    """Make an empty store: each kind in turn."""
    factory: Callable[[], BaseStore] = request.param
    return factory


@pytest.fixture
def dict_store() -> DictStore:
    """An empty store that logs what it is asked."""
    return DictStore()
