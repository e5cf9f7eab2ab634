"""Vectors in one float32 matrix, compared with a query: fast estimates and exact cosines."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.embedders.base import Vectors
from langgraft.memory.rankers.base import SCORE_DECIMALS
from langgraft.memory.rankers.saved import mapped
from langgraft.memory.rankers.selection import Floats, Slots, rounded

_ROOM: Final = 64
"""Rows there is room for at first; then always for half as many more as there are."""

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
    """The directions of a changing set of vectors, by slot: 0, 1, 2 … without gaps.

    Args:
        dimensions: Length of the vectors.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.size = 0
        self._rows: Vectors = np.empty((_ROOM, dimensions), dtype=np.float32)
        self._lengths: Floats = np.empty(_ROOM)

    def append(self, row: NDArray[np.float32], length: float) -> int:
        """Add a scaled vector that is not zero; return its slot."""
        if self.size == len(self._rows):
            self._grow()
        slot = self.size
        self._rows[slot], self._lengths[slot] = row, length
        self.size += 1
        return slot

    def remove(self, slot: int) -> None:
        """Forget a slot; the last one takes its number."""
        last = self.size - 1
        self._rows[slot], self._lengths[slot] = self._rows[last], self._lengths[last]
        self.size = last

    def estimates(self, query: Scaled) -> NDArray[np.float32]:
        """Return the cosine of `query` (one row) with every slot, off by `error` at most."""
        # Not `@`: einsum is as fast, for memory is what one waits for, and starts no threads.
        products: NDArray[np.float32] = np.einsum("ij,j->i", self._rows[: self.size], query.rows[0])
        lengths = (self._lengths[: self.size] * query.lengths[0]).astype(np.float32)
        products /= lengths
        return products

    @property
    def error(self) -> float:
        """How far an estimate can be from the cosine, in whatever order float32 was summed.

        n products and n - 1 sums, each off by half a unit in the last place, keep a dot product
        within n / 2**24 of the product of the lengths; a few more roundings come after it.
        """
        return (self.dimensions + 16) * 2.0**-24

    def estimates_at(self, query: Scaled, slots: Slots) -> NDArray[np.float32]:
        """Return the cosine of `query` (one row) with some slots, off by `error` at most."""
        products = np.empty(slots.size, dtype=np.float32)
        for start in range(0, slots.size, _GATHERED):
            rows = self._rows[slots[start : start + _GATHERED]]
            np.einsum("ij,j->i", rows, query.rows[0], out=products[start : start + _GATHERED])
        products /= (self._lengths[slots] * query.lengths[0]).astype(np.float32)
        return products

    def nominated(self, estimates: NDArray[np.float32], width: int) -> Slots:
        """Return where in `estimates` those are that could be among the exact best `width`."""
        if width >= estimates.size:
            return np.arange(estimates.size)
        last = float(np.partition(estimates, -width)[-width])
        slack = 2 * self.error + 2 * 10.0**-SCORE_DECIMALS
        # Compared in float32: a number type of its own would make a wide copy of all estimates.
        return np.flatnonzero(estimates >= np.float32(last - slack))

    def cosines(self, query: Scaled, slots: Slots) -> Floats:
        """Return the cosine of `query` (one row) with the vectors at `slots`, rounded."""
        wide = query.rows[0].astype(np.float64)
        dots = np.empty(slots.size)
        for start in range(0, slots.size, _CHUNK):
            chunk = slots[start : start + _CHUNK]
            # The product of two float32 numbers is exact in float64.
            dots[start : start + _CHUNK] = _sums(self._rows[chunk].astype(np.float64) * wide)
        return rounded(dots / (self._lengths[slots] * query.lengths[0]))

    def at(self, slot: int) -> Scaled:
        """Return the vector at a slot, as a query."""
        return Scaled(self._rows[slot : slot + 1], self._lengths[slot : slot + 1])

    def save(self, folder: Path) -> None:
        """Write the vectors into a folder."""
        np.save(folder / "vectors.npy", self._rows[: self.size])
        np.save(folder / "vector_lengths.npy", self._lengths[: self.size])

    @classmethod
    def load(cls, folder: Path) -> "Mirror":
        """Return what `save` wrote; many vectors stay in their file until one is added."""
        rows = mapped(folder / "vectors.npy")
        mirror = cls(rows.shape[1])
        mirror.size, mirror._rows = len(rows), rows
        mirror._lengths = np.load(folder / "vector_lengths.npy", allow_pickle=False)
        return mirror

    def _grow(self) -> None:
        room = max(_ROOM, math.ceil(1.5 * self.size))
        rows = np.empty((room, self.dimensions), dtype=np.float32)
        lengths = np.empty(room)
        rows[: self.size], lengths[: self.size] = self._rows, self._lengths
        self._rows, self._lengths = rows, lengths
