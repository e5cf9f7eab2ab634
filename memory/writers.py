"""One writer of a bank at a time: in this process, and where a store allows it beyond.

=========================  ====================================================================
store                      other processes
=========================  ====================================================================
`InMemoryStore`, embedded  there are none
Chroma, SQLite in memory
`SqliteStore` on a file,   wait for one another, by a lock file beside it
also the asynchronous one
`PostgresStore`, also the  wait for one another, by an advisory lock, for which there is one
asynchronous one           connection more
any other                  are told that there are two: `BankConflictError`
=========================  ====================================================================
"""

import asyncio
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Protocol, TypeVar
from weakref import finalize, ref

from filelock import FileLock, Timeout
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import InfrastructureError
from langgraft.memory.stores.per_store import PerStore

T = TypeVar("T")

_POLL_SECONDS: Final = 0.001
_POLL_OTHERS_SECONDS: Final = 0.005


class OtherProcesses(Protocol):
    """A lock that other processes respect, for whoever has the one of this process."""

    def attempt(self) -> "Future[bool]":
        """Try to get it, without waiting for its holder."""
        ...

    def release(self) -> "Future[None]":
        """Give it back."""
        ...


class WriterLock:
    """Makes the reads and writes of one filing one step.

    Threads and tasks may use it together. A thread that runs an event loop must not wait in
    it for one of its own tasks, so a blocking wait there is refused instead of hanging.

    Args:
        others: A lock that other processes respect, if there is one.
    """

    def __init__(self, others: OtherProcesses | None = None) -> None:
        self._lock = threading.Lock()
        self._others = others

    @contextmanager
    def held(self, *, here: bool = False) -> Iterator[None]:
        """Hold the lock in a thread.

        Args:
            here: Hold it in this process alone.

        Raises:
            RuntimeError: It would have to wait inside a running event loop.
            InfrastructureError: The lock that other processes respect cannot be had.
        """
        others = None if here else self._others
        if not self._lock.acquire(blocking=False):
            _check_may_wait()
            self._lock.acquire()
        try:
            while others is not None and not others.attempt().result():
                _check_may_wait()
                time.sleep(_POLL_OTHERS_SECONDS)
            try:
                yield
            finally:
                if others is not None:
                    others.release().result()
        finally:
            self._lock.release()

    @asynccontextmanager
    async def aheld(self, *, here: bool = False) -> AsyncIterator[None]:
        """Hold the lock in a task, which may be canceled at any time."""
        others = None if here else self._others
        while not self._lock.acquire(blocking=False):  # noqa: ASYNC110
            # The holder may be a thread, which no `asyncio` primitive can wait for.
            await asyncio.sleep(_POLL_SECONDS)
        try:
            if others is not None:
                await _enter(others)
            try:
                yield
            finally:
                if others is not None:
                    # Given back even if the task is canceled; a blocking writer may be next.
                    await asyncio.shield(asyncio.wrap_future(others.release()))
        finally:
            self._lock.release()


def _check_may_wait() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    msg = (
        "memory is being written, and this thread runs an event loop that a wait would block:"
        " use the async method"
    )
    raise RuntimeError(msg)


async def _enter(others: OtherProcesses) -> None:
    """Wait for a lock; where nobody waits any more, what comes of the last attempt is given back."""
    while True:
        attempt = others.attempt()
        try:
            if await asyncio.wrap_future(attempt):
                return
        except asyncio.CancelledError:
            attempt.add_done_callback(lambda done: _got(done) and others.release())
            raise
        await asyncio.sleep(_POLL_OTHERS_SECONDS)


def _got(attempt: "Future[bool]") -> bool:
    return not attempt.cancelled() and attempt.exception() is None and attempt.result()


@dataclass(frozen=True, slots=True)
class Company:
    """Who else may write to a bank.

    Attributes:
        alone: Nobody does.
        lock: What keeps others out; without it they can only be told.
    """

    alone: bool
    lock: OtherProcesses | None = None


def company_of(store: BaseStore, namespace: Sequence[str]) -> Company:
    """Return who else may write to a bank in a store."""
    if isinstance(store, InMemoryStore) or getattr(store, "alone", False):
        return Company(alone=True)
    if _is_a(store, "langgraph.store.sqlite", "SqliteStore"):
        path = _sqlite_path(store)
        if path is None:
            return Company(alone=False)
        return Company(False, _BesideFile(path)) if path else Company(alone=True)
    if _is_a(store, "langgraph.store.sqlite.aio", "AsyncSqliteStore"):
        return Company(False, _BesideAsyncFile(store))
    for name in ("PostgresStore", "AsyncPostgresStore"):
        if _is_a(store, "langgraph.store.postgres", name):
            return Company(False, _advisory(store, namespace))
    return Company(alone=False)


def _is_a(store: BaseStore, module: str, name: str) -> bool:
    """Say whether a store is of a class whose package may not be installed."""
    loaded = sys.modules.get(module)  # if it is not loaded, nothing can be of its classes
    return loaded is not None and isinstance(store, getattr(loaded, name, ()))


class _BesideFile:
    """A lock file beside a database: for all of its banks, as it has one writer anyway."""

    def __init__(self, path: str) -> None:
        self._lock = FileLock(f"{path}.langgraft.lock", thread_local=False)

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
        return self._file.attempt().result()


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

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="langgraft-locks")
        self._connection: Any = None

    def ask(self, function: str, key: int, address: Mapping[str, Any]) -> "Future[bool]":
        """Call a function of PostgreSQL, one call after the other."""
        return self._thread.submit(self._ask, function, key, address)

    def _ask(self, function: str, key: int, address: Mapping[str, Any]) -> bool:
        import psycopg  # noqa: PLC0415  (an extra)

        try:
            if self._connection is None:
                self._connection = psycopg.connect(**address, autocommit=True)
                finalize(self, self._connection.close)
            row = self._connection.execute(f"SELECT {function}(%s)", (key,)).fetchone()
        except psycopg.Error as error:
            if self._connection is not None:
                self._connection.close()  # the server gives back what it held
            self._connection = None
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
        return self.session.ask("pg_try_advisory_lock", self.key, self.address)

    def release(self) -> "Future[Any]":
        """Give it back."""
        return self.session.ask("pg_advisory_unlock", self.key, self.address)


def _advisory(store: Any, namespace: Sequence[str]) -> _Advisory:
    hashed = sha256(canonical_json(["langgraft", *namespace]).encode()).digest()
    key = int.from_bytes(hashed[:8], signed=True)
    return _Advisory(_SESSIONS.of(store), key, _address(store.conn))


def _address(connection: Any) -> dict[str, Any]:
    """Return where a connection, or those of a pool, lead to."""
    if not hasattr(connection, "conninfo"):
        info = connection.info
        return {**info.get_parameters(), "password": info.password}
    told = connection.conninfo
    given = {**(connection.kwargs or {}), "conninfo": told() if callable(told) else told}
    return {name: value for name, value in given.items() if name not in _NOT_AN_ADDRESS}


_NOT_AN_ADDRESS: Final = frozenset(
    {"autocommit", "context", "cursor_factory", "prepare_threshold", "row_factory"}
)
