"""Tables in a SQLite file that any number of threads and processes share.

A file may come from somebody else. Its schema can hold programs: views, triggers, computed columns,
checks and indexes on expressions. So nothing is read from a file, and nothing written to it, until its
schema is known to be one of ours (`_expected`). Files of other libraries that we open are checked here
too (`check_file`).
"""

import os
import re
import sqlite3
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Final

from filelock import FileLock

from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.forks import at_fork, fork_error, renewed

_PATIENCE_SECONDS: Final = 60.0
"""How long to wait for another process that is writing, or for a thread before a fork."""
_SIDECARS: Final = ("-wal", "-shm", "-journal")
"""What SQLite opens next to a file."""
_MOST_SCHEMA: Final = 1_000
"""Most tables and indexes of a file whose schema is read."""
_SCHEMA_STEPS: Final = 1_000_000
"""Instructions of SQLite's machine within which a schema must be read: a time on any machine."""
_CHECK_STEPS: Final = 50_000_000
"""The same for one check of the content. A file of `_CHECKED_BYTES` takes a tenth of it at most."""
_CHECKED_BYTES: Final = 8 << 20
"""Size up to which all of a file is checked when it is opened."""
_SQL_BYTES: Final = 1 << 20
"""Longest statement, also within a schema."""

_TYPES: Final = {"TEXT": "text", "INTEGER": "integer", "BLOB": "blob"}
"""What `typeof` says of a value of a column."""

Objects = frozenset[tuple[str, str, str, str]]
"""What a schema holds: type, name, table and SQL of each object."""


_LOST: Final[list[sqlite3.Connection | None]] = []
"""Connections that a child inherited, and must not close."""


class DamagedError(sqlite3.DatabaseError):
    """A file holds a value that nothing of ours writes; within a transaction it becomes an `InputError`."""


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
    earlier: tuple[str, ...] = ()
    """Schemas that versions of before made under the same number. Tables that they lack are added
    when such a file is opened for writing."""


def harden(connection: sqlite3.Connection) -> None:
    """Let a schema run as little as SQLite allows, and limit how long reading it may take."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _SQL_BYTES)
    connection.set_progress_handler(lambda: 1, _SCHEMA_STEPS)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def trust(connection: sqlite3.Connection) -> None:
    """Let a connection whose schema was checked take as long as it needs."""
    connection.set_progress_handler(None, 0)


def refuse_special(path: Path) -> None:
    """Refuse what is there and no ordinary file: opening a pipe would never end.

    Raises:
        OSError: It is no file, or something next to it that SQLite would open is none, or the path
            leads nowhere, such as links that lead to one another.
    """
    try:
        modes = {path: path.stat().st_mode}
    except FileNotFoundError:
        return
    except ValueError as error:  # such as NUL in a name
        raise OSError(str(error)) from error
    real = path.resolve()
    for suffix in _SIDECARS:
        beside = real.with_name(real.name + suffix)
        if os.path.lexists(beside):
            modes[beside] = beside.lstat().st_mode
    for each, mode in modes.items():
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a pipe, device, socket or link"
            msg = f"{each.name} is {what}, not an ordinary file"
            raise OSError(msg)


def objects(connection: sqlite3.Connection) -> Objects:
    """Return what a schema holds.

    Raises:
        DamagedError: It holds what no schema of ours can.
    """
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_master LIMIT ?",
        (_MOST_SCHEMA + 1,),
    ).fetchall()
    if len(rows) > _MOST_SCHEMA or not all(isinstance(each, str) for row in rows for each in row):
        msg = "its schema is not one of ours"
        raise DamagedError(msg)
    # Spaces and line breaks stand as they were typed in the version that made it.
    return frozenset((kind, name, of, " ".join(sql.split())) for kind, name, of, sql in rows)


@lru_cache(maxsize=64)
def _expected(schema: str) -> Objects:
    """Return what a schema that some statements made holds."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in schema.split(";"):
            connection.execute(statement)
        return objects(connection)


@lru_cache(maxsize=64)
def _wrong_values(schema: str) -> tuple[str, ...]:
    """Return queries that find values of other types than a schema's columns have, one a table."""
    found = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in schema.split(";"):
            connection.execute(statement)
        tables = [name for kind, name, _, _ in objects(connection) if kind == "table"]
        for table in sorted(tables):
            wrong = []
            rows = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
            for _, name, kind, needed, _, _ in rows:
                null = "" if needed else ", 'null'"
                wrong.append(f"typeof(\"{name}\") NOT IN ('{_TYPES[kind]}'{null})")
            found.append(f'SELECT 1 FROM "{table}" WHERE {" OR ".join(wrong)} LIMIT 1')  # noqa: S608
    return tuple(found)


_PLAIN_INDEX: Final = re.compile(
    r"CREATE (UNIQUE )?INDEX [\w\"']+ ON [\w\"']+ ?\([\w ,]+\)( WHERE \w+ IS NOT NULL)?|"
)
_ACTIVE: Final = re.compile(
    r"\b(VIRTUAL|CHECK|GENERATED|COLLATE|AS)\b|\bDEFAULT\s*\(", re.IGNORECASE
)


def check_file(path: Path, tables: Collection[str] = (), *, virtual: Collection[str] = ()) -> None:
    """Refuse a file of another library whose tables do more than keep what is written to them.

    Args:
        path: The file; one that is missing or empty is fine.
        tables: The tables that are used; empty: all. What else is in the file does not matter.
        virtual: Virtual tables that are fine, as their statements stand in the file.

    Raises:
        sqlite3.DatabaseError: It is such a file, or damaged.
        OSError: The path leads nowhere.
    """
    refuse_special(path)
    if not path.exists() or path.stat().st_size == 0:
        return
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE_SECONDS)) as connection:
        harden(connection)
        for kind, name, table, sql in sorted(objects(connection)):
            if sql in virtual or (tables and not {name.lower(), table.lower()} & {*tables}):
                continue
            plain = kind == "table" and not _ACTIVE.search(sql)
            if not plain and not (kind == "index" and _PLAIN_INDEX.fullmatch(sql)):
                msg = f"its {kind} {name!r:.80} is none that keeps only what is written"
                raise DamagedError(msg)


@contextmanager
def open_checkpoints(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file of LangGraph's checkpoints, for its `SqliteSaver`.

    Raises:
        sqlite3.DatabaseError: It is damaged, or no such file.
        OSError: The path leads nowhere.
    """
    check_file(path, CHECKPOINTS)
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        harden(connection)
        trust(connection)
        yield connection


CHECKPOINTS: Final = ("checkpoints", "writes")
"""The tables of LangGraph's SQLite checkpointer."""


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
        self._looked: tuple[int, int, int] | None = None
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
        refuse_special(self.path)
        self._reading, self._immutable = self.read_only or is_sealed(self.path), False
        if self._reading and write:
            msg = (
                f"{self.path}: {self.layout.kind} can only be read here: the file, or its folder"
                " (where SQLite keeps its log), is read-only. Make both writable, or work on a copy"
            )
            raise InfrastructureError(msg)
        if self._reading:
            try:
                return self._checked(self._connect("ro"))
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
            return self._checked(self._connect("ro&immutable=1"))
        self._look()
        if (made := self._join()) is not None:
            return made
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite does not wait its turn when several processes turn a new file to WAL.
        with FileLock(f"{self.path}.lock", timeout=_PATIENCE_SECONDS):
            return self._connect("rwc")

    def _look(self) -> None:
        """Check what is there before it is opened for writing, which may change it."""
        if not self.path.exists():
            return
        try:
            connection = self._raw("ro")
            try:
                self._refuse_cut(connection)
                if not self._is_new(connection):
                    self._checked(connection)
            finally:
                connection.close()
        except sqlite3.OperationalError as error:
            # Without writing it cannot be read, such as after a crash: it is checked all the same.
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                raise

    def _checked(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Refuse a small file in which anything is wrong; what is wrong in a large one shows when it is read."""
        try:
            pages, size = _paging(connection)
            found = self.path.stat()
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            if pages * size <= _CHECKED_BYTES and seen != self._looked:
                self._looked = seen
                connection.set_progress_handler(lambda: 1, _CHECK_STEPS)
                self._check_content(connection)
        except BaseException:
            connection.close()
            raise
        trust(connection)
        return connection

    def _check_content(self, connection: sqlite3.Connection) -> None:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise DamagedError(" ".join(str(found).split()))
        schema = self._schema_of(connection)
        for query in _wrong_values(schema):
            if connection.execute(query).fetchone():
                msg = "a value is of another type than its column"
                raise DamagedError(msg)

    def _schema_of(self, connection: sqlite3.Connection) -> str:
        """Return which of the known schemas a file has.

        Raises:
            DamagedError: None of them.
        """
        found = objects(connection)
        for schema in (self.layout.schema, *self.layout.earlier):
            if found == _expected(schema):
                return schema
        known = {name for _, name, _, _ in _expected(self.layout.schema)}
        odd = sorted((name, kind) for kind, name, _, _ in found - _expected(self.layout.schema))
        name, kind = min(odd, key=lambda each: each[0] in known, default=("", ""))
        msg = f"its {kind} {name!r:.80} is not one of ours" if kind else "a table is missing"
        raise DamagedError(msg)

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
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_PATIENCE_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        harden(connection)
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = self._raw(mode)
        try:
            self._prepare(connection, is_new=self._is_new(connection))
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, *, is_new: bool) -> None:
        """Set a connection up; make the tables in a new file, and those that an earlier one lacks."""
        self._refuse_cut(connection)
        trust(connection)
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
        elif self._schema_of(connection) != layout.schema:
            connection.execute("BEGIN IMMEDIATE")
            there = {name for _, name, _, _ in objects(connection)}
            for statement in layout.schema.split(";"):
                if (made := _MADE.match(statement)) and made[1] not in there:
                    connection.execute(statement)
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
        self._schema_of(connection)
        return False

    def _refuse_cut(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that lost its end: what is missing of a page would be read as zeros."""
        pages, size = _paging(connection)
        if not self._is_logged() and 0 < self.path.stat().st_size < max(pages, 1) * size:
            msg = "it was cut"
            raise DamagedError(msg)

    def _is_logged(self) -> bool:
        """Whether the log beside the file holds anything."""
        log = Path(f"{self.path.resolve()}-wal")
        return log.exists() and log.stat().st_size > 0

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            if _is_of_the_content(error):
                raise self._damaged("it cannot be read as what it should be") from error
            # Locked for long, disk full, no such folder: another time it may work.
            kind = InfrastructureError if self._connection is not None else InputError
            msg = (
                f"{self.path}: {self.layout.kind} cannot be used: {error}; put that right"
                " and try again, what it holds is kept"
            )
            raise kind(msg) from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def _damaged(self, why: object) -> InputError:
        words = " ".join(str(why).split())
        kind, advice = self.layout.kind, self.layout.advice
        return InputError(f"{self.path}: not {kind}, or damaged ({words:.200}); {advice}")


_MADE: Final = re.compile(r"\s*CREATE (?:TABLE|INDEX)(?: IF NOT EXISTS)? (\w+)")


def _is_of_the_content(error: Exception) -> bool:
    """Say whether an error of use is one of the content: text that is no UTF-8, or an endless schema."""
    return isinstance(error, sqlite3.OperationalError) and (
        getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
        or "decode to UTF-8" in str(error)
    )


def _paging(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return how many pages a database has, and how long each is."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return pages, size
