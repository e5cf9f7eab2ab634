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
asynchronous one           connection more. The lock is lost with that connection, such as when
                           the server restarts. So each write also compares who wrote last, in
                           its own transaction, and raises `BankConflictError` if that moved
Chroma server, a client of are kept out of each write by a record that only one can make; that
yours                      they wrote is noticed before it: `BankConflictError` is raised
any other                  are noticed afterwards: `BankConflictError` is raised
=========================  ====================================================================

What a batch has written when it breaks off differs too. LangGraph promises nothing. A store that may
leave a part of it gets a record of what was there before (`OtherWriters.whole`).
"""

import asyncio
import copy
import json
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import finalize, ref

import orjson
from filelock import FileLock, Timeout
from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import canonical_json
from langgraft._core.effects import Carried, PerStore
from langgraft._core.errors import BankConflictError, InfrastructureError
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
        fenced: Whether the lock may be lost unnoticed, so that writes must be `Fenced`.
        whole: Says of operations whether the store carries out all of them or none, whatever fails;
            `None`: it always does.
    """

    alone: bool
    lock: OtherProcesses | None = None
    fenced: bool = False
    whole: Callable[[Sequence[Op]], bool] | None = None


def other_writers(store: BaseStore, namespace: Sequence[str]) -> OtherWriters:
    """Return who else may write to a bank in a store."""
    if isinstance(store, InMemoryStore):
        return OtherWriters(alone=True)
    if hasattr(store, "put_new"):  # Chroma, which is not imported for this
        return OtherWriters(getattr(store, "alone", False), whole=_one_request)
    if getattr(store, "alone", False):
        return OtherWriters(alone=True, whole=_one_operation)
    if isinstance(store, SQLiteFileStore):  # it tells what others wrote
        return OtherWriters(True, _BesideFile(str(store.path)))
    if _is_a(store, "langgraph.store.sqlite", "SqliteStore"):
        path = _sqlite_path(store)
        lock = _BesideFile(path) if path else None
        # Where an operation fails, it commits those before.
        return OtherWriters(path == "", lock, whole=_one_operation)
    if _is_a(store, "langgraph.store.sqlite.aio", "AsyncSqliteStore"):
        return OtherWriters(False, _BesideAsyncFile(store), whole=_one_operation)
    if _is_postgres(store):
        return OtherWriters(False, _advisory(store, namespace), fenced=True)
    return OtherWriters(alone=False, whole=_one_operation)


def _one_operation(ops: Sequence[Op]) -> bool:
    return len(ops) <= 1


_MOST_OPS: Final = 1_000
_MOST_BYTES: Final = 4_000_000


def _one_request(ops: Sequence[Op]) -> bool:
    """Say whether Chroma is sent operations in one request, which it carries out whole."""
    values = [op.value for op in ops if isinstance(op, PutOp)]
    deletes = values.count(None)
    return (
        len(values) <= _MOST_OPS
        and deletes in (0, len(values))
        and sum(len(orjson.dumps(value)) for value in values) < _MOST_BYTES
    )


def _is_a(store: BaseStore, module: str, name: str) -> bool:
    """Say whether a store is of a class whose package may not be installed."""
    loaded = sys.modules.get(module)  # if it is not loaded, nothing can be of its classes
    return loaded is not None and isinstance(store, getattr(loaded, name, ()))


def _is_postgres(store: BaseStore) -> bool:
    names = ("PostgresStore", "AsyncPostgresStore")
    return any(_is_a(store, "langgraph.store.postgres", name) for name in names)


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
        self,
        function: str,
        key: int,
        address: Mapping[str, Any],
        *,
        again: bool = False,
        lost_is_fine: bool = False,
    ) -> "Future[bool]":
        """Call a function of PostgreSQL, one call after the other.

        Args:
            function: Its name.
            key: Its argument.
            address: Where to connect.
            again: Call it once more, on a new connection, where the one there was is lost.
            lost_is_fine: Raise nothing where it is lost.
        """
        return self._thread.submit(self._ask, function, key, address, again, lost_is_fine)

    def _ask(
        self, function: str, key: int, address: Mapping[str, Any], again: bool, lost_is_fine: bool
    ) -> bool:
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
            if lost_is_fine:
                return False
            if again:
                return self._ask(function, key, address, again=False, lost_is_fine=False)
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
        """Give it back; where its connection is lost, the server has done so."""
        return self.session.ask("pg_advisory_unlock", self.key, self.address, lost_is_fine=True)


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


class PutNew(Carried):
    """A write of a record that is not there yet, where a store knows how; answers whether it was made."""

    def fits(self, store: BaseStore) -> bool:
        """Say whether a store knows."""
        return hasattr(store, "put_new")

    def carry_out(self, store: Any) -> list[Result]:
        """Make it."""
        return [store.put_new(op) for op in self]

    async def acarry_out(self, store: Any) -> list[Result]:
        """Make it, asynchronously."""
        return await asyncio.to_thread(self.carry_out, store)


_FIRST: Final = """
    INSERT INTO store (prefix, key, value) VALUES (%s, %s, %s::jsonb)
    ON CONFLICT (prefix, key) DO UPDATE SET value = excluded.value WHERE store.expires_at < now()
    RETURNING key
"""
_NEXT: Final = """
    UPDATE store SET value = value WHERE prefix = %s AND key = %s AND value = %s::jsonb RETURNING key
"""


class Fenced(Carried):
    """Writes of a bank in PostgreSQL, carried out only if nobody else has written meanwhile.

    The bank's stamp is compared and replaced in the transaction of the writes, on their connection.

    Args:
        ops: The operations.
        stamp: The one among them that writes the new stamp.
        seen: The stamp that the writer has read; `None`: there was none.

    Raises:
        BankConflictError: The stamp is another one now; nothing was written.
    """

    def __init__(self, ops: Iterable[Op], stamp: PutOp, seen: Mapping[str, Any] | None) -> None:
        super().__init__(ops)
        self._namespace = tuple(stamp.namespace)
        place = (".".join(self._namespace), stamp.key)
        # Either waits for whoever else writes the row, and finds what that one has left.
        self._statement: tuple[Any, tuple[str, ...]]
        if seen is None:
            self._statement = _FIRST, (*place, json.dumps(stamp.value))
        else:
            self._statement = _NEXT, (*place, json.dumps(seen))

    def fits(self, store: BaseStore) -> bool:
        """Say whether a store is in PostgreSQL."""
        return _is_postgres(store)

    def carry_out(self, store: Any) -> list[Result]:
        """Carry them out in one transaction."""
        if _is_a(store, "langgraph.store.postgres", "AsyncPostgresStore"):
            return asyncio.run_coroutine_threadsafe(self.acarry_out(store), store.loop).result()
        held = store.conn.connection() if _pooled(store) else store.lock
        with self._conflicts(), held as found:
            connection = found if _pooled(store) else store.conn
            with connection.transaction():
                self._check(connection.execute(*self._statement).fetchone())
                inner = _over(store, connection, threading.Lock())
                return cast("list[Result]", inner.batch(list(self)))

    async def acarry_out(self, store: Any) -> list[Result]:
        """Do as `carry_out` does, asynchronously."""
        if _is_a(store, "langgraph.store.postgres", "PostgresStore"):
            return await asyncio.to_thread(self.carry_out, store)
        held = store.conn.connection() if _pooled(store) else store.lock
        with self._conflicts():
            async with held as found:
                connection = found if _pooled(store) else store.conn
                async with connection.transaction():
                    cursor = await connection.execute(*self._statement)
                    self._check(await cursor.fetchone())
                    inner = _over(store, connection, asyncio.Lock())
                    return cast("list[Result]", await inner.abatch(list(self)))

    def _check(self, row: object) -> None:
        if row is None:
            msg = (
                "another writer has written to it since this one read it: the lock was lost, such as"
                " when the server restarted; nothing was written, file again"
            )
            raise BankConflictError(msg, namespace=self._namespace)

    @contextmanager
    def _conflicts(self) -> Iterator[None]:
        from psycopg.errors import SerializationFailure  # noqa: PLC0415  (an extra)

        try:
            yield
        except SerializationFailure:  # how stricter isolation says that the row has moved
            self._check(None)


def _pooled(store: Any) -> bool:
    return hasattr(store.conn, "conninfo")  # as `address_of` tells them apart


def _over(store: Any, connection: Any, lock: object) -> Any:
    """Return a store like another one, on a connection that is in a transaction."""
    inner = copy.copy(store)
    inner.conn, inner.pipe, inner.lock = connection, None, lock
    for name in ("_task", "_ttl_sweeper_thread", "_ttl_sweeper_task"):  # not its own to end
        if hasattr(inner, name):
            setattr(inner, name, None)
    return inner
