"""A pytest plugin that gives LangGraph's own store tests our stores.

The tests make their stores by name: `InMemoryStore(index=…)`, `SqliteStore.from_conn_string(…)`.
Before they are imported, those names are bound to stand-ins here, which open the store that the
variable `LANGGRAFT_UPSTREAM` names: `ranked`, `chroma` or `postgres`.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any

import langgraph.store.memory
import langgraph.store.postgres
import langgraph.store.sqlite
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore

from langgraft.memory.rankers.lexical import BM25
from langgraft.memory.stores.chroma import ChromaStore
from langgraft.memory.stores.ranked import RankedStore

VARIABLE = "LANGGRAFT_UPSTREAM"

Index = Mapping[str, Any] | None


class Ranked(RankedStore):
    """A ranked store over LangGraph's `InMemoryStore`, made as the latter is."""

    def __init__(self, *, index: Index = None) -> None:
        super().__init__(InMemoryStore(index=_plain(index)), BM25())

    def setup(self) -> None:
        """Do nothing: there are no tables."""


class Chroma(BaseStore):
    """An embedded Chroma store in a folder of its own, made as `InMemoryStore` is."""

    def __init__(self, *, index: Index = None) -> None:
        folder = tempfile.mkdtemp(prefix="upstream-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.store = ChromaStore.open(f"{folder}/store", index=_plain(index))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations."""
        return self.store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations."""
        return await self.store.abatch(ops)

    def setup(self) -> None:
        """Do nothing: there are no tables."""


class RankedPostgres(RankedStore):
    """A ranked store over a PostgreSQL store, with the latter's own methods and settings."""

    MIGRATIONS = PostgresStore.MIGRATIONS

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store, BM25())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("MIGRATIONS", "ttl_config"):
            setattr(self.store, name, value)

    @classmethod
    @contextmanager
    def from_conn_string(cls, *args: Any, **options: Any) -> Iterator["RankedPostgres"]:
        """Open as `PostgresStore` does."""
        with PostgresStore.from_conn_string(*args, **options) as store:
            yield cls(store)


def _plain(index: Index) -> Any:
    """Return an index as stores other than SQLite's take it."""
    if index is None:
        return None
    fields = index.get("text_fields") or index.get("fields")
    return {
        "dims": index["dims"],
        "embed": index["embed"],
        **({"fields": fields} if fields else {}),
    }


def _opened_by_name(make: Any) -> tuple[type, type]:
    """Return what stands in for `SqliteStore` and for `AsyncSqliteStore`."""

    class Opened:
        @classmethod
        @contextmanager
        def from_conn_string(cls, _: str, *, index: Index = None, **__: Any) -> Iterator[BaseStore]:
            yield make(index=index)

    class AsyncOpened:
        @classmethod
        @asynccontextmanager
        async def from_conn_string(
            cls, _: str, *, index: Index = None, **__: Any
        ) -> AsyncIterator[BaseStore]:
            store = make(index=index)

            async def setup() -> None:
                """Do nothing: there are no tables."""

            store.setup = setup
            yield store

    return Opened, AsyncOpened


def _bind(chosen: str) -> None:
    """Have the names, which the tests are going to import, stand for our stores."""
    if chosen == "postgres":
        bindings: list[tuple[ModuleType, str, type]] = [
            (langgraph.store.postgres, "PostgresStore", RankedPostgres)
        ]
    else:
        make = {"ranked": Ranked, "chroma": Chroma}[chosen]
        opened, opened_async = _opened_by_name(make)
        bindings = [
            (langgraph.store.memory, "InMemoryStore", make),
            (langgraph.store.sqlite, "SqliteStore", opened),
            (langgraph.store.sqlite, "AsyncSqliteStore", opened_async),
        ]
    for module, name, stand_in in bindings:
        setattr(module, name, stand_in)


_bind(os.environ[VARIABLE])
