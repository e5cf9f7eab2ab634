"""Where vectors are kept, so that no text is embedded twice."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from langgraft._core.errors import SettingsError
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
