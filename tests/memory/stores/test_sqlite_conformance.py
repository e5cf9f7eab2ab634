"""The suite of LangGraph stores, on a SQLite file of ours, bare and by rank."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore

from langgraft.memory.stores import SQLiteFileStore
from langgraft.testing import StoreConformance


class TestSQLiteFileStore(StoreConformance):
    """It keeps every promise, and departs nowhere."""

    persistent = True
    dotted_filters = True

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[Callable[[], BaseStore]]:
        """Return what opens the file, and close it in the end."""
        stores: list[SQLiteFileStore] = []

        def again() -> BaseStore:
            stores.append(SQLiteFileStore(tmp_path / "memory.sqlite"))
            return stores[-1]

        yield again
        for store in stores:
            store.close()

    @pytest.fixture
    def store(self, opened: Callable[[], BaseStore]) -> BaseStore:
        """Return an empty store."""
        return opened()

    @pytest.fixture
    def reopen(self, store: BaseStore, opened: Callable[[], BaseStore]) -> Callable[[], BaseStore]:
        """Return what opens the store again, beside the one that is open."""
        assert store
        return opened
