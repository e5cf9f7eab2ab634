"""An embedder that is asked once per text and checked before it is believed, and where vectors are kept."""

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from typing_extensions import override

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InfrastructureError, InputError, SettingsError
from langgraft._core.forks import renewed
from langgraft._core.sqlite_file import Layout, SQLiteFile, is_sealed
from langgraft.memory.embedders.base import Role, Vectors, read_answer

T = TypeVar("T")

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


_Cached: TypeAlias = dict[VectorKey, Vector]


class CachedEmbedder(Embeddings):
    """LangChain embeddings with a fingerprint and a cache.

    Each different text is embedded once as a document and once as a query, several at a time;
    answers with the wrong number of vectors, of different lengths, or with numbers that are not
    finite are refused and not kept. Two embedders with one fingerprint are equal.

    Args:
        make: Returns the embeddings; called when they are first needed, and once.
        description: What the vectors depend on; its digest is the fingerprint. No secrets: it
            goes into manifests.
        cache: Where vectors are kept; `None` keeps them in memory.

    Attributes:
        fingerprint: Digest of the description.
    """

    def __init__(
        self,
        make: Callable[[], Embeddings],
        description: Mapping[str, JSON],
        cache: VectorCache | None = None,
    ) -> None:
        self._make = make
        self._description = dict(description)
        self._cache: VectorCache = MemoryVectors() if cache is None else cache
        self._embeddings: Embeddings | None = None
        self._making = renewed(threading.Lock())
        self._dimensions: int | None = None
        self.fingerprint = digest(self._description)

    def describe(self) -> dict[str, JSON]:
        """Return what the vectors depend on, as JSON, for manifests."""
        return dict(self._description)

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts that are kept.

        Raises:
            InfrastructureError: The embedder's answer is no list of as many vectors.
        """
        rows: list[list[float]] = self.vectors(texts, "document").tolist()
        return rows

    @override
    def embed_query(self, text: str) -> list[float]:
        """Embed a text that others are compared with.

        Raises:
            InfrastructureError: The embedder's answer is no vector.
        """
        row: list[float] = self.vectors([text], "query")[0].tolist()
        return row

    @override
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Do as `embed_documents` does, asynchronously."""
        rows: list[list[float]] = (await self.avectors(texts, "document")).tolist()
        return rows

    @override
    async def aembed_query(self, text: str) -> list[float]:
        """Do as `embed_query` does, asynchronously."""
        row: list[float] = (await self.avectors([text], "query"))[0].tolist()
        return row

    def vectors(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one row per text; texts that are not cached are embedded in one call."""
        keys = self._keys(texts, role)
        cached = self._cache.get(list(keys))
        missing = [text for key, text in keys.items() if key not in cached]
        if missing:
            inner = self._inner()
            if role == "query":
                answer = [inner.embed_query(text) for text in missing]
            else:
                answer = inner.embed_documents(missing)
            fresh = self._checked(missing, role, answer)
            self._cache.put(fresh)
            cached |= fresh
        return self._matrix(texts, role, cached)

    async def avectors(self, texts: Sequence[str], role: Role) -> Vectors:
        """Do as `vectors` does, asynchronously."""
        keys = self._keys(texts, role)
        cached = await self._cached(self._cache.get, list(keys))
        missing = [text for key, text in keys.items() if key not in cached]
        if missing:
            inner = self._embeddings
            if inner is None:
                inner = await asyncio.to_thread(self._inner)
            if role == "query":
                answer = [await inner.aembed_query(text) for text in missing]
            else:
                answer = await inner.aembed_documents(missing)
            fresh = self._checked(missing, role, answer)
            await self._cached(self._cache.put, fresh)
            cached |= fresh
        return self._matrix(texts, role, cached)

    @property
    def cache(self) -> VectorCache:
        """Where vectors are kept."""
        return self._cache

    def share(self, rows: Mapping[str, Vector]) -> None:
        """Have vectors of documents that are cached in memory be rows that somebody keeps anyway.

        Whoever moves or changes such rows says where the vectors are then.
        """
        if isinstance(self._cache, MemoryVectors):
            self._cache.share({self._key(text, "document"): row for text, row in rows.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CachedEmbedder) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._description})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (CachedEmbedder, (self._make, self._description, self._cache))

    async def _cached(self, call: Callable[..., T], argument: object) -> T:
        if self._cache.on_disk:
            return await asyncio.to_thread(call, argument)
        return call(argument)

    def _inner(self) -> Embeddings:
        with self._making:
            if self._embeddings is None:
                self._embeddings = self._make()
            return self._embeddings

    def _key(self, text: str, role: Role) -> VectorKey:
        return (self.fingerprint, role, _text_digest(text))

    def _keys(self, texts: Sequence[str], role: Role) -> dict[VectorKey, str]:
        return {self._key(text, role): text for text in texts}

    def _checked(self, texts: Sequence[str], role: Role, answer: object) -> _Cached:
        """Return what an embedder answered, by key.

        Raises:
            InfrastructureError: It is not one finite vector of the usual length per text.
        """
        try:
            rows = read_answer(answer, len(texts))
        except ValueError as error:
            raise self._refused(str(error)) from error
        self._check_dimensions(rows.shape[1])
        # Copies: a view would keep all of them in memory as long as one is cached.
        return {self._key(text, role): row.copy() for text, row in zip(texts, rows, strict=True)}

    def _check_dimensions(self, dimensions: int) -> None:
        if self._dimensions not in (None, dimensions):
            msg = f"vectors of {dimensions} numbers, where they had {self._dimensions} before"
            raise self._refused(msg)
        self._dimensions = dimensions

    def _matrix(self, texts: Sequence[str], role: Role, cached: _Cached) -> Vectors:
        if not texts:
            return np.zeros((0, self._dimensions or 0), dtype=np.float32)
        rows = [cached[self._key(text, role)] for text in texts]
        for row in rows:
            self._check_dimensions(row.size)
        return np.stack(rows)

    def _refused(self, what: str) -> InfrastructureError:
        return InfrastructureError(
            f"embedder {self._description} returned {what}; nothing of it was kept: check the"
            " model, or give another fingerprint if it was changed"
        )


def _text_digest(text: str) -> str:
    # Not `_core.canonical.text_digest`: a store's text may hold lone surrogates.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class MemoryVectors:
    """Keep the most recently used vectors in memory.

    `on_disk` is false: they go with the process.

    Args:
        capacity: How many; 100,000 vectors of 384 numbers take about 150 MB, those of documents
            together with the index that has them.

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
        self._lock = renewed(Lock())

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

    def forget(self, texts: Iterable[str]) -> int:
        """Delete the vectors of texts, whichever embedder they are of, and return how many there were."""
        gone = {_text_digest(text) for text in texts}
        with self._lock:
            keys = [key for key in self._vectors if key[2] in gone]
            for key in keys:
                del self._vectors[key]
            return len(keys)

    def share(self, rows: Mapping[VectorKey, Vector]) -> None:
        """Keep rows in the place of vectors that equal them; others are passed over."""
        with self._lock:
            for key, row in rows.items():
                before = self._vectors.get(key)
                if before is not None and np.array_equal(before, row):
                    self._vectors[key] = row

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

    `on_disk` is true: they outlive the process.

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
        """Keep vectors, all or none; none if the file is read-only, so that it serves those who only read.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be written now.
        """
        rows = [(*key, vector.astype(_NUMBER).tobytes()) for key, vector in vectors.items()]
        if rows and not is_sealed(self.path):
            with self._file.transaction(write=True) as cursor:
                cursor.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def forget(self, texts: Iterable[str]) -> int:
        """Delete the vectors of texts, whichever embedder they are of, and return how many there were.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be written now.
        """
        gone = [(_text_digest(text),) for text in texts]
        with self._file.transaction(write=True) as cursor:
            # A key begins with the embedder: this looks at all keys, once.
            cursor.execute("CREATE TEMP TABLE IF NOT EXISTS forgotten (text TEXT PRIMARY KEY)")
            cursor.execute("DELETE FROM forgotten")
            cursor.executemany("INSERT OR IGNORE INTO forgotten VALUES (?)", gone)
            cursor.execute("DELETE FROM vectors WHERE text IN (SELECT text FROM forgotten)")
            return cursor.rowcount

    def scrub(self) -> bool:
        """Rewrite the file, so that nothing of what was deleted is left in it; see `SQLiteFile.scrub`."""
        return self._file.scrub()

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
        if not isinstance(blob, bytes) or not blob or len(blob) % _NUMBER.itemsize:
            has = f"{len(blob)} bytes" if isinstance(blob, bytes) else "no bytes"
            msg = f"{self.path}: the vector of {key} has {has}; {_FILE.advice}"
            raise InputError(msg)
        return np.frombuffer(blob, dtype=_NUMBER).astype(np.float32)
