"""Where vectors are kept, so that no text is embedded twice: in memory, or in a SQLite file."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from langgraft._core.errors import InputError, SettingsError
from langgraft._core.sqlite_file import Layout, SQLiteFile
from langgraft.memory.embedders.base import Role

Vector: TypeAlias = NDArray[np.float32]

VectorKey: TypeAlias = tuple[str, Role, str]
"""Fingerprint of the embedder, what the text is embedded as, and the digest of the text."""


class VectorCache(Protocol):
    """Keeps vectors by key; safe for threads."""

    @property
    def on_disk(self) -> bool:
        """Whether a call may wait for a disk: an event loop then calls it in a thread."""
        ...

    def get(self, keys: Sequence[VectorKey]) -> dict[VectorKey, Vector]:
        """Return what is there."""
        ...

    def put(self, vectors: Mapping[VectorKey, Vector]) -> None:
        """Keep vectors, all or none."""
        ...


class MemoryVectors:
    """Keep the most recently used vectors in memory.

    Args:
        capacity: How many; 100,000 vectors of 384 numbers take about 150 MB.

    Raises:
        SettingsError: `capacity` is below 1.
    """

    on_disk = False

    def __init__(self, capacity: int = 100_000) -> None:
        if capacity < 1:
            msg = f"capacity must be at least 1, got {capacity!r}"
            raise SettingsError(msg)
        self.capacity = capacity
        self._vectors: dict[VectorKey, Vector] = {}
        self._lock = Lock()

    def get(self, keys: Sequence[VectorKey]) -> dict[VectorKey, Vector]:
        """Return what is there, and count it as used."""
        with self._lock:
            found = {key: self._vectors.pop(key) for key in keys if key in self._vectors}
            self._vectors.update(found)
            return found

    def put(self, vectors: Mapping[VectorKey, Vector]) -> None:
        """Keep vectors; the least recently used make room."""
        with self._lock:
            for key, vector in vectors.items():
                self._vectors.pop(key, None)
                self._vectors[key] = vector
            while len(self._vectors) > self.capacity:
                del self._vectors[next(iter(self._vectors))]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # A copy, such as one for another process, starts empty.
        return (MemoryVectors, (self.capacity,))


_FILE: Final = Layout(
    kind="a cache of vectors",
    application=0x6C677663,
    version=1,
    schema="""
        CREATE TABLE vectors (
            embedder TEXT NOT NULL,
            role TEXT NOT NULL,
            text TEXT NOT NULL,
            vector BLOB NOT NULL,
            PRIMARY KEY (embedder, role, text)
        ) WITHOUT ROWID
    """,
    advice="give another path, or delete the file: vectors are then asked for again",
)

_NUMBER: Final = np.dtype("<f4")


class SQLiteVectors:
    """Keep vectors in a file, as little-endian float32.

    Any number of threads and processes may share it. A vector is on disk once `put` returns, and
    a process that is killed in between leaves the file as it was.

    Args:
        path: The file; created together with its folder.

    Raises:
        InputError: The file cannot be opened, or is not one of ours.
    """

    on_disk = True

    def __init__(self, path: Path | str) -> None:
        self._file = SQLiteFile(path, _FILE)
        self.path = self._file.path

    def get(self, keys: Sequence[VectorKey]) -> dict[VectorKey, Vector]:
        """Return what is there.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be read now.
        """
        if not keys:
            return {}
        with self._file.transaction(write=False) as cursor:
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
            with self._file.transaction(write=True) as cursor:
                cursor.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (SQLiteVectors, (self.path,))

    def _row(self, cursor: sqlite3.Cursor, key: VectorKey) -> bytes | None:
        statement = "SELECT vector FROM vectors WHERE embedder = ? AND role = ? AND text = ?"
        row = cursor.execute(statement, key).fetchone()
        return None if row is None else row[0]

    def _vector(self, key: VectorKey, blob: bytes) -> Vector:
        if not blob or len(blob) % _NUMBER.itemsize:
            msg = f"{self.path}: the vector of {key} has {len(blob)} bytes; {_FILE.advice}"
            raise InputError(msg)
        return np.frombuffer(blob, dtype=_NUMBER).astype(np.float32)
