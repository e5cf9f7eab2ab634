"""Tables in a SQLite file that any number of threads and processes share."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from filelock import FileLock

from langgraft._core.errors import InfrastructureError, InputError

_PATIENCE_SECONDS: Final = 60.0
"""How long to wait for another process that is writing."""


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
        self._lock = Lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        with self.transaction(write=False):
            pass

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Cursor]:
        """Do everything in the block, or nothing.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: It cannot be used now.
        """
        with self._lock, self._naming_the_file():
            if self._process != os.getpid():
                # SQLite connections must not cross a fork: leave the parent's alone.
                self._connection, self._process = None, os.getpid()
            if self._connection is None:
                self._connection = self._open()
            with closing(self._connection.cursor()) as cursor:
                # A reader that turned writer could find another one in its way: say so at once.
                cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield cursor
                    self._connection.commit()
                except BaseException:
                    self._connection.rollback()
                    raise

    def checkpoint(self) -> None:
        """Empty the log beside the file, as far as nobody else still reads in it.

        Raises:
            InfrastructureError: The file cannot be used now.
        """
        with self._lock, self._naming_the_file():
            if self._connection is not None and self._process == os.getpid():
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
        with self.transaction(write=False):  # opens it
            pass
        with self._lock, self._naming_the_file():
            connection = self._connection
            assert connection is not None
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
        with self._lock, self._naming_the_file(), closing(self._open()) as connection:
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
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        # Newer Pythons warn of connections that nobody closed.
        connection = getattr(self, "_connection", None)
        if connection is not None and self._process == os.getpid():
            connection.close()

    def _open(self) -> sqlite3.Connection:
        if self.read_only:
            try:
                return self._connect("ro")
            except sqlite3.OperationalError as error:
                # In a folder that cannot be written to SQLite cannot make its log; nor can anybody else.
                sealed = error.sqlite_errorcode & 0xFF in (
                    sqlite3.SQLITE_READONLY,
                    sqlite3.SQLITE_CANTOPEN,
                )
                if not sealed or Path(f"{self.path.resolve()}-wal").exists():
                    raise
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
        if self.read_only:
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
        if (application, version, tables) == (0, 0, 0) and not self.read_only:
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
        log = Path(f"{self.path.resolve()}-wal")
        logged = log.exists() and log.stat().st_size > 0
        if not logged and 0 < self.path.stat().st_size < max(pages, 1) * size:
            msg = "it was cut"
            raise sqlite3.DatabaseError(msg)

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
