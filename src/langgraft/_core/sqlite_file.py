"""Tables in a SQLite file that any number of threads and processes share."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from filelock import FileLock

from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.forks import at_fork, fork_error, renewed

_PATIENCE_SECONDS: Final = 60.0
"""How long to wait for another process that is writing, or for a thread before a fork."""

_LOST: Final[list[sqlite3.Connection | None]] = []
"""Connections that a child inherited, and must not close."""


def is_sealed(path: Path) -> bool:
    """Whether a database is there and may not be written to, as where its folder is read-only."""
    places = (path, path.resolve().parent)
    return path.exists() and not all(os.access(place, os.W_OK) for place in places)


@dataclass(frozen=True, slots=True)
class Layout:
    """What kind of file it is."""

    kind: str
    """For messages, with its article: `an execution cache`."""
    application: int
    """Written into the file's header, so that another program's database is not taken for ours."""
    version: int
    schema: str
    """The statements that make its tables, with semicolons between them."""
    advice: str
    """What to do about a file that cannot be used."""
    durable: bool = True
    """Whether a transaction is on disk once its block ends; otherwise a power loss may take the
    last ones, and never the file."""
    overwrites: bool = False
    """Whether what is deleted is overwritten in the file, so that nobody reads it there."""


class SQLiteFile:
    """Gives its one connection to one thread at a time.

    A process that is killed within a transaction leaves the file as it was.

    SQLite keeps locks per process and notes them in memory that a child inherits: a connection that the
    child opens while the parent has one takes no lock. So the connection is closed before each fork, once
    the transaction of another thread has ended. Parent and child open the file again when they need it.

    A file that is there and may not be written to, such as on a read-only file system, can be read.

    Args:
        path: The file; created together with its folder.
        layout: What kind of file it is.
        read_only: The file must be there, and is not written to.

    Raises:
        InputError: The file cannot be opened, is damaged, or is of another kind.
    """

    def __init__(self, path: Path | str, layout: Layout, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.layout = layout
        self.read_only = read_only
        self._lock = renewed(Lock())
        self._connection: sqlite3.Connection | None = None
        self._reading = read_only
        self._immutable = False
        self._ready_for_fork = self._lost = False
        at_fork("before", self._before_fork)
        at_fork("in_parent", self._in_parent)
        at_fork("in_child", self._in_child)
        with self.transaction(write=False):
            pass

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Cursor]:
        """Do everything in the block, or nothing.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: It cannot be used, or not be written to, now.
        """
        with self._lock, self._naming_the_file(), self._let_go():
            connection = self._opened(write=write)
            with closing(connection.cursor()) as cursor:
                # A reader that turned writer could find another one in its way: say so at once.
                cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield cursor
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise

    def checkpoint(self) -> None:
        """Empty the log beside the file, as far as nobody else still reads in it.

        Raises:
            InfrastructureError: The file cannot be used now.
        """
        with self._lock, self._naming_the_file():
            if self._connection is not None:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def scrub(self) -> bool:
        """Rewrite the file of what it holds: nothing that was deleted is left in it or in its log.

        Others may have it open; who writes waits meanwhile.

        Returns:
            Whether the log is empty: not where somebody still reads what was there before.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: It cannot be used now.
        """
        with self._lock, self._naming_the_file():
            connection = self._opened(write=True)
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Cursor]:
        """Do everything in the block, or nothing, while nobody else has the file open; then shrink it.

        Raises:
            InputError: Somebody has, in this process or another one.
        """
        self.close()
        with self._lock, self._naming_the_file(), closing(self._open(write=True)) as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            try:
                # Who leaves the write-ahead log must be the only one there.
                connection.execute("PRAGMA journal_mode = DELETE").fetchall()
                cursor = connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                msg = f"{self.path}: is in use; try again once nothing has it open"
                raise InputError(msg) from error
            try:
                yield cursor
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            connection.execute("VACUUM")

    def close(self) -> None:
        """Close the file; the next transaction opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        # Newer Pythons warn of connections that nobody closed.
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    def _before_fork(self) -> None:
        if not self._lock.acquire(timeout=_PATIENCE_SECONDS):
            return
        self._ready_for_fork = True
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _in_parent(self) -> None:
        if self._ready_for_fork:
            self._ready_for_fork = False
            self._lock.release()

    def _in_child(self) -> None:
        # A thread was at work for too long, or C code forked, of which Python says nothing before.
        if self._connection is not None or (self._lock.locked() and not self._ready_for_fork):
            _LOST.append(self._connection)
            self._connection, self._lost = None, True
        self._ready_for_fork = False

    def _opened(self, *, write: bool) -> sqlite3.Connection:
        """Return the connection; under the lock."""
        if self._connection is not None and write and self._reading:
            self._connection.close()  # it may be writable by now
            self._connection = None
        if self._connection is None:
            self._connection = self._open(write=write)
        return self._connection

    @contextmanager
    def _let_go(self) -> Iterator[None]:
        """Close the file afterwards if nothing would tell us that it has changed; under the lock."""
        try:
            yield
        finally:
            if self._immutable and self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self, *, write: bool) -> sqlite3.Connection:
        if self._lost:
            raise fork_error(f"{self.path}: {self.layout.kind}", "fork while no thread uses it")
        self._reading, self._immutable = self.read_only or is_sealed(self.path), False
        if self._reading and write:
            msg = (
                f"{self.path}: {self.layout.kind} can only be read here: the file, or its folder"
                " (where SQLite keeps its log), is read-only. Make both writable, or work on a copy"
            )
            raise InfrastructureError(msg)
        if self._reading:
            try:
                return self._connect("ro")
            except sqlite3.OperationalError as error:
                # In a folder that cannot be written to SQLite cannot make its log.
                sealed = error.sqlite_errorcode & 0xFF in (
                    sqlite3.SQLITE_READONLY,
                    sqlite3.SQLITE_CANTOPEN,
                )
                if not sealed:
                    raise
                if self._is_logged():
                    msg = (
                        f"{self.path}: {self.layout.kind} was not closed, and what was written last"
                        f" is in {self.path.name}-wal. Open it once where its folder is writable"
                    )
                    raise InputError(msg) from error
            self._immutable = True
            return self._connect("ro&immutable=1")
        if (made := self._join()) is not None:
            return made
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite does not wait its turn when several processes turn a new file to WAL.
        with FileLock(f"{self.path}.lock", timeout=_PATIENCE_SECONDS):
            return self._connect("rwc")

    def _join(self) -> sqlite3.Connection | None:
        """Open the file if its tables and its log are there: then nothing is to be made in turn.

        SQLite is asked, and the file not read: to close it again would undo the locks that other
        connections of this process have on it.
        """
        if not self.path.exists():
            return None
        connection = self._raw("rw")
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode == "wal" and not self._is_new(connection):
                self._prepare(connection, is_new=False)
                return connection
        except sqlite3.DatabaseError:  # it is said by who waits its turn
            pass
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None

    def _raw(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_PATIENCE_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = self._raw(mode)
        try:
            self._prepare(connection, is_new=self._is_new(connection))
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, *, is_new: bool) -> None:
        """Set a connection up; make the tables in a new file."""
        self._refuse_cut(connection)
        if self._reading:
            return
        connection.execute("PRAGMA journal_mode = WAL")
        layout = self.layout
        connection.execute(f"PRAGMA synchronous = {'FULL' if layout.durable else 'NORMAL'}")
        connection.execute(f"PRAGMA secure_delete = {'ON' if layout.overwrites else 'OFF'}")
        if is_new:
            connection.execute("BEGIN IMMEDIATE")
            for statement in layout.schema.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {layout.application}")
            connection.execute(f"PRAGMA user_version = {layout.version}")
            connection.execute("COMMIT")

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        """Whether tables are to be made; refuse a file of another kind."""
        connection.execute("BEGIN")  # all of one moment: somebody may be making the tables
        application, version, tables = (
            connection.execute(query).fetchone()[0]
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        connection.execute("COMMIT")
        if (application, version, tables) == (0, 0, 0) and not self._reading:
            return True
        layout = self.layout
        if (application, version) != (layout.application, layout.version):
            msg = (
                f"{self.path}: this database is not {layout.kind} of this version; {layout.advice}"
            )
            raise InputError(msg)
        return False

    def _refuse_cut(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that lost its end: what is missing of a page would be read as zeros."""
        pages, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "page_size")
        )
        if not self._is_logged() and 0 < self.path.stat().st_size < max(pages, 1) * size:
            msg = "it was cut"
            raise sqlite3.DatabaseError(msg)

    def _is_logged(self) -> bool:
        """Whether the log beside the file holds anything."""
        log = Path(f"{self.path.resolve()}-wal")
        return log.exists() and log.stat().st_size > 0

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            # Locked for long, disk full, no such folder: another time it may work.
            kind = InfrastructureError if self._connection is not None else InputError
            msg = (
                f"{self.path}: {self.layout.kind} cannot be used: {error}; put that right"
                " and try again, what it holds is kept"
            )
            raise kind(msg) from error
        except sqlite3.DatabaseError as error:
            msg = f"{self.path}: not {self.layout.kind}, or damaged ({error}); {self.layout.advice}"
            raise InputError(msg) from error
