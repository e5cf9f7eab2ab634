"""Who else may write to a bank, and what keeps other processes out of it meanwhile.

=========================  ====================================================================
store                      other processes
=========================  ====================================================================
`InMemoryStore`, embedded  there are none
Chroma, SQLite in memory
`SQLiteFileStore`;         wait for one another, by a lock file beside it
LangGraph's `SqliteStore`
on a file, also the
asynchronous one
`PostgresStore`, also the  wait for one another, by an advisory lock, for which there is one
asynchronous one           connection more
any other                  are noticed afterwards: `BankConflictError` is raised
=========================  ====================================================================
"""

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from weakref import finalize, ref

from filelock import FileLock, Timeout
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import canonical_json
from langgraft._core.effects import PerStore
from langgraft._core.errors import InfrastructureError
from langgraft._core.forks import at_fork
from langgraft._core.sqlite_file import is_sealed
from langgraft.memory.stores.sqlite import SQLiteFileStore

T = TypeVar("T")


class OtherProcesses(Protocol):
    """A lock that other processes respect, for whoever has the one of this process."""

    def attempt(self) -> "Future[bool]":
        """Try to get it, without waiting for its holder."""
        ...

    def release(self) -> "Future[None]":
        """Give it back."""
        ...


@dataclass(frozen=True, slots=True)
class OtherWriters:
    """Who else may write to a bank.

    Attributes:
        alone: Nobody does, or the store itself tells what was written (`ChangeLog`).
        lock: What keeps others out; without it, that they wrote is only noticed.
    """

    alone: bool
    lock: OtherProcesses | None = None


def other_writers(store: BaseStore, namespace: Sequence[str]) -> OtherWriters:
    """Return who else may write to a bank in a store."""
    if isinstance(store, InMemoryStore) or getattr(store, "alone", False):
        return OtherWriters(alone=True)
    if isinstance(store, SQLiteFileStore):  # it tells what others wrote
        return OtherWriters(True, _BesideFile(str(store.path)))
    if _is_a(store, "langgraph.store.sqlite", "SqliteStore"):
        path = _sqlite_path(store)
        if path is None:
            return OtherWriters(alone=False)
        return OtherWriters(False, _BesideFile(path)) if path else OtherWriters(alone=True)
    if _is_a(store, "langgraph.store.sqlite.aio", "AsyncSqliteStore"):
        return OtherWriters(False, _BesideAsyncFile(store))
    for name in ("PostgresStore", "AsyncPostgresStore"):
        if _is_a(store, "langgraph.store.postgres", name):
            return OtherWriters(False, _advisory(store, namespace))
    return OtherWriters(alone=False)


def _is_a(store: BaseStore, module: str, name: str) -> bool:
    """Say whether a store is of a class whose package may not be installed."""
    loaded = sys.modules.get(module)  # if it is not loaded, nothing can be of its classes
    return loaded is not None and isinstance(store, getattr(loaded, name, ()))


class _BesideFile:
    """A lock file beside a database: for all of its banks, as it has one writer anyway."""

    def __init__(self, path: str) -> None:
        self._database = Path(path)
        self._in_child()
        at_fork("in_child", self._in_child)

    def _in_child(self) -> None:
        self._lock = FileLock(f"{self._database}.langgraft.lock", thread_local=False)

    def attempt(self) -> "Future[bool]":
        """Try to get it."""
        return _done(self._acquire)

    def release(self) -> "Future[None]":
        """Give it back."""
        return _done(self._lock.release)

    def _acquire(self) -> bool:
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            return False
        except OSError as error:
            if is_sealed(self._database):
                return True  # a reader needs no lock; the database refuses what is written
            msg = (
                f"{self._lock.lock_file}: the bank cannot be locked: {error.strerror};"
                " the folder of a database must be writable"
            )
            raise InfrastructureError(msg) from error
        return True


class _BesideAsyncFile:
    """The same for a store that tells its file only within its event loop."""

    def __init__(self, store: Any) -> None:
        self._store = ref(store)  # what is kept of a store must not keep it
        self._loop: asyncio.AbstractEventLoop = store.loop
        self._file: _BesideFile | None = None

    def attempt(self) -> "Future[bool]":
        """Try to get it; a database in memory is nobody else's."""
        if self._file is not None:
            return self._file.attempt()
        return asyncio.run_coroutine_threadsafe(self._first(), self._loop)

    def release(self) -> "Future[None]":
        """Give it back."""
        return _done(lambda: None) if self._file is None else self._file.release()

    async def _first(self) -> bool:
        store: Any = self._store()
        async with store.conn.execute("PRAGMA database_list") as cursor:
            path = _main_file(await cursor.fetchall())
        if not path:
            return True
        self._file = _BesideFile(path)
        return await asyncio.to_thread(lambda file: file.attempt().result(), self._file)


def _done(call: Callable[[], T]) -> "Future[T]":
    """Return what is known at once."""
    future: Future[T] = Future()
    try:
        future.set_result(call())
    except InfrastructureError as error:
        future.set_exception(error)
    return future


def _sqlite_path(store: Any) -> str | None:
    """Return the file of a SQLite store, empty where there is none; `None`: it does not tell."""
    try:
        rows = store.conn.execute("PRAGMA database_list").fetchall()
    except sqlite3.Error:  # closed, or of another thread
        return None
    return _main_file(rows)


def _main_file(rows: Iterable[Sequence[Any]]) -> str:
    return next((str(file) for _, name, file in rows if name == "main"), "")


class _Session:
    """A connection to PostgreSQL that holds the advisory locks of one store, and nothing else.

    A pool may have no connection to spare while one of its own waits.
    """

    _closing: "finalize[[], _Session] | None" = None

    def __init__(self) -> None:
        self._in_child()
        at_fork("in_child", self._in_child)

    def _in_child(self) -> None:
        if self._closing is not None:
            self._closing.detach()  # the connection is the parent's
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="langgraft-locks")
        self._connection: Any = None

    def ask(
        self, function: str, key: int, address: Mapping[str, Any], *, again: bool = False
    ) -> "Future[bool]":
        """Call a function of PostgreSQL, one call after the other.

        Args:
            function: Its name.
            key: Its argument.
            address: Where to connect.
            again: Call it once more, on a new connection, where the one there was is lost.
        """
        return self._thread.submit(self._ask, function, key, address, again)

    def _ask(self, function: str, key: int, address: Mapping[str, Any], again: bool) -> bool:
        import psycopg  # noqa: PLC0415  (an extra)

        again = again and self._connection is not None
        try:
            if self._connection is None:
                self._connection = psycopg.connect(**address, autocommit=True)
                self._closing = finalize(self, self._connection.close)
            row = self._connection.execute(f"SELECT {function}(%s)", (key,)).fetchone()
        except psycopg.Error as error:
            if self._connection is not None:
                self._connection.close()  # the server gives back what it held
            self._connection = None
            if again:
                return self._ask(function, key, address, again=False)
            words = " ".join(str(error).split()) or type(error).__name__
            msg = f"PostgreSQL cannot be asked to lock the bank: {words}"
            raise InfrastructureError(msg) from error
        return bool(row and row[0])


_SESSIONS: Final = PerStore(_Session)


@dataclass(frozen=True, slots=True)
class _Advisory:
    """An advisory lock of PostgreSQL."""

    session: _Session
    key: int
    address: Mapping[str, Any]

    def attempt(self) -> "Future[bool]":
        """Try to get it."""
        return self.session.ask("pg_try_advisory_lock", self.key, self.address, again=True)

    def release(self) -> "Future[Any]":
        """Give it back."""
        return self.session.ask("pg_advisory_unlock", self.key, self.address)


def _advisory(store: Any, namespace: Sequence[str]) -> _Advisory:
    hashed = sha256(canonical_json(["langgraft", *namespace]).encode()).digest()
    key = int.from_bytes(hashed[:8], signed=True)
    return _Advisory(_SESSIONS.of(store), key, address_of(store.conn))


def address_of(connection: Any) -> dict[str, Any]:
    """Return where a connection, or those of a pool, lead to."""
    if not hasattr(connection, "conninfo"):
        info = connection.info
        return {**info.get_parameters(), "password": info.password}
    info = connection.conninfo
    options = {**(connection.kwargs or {}), "conninfo": info() if callable(info) else info}
    return {name: value for name, value in options.items() if name not in _NOT_AN_ADDRESS}


_NOT_AN_ADDRESS: Final = frozenset(
    {"autocommit", "context", "cursor_factory", "prepare_threshold", "row_factory"}
)
