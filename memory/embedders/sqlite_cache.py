"""Vectors in a SQLite file, which outlives the process that paid for them."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from langgraft._core.errors import InputError
from langgraft._core.sqlite_file import Layout, SQLiteFile
from langgraft.memory.embedders.caches import Vector, VectorKey

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
