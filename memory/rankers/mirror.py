"""Vectors in one float32 matrix, compared with a query: fast estimates and exact cosines."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.embedders.base import Vectors
from langgraft.memory.rankers.documents import SLACK, Floats, mapped, reaching

_NONE: Final = math.inf
"""Length of the vector of a slot that has none."""

_CHUNK: Final = 1024
"""Rows compared at a time where float64 is needed: 3 MB at 384 dimensions."""

_GATHERED: Final = 128
"""Rows copied at a time before they are multiplied: so few are still near the processor then,
which takes a third less time than 1,024."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """Vectors times powers of two, so that their largest entries lie between ½ and 1.

    A power of two changes no digit, and the cosine of vectors is that of their multiples. So
    neither huge nor tiny numbers overflow or vanish when they are multiplied.
    """

    rows: Vectors
    lengths: Floats
    """Euclidean lengths of the rows; 0 for a vector of zeros, which has no direction."""

    @classmethod
    def of(cls, vectors: Vectors) -> "Scaled":
        """Scale each row by itself."""
        wide = vectors.astype(np.float64)
        _, exponents = np.frexp(np.abs(wide).max(axis=1, initial=0.0))
        rows = np.ldexp(wide, -exponents[:, np.newaxis]).astype(np.float32)
        return cls(rows, np.sqrt(_sums(rows.astype(np.float64) ** 2)))


def _sums(rows: Floats) -> Floats:
    """Add up each row in a fixed order: right half to left half until one column is left.

    Only whole columns are added, so that a row's sum depends on nothing but the row, whatever
    a library's own sums do on another machine or at another place in memory. Overwrites `rows`.
    """
    width = rows.shape[1]
    while width > 1:
        half = (width + 1) // 2
        rows[:, : width - half] += rows[:, half:width]
        width = half
    return rows[:, 0].copy()


class Mirror:
    """The directions of a changing set of vectors, by slot: 0, 1, 2 …; a slot may have none.

    Args:
        dimensions: Length of the vectors.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.present = 0
        self._rows: Vectors = np.empty((0, dimensions), dtype=np.float32)
        self._lengths: Floats = np.empty(0)

    @property
    def room(self) -> int:
        """Number of slots there is room for: those beyond have no vector."""
        return len(self._rows)

    def reserve(self, slots: int) -> None:
        """Make room for as many slots; those that are new have no vector."""
        room = len(self._rows)
        if slots <= room:
            return
        # The first time there are as many as will ever be, perhaps; then they come one by one.
        size = max(slots, math.ceil(1.5 * room))
        rows = np.zeros((size, self.dimensions), dtype=np.float32)
        lengths = np.full(size, _NONE)
        rows[:room], lengths[:room] = self._rows, self._lengths
        self._rows, self._lengths = rows, lengths

    def set(self, slot: int, row: NDArray[np.float32], length: float) -> None:
        """Enter a scaled vector that is not zero in a slot that has none."""
        self._rows[slot], self._lengths[slot] = row, length
        self.present += 1

    def remove(self, slot: int) -> None:
        """Forget the vector of a slot, if it has one."""
        if slot < len(self._lengths) and self._lengths[slot] != _NONE:
            self._lengths[slot] = _NONE
            self.present -= 1

    def sweep(self, places: NDArray[np.intp]) -> None:
        """Move every slot to `places[slot]`, which rises; -1 drops it, and it has no vector."""
        kept = np.flatnonzero(places[: len(self._rows)] >= 0)
        self._rows, self._lengths = self._rows[kept], self._lengths[kept]

    def estimates(self, query: Scaled) -> NDArray[np.float32]:
        """Return the cosine of `query` (one row) with every slot, off by `error` at most.

        NDArray[np.intp] without a vector have -∞.
        """
        # Not `@`: einsum is as fast, for memory is what one waits for, and starts no threads.
        products: NDArray[np.float32] = np.einsum("ij,j->i", self._rows, query.rows[0])
        return self._estimated(products, self._lengths, query)

    @property
    def error(self) -> float:
        """How far an estimate can be from the cosine, in whatever order float32 was summed.

        n products and n - 1 sums, each off by half a unit in the last place, keep a dot product
        within n / 2**24 of the product of the lengths; a few more roundings come after it.
        """
        return (self.dimensions + 16) * 2.0**-24

    def estimates_at(self, query: Scaled, slots: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the cosine of `query` (one row) with some slots, off by `error` at most."""
        products = np.empty(slots.size, dtype=np.float32)
        for start in range(0, slots.size, _GATHERED):
            rows = self._rows[slots[start : start + _GATHERED]]
            np.einsum("ij,j->i", rows, query.rows[0], out=products[start : start + _GATHERED])
        return self._estimated(products, self._lengths[slots], query)

    @staticmethod
    def _estimated(
        products: NDArray[np.float32], lengths: Floats, query: Scaled
    ) -> NDArray[np.float32]:
        products /= (lengths * query.lengths[0]).astype(np.float32)
        products[lengths == _NONE] = -np.inf
        return products

    def nominated(self, estimates: NDArray[np.float32], width: int) -> NDArray[np.intp]:
        """Return where in `estimates` those are that could be among the exact best `width`."""
        near, _ = reaching(estimates, width, below=2 * self.error + SLACK)
        return near[np.isfinite(estimates[near])]

    def cosines(self, query: Scaled, slots: NDArray[np.intp]) -> Floats:
        """Return the cosine of `query` (one row) with the vectors at `slots`, not rounded."""
        wide = query.rows[0].astype(np.float64)
        dots = np.empty(slots.size)
        for start in range(0, slots.size, _CHUNK):
            chunk = slots[start : start + _CHUNK]
            # The product of two float32 numbers is exact in float64.
            dots[start : start + _CHUNK] = _sums(self._rows[chunk].astype(np.float64) * wide)
        cosines: Floats = dots / (self._lengths[slots] * query.lengths[0])
        return cosines

    def at(self, slot: int) -> Scaled:
        """Return the vector at a slot, as a query."""
        return Scaled(self._rows[slot : slot + 1], self._lengths[slot : slot + 1])

    def save(self, folder: Path, slots: int) -> None:
        """Write the vectors of the first slots, or as many as there is room for, into a folder."""
        np.save(folder / "vectors.npy", self._rows[:slots])
        np.save(folder / "vector_lengths.npy", self._lengths[:slots])

    @classmethod
    def load(cls, folder: Path) -> "Mirror":
        """Return what `save` wrote; many vectors stay in their file until one is added."""
        rows = mapped(folder / "vectors.npy")
        mirror = cls(rows.shape[1])
        mirror._rows, mirror._lengths = rows, mapped(folder / "vector_lengths.npy")
        mirror.present = int(np.count_nonzero(mirror._lengths != _NONE))
        return mirror
