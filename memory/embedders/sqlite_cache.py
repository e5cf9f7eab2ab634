"""Vectors in a SQLite file, which outlives the process that paid for them."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from langgraft._core.errors import InfrastructureError, InputError
from langgraft.memory.embedders.caches import Vector, VectorKey

_APPLICATION: Final = 0x6C677663
"""Written into the file's header, so that another program's database is not taken for ours."""

_LAYOUT: Final = 1
_SCHEMA: Final = """
CREATE TABLE vectors (
    embedder TEXT NOT NULL,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, role, text)
) WITHOUT ROWID
"""
_PATIENCE_SECONDS: Final = 60.0
"""How long to wait for another process that is writing."""

_NUMBER: Final = np.dtype("<f4")


class SQLiteVectors:
    """Keep vectors in a file, as little-endian float32.

    Any number of threads and processes may share it. A vector is on disk once `put` returns, and
    a process that is killed in between leaves the file as it was.

    Args:
        path: The file; it is created, its folder is not.

    Raises:
        InputError: The file cannot be opened, or is not one of ours.
    """

    on_disk = True

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        with self._transaction() as cursor:
            self._check(cursor)

    def get(self, keys: Sequence[VectorKey]) -> dict[VectorKey, Vector]:
        """Return what is there.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be read now.
        """
        if not keys:
            return {}
        with self._transaction(write=False) as cursor:
            rows = ((key, self._row(cursor, key)) for key in keys)
            return {key: self._vector(key, blob) for key, blob in rows if blob is not None}

    def put(self, vectors: Mapping[VectorKey, Vector]) -> None:
        """Keep vectors, all or none.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be written now.
        """
        rows = [(*key, vector.astype(_NUMBER).tobytes()) for key, vector in vectors.items()]
        if rows:
            with self._transaction() as cursor:
                cursor.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        # Newer Pythons warn of connections that nobody closed.
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (SQLiteVectors, (self.path,))

    @contextmanager
    def _transaction(self, *, write: bool = True) -> Iterator[sqlite3.Cursor]:
        """Do everything in the block, or nothing; one thread at a time."""
        with self._lock, self._naming_the_file():
            connection = self._connection or self._open()
            with closing(connection.cursor()) as cursor:
                # A reader that turned writer could find another one in its way: say so at once.
                cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield cursor
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise

    def _open(self) -> sqlite3.Connection:
        self._connection = sqlite3.connect(
            self.path, timeout=_PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
        )
        return self._connection

    def _check(self, cursor: sqlite3.Cursor) -> None:
        (application,) = cursor.execute("PRAGMA application_id").fetchone()
        (layout,) = cursor.execute("PRAGMA user_version").fetchone()
        (tables,) = cursor.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (application, layout, tables) == (0, 0, 0):
            cursor.execute(_SCHEMA)
            cursor.execute(f"PRAGMA application_id = {_APPLICATION}")
            cursor.execute(f"PRAGMA user_version = {_LAYOUT}")
        elif (application, layout) != (_APPLICATION, _LAYOUT):
            msg = f"{self.path}: this database is no cache of vectors of this version; {_ADVICE}"
            raise InputError(msg)

    def _row(self, cursor: sqlite3.Cursor, key: VectorKey) -> bytes | None:
        statement = "SELECT vector FROM vectors WHERE embedder = ? AND role = ? AND text = ?"
        row = cursor.execute(statement, key).fetchone()
        return None if row is None else row[0]

    def _vector(self, key: VectorKey, blob: bytes) -> Vector:
        if not blob or len(blob) % _NUMBER.itemsize:
            msg = f"{self.path}: the vector of {key} has {len(blob)} bytes; {_ADVICE}"
            raise InputError(msg)
        return np.frombuffer(blob, dtype=_NUMBER).astype(np.float32)

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            # Locked for long, disk full, folder missing: another time it may work.
            kind = InfrastructureError if self._connection is not None else InputError
            msg = f"{self.path}: the cache of vectors cannot be used: {error}"
            raise kind(msg) from error
        except sqlite3.DatabaseError as error:
            msg = f"{self.path}: not a cache of vectors, or damaged ({error}); {_ADVICE}"
            raise InputError(msg) from error


_ADVICE = "give another path, or delete the file: vectors are then asked for again"
