"""Vectors of records: from texts, in bytes, and how near they are to a query's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft.memory.embedders.base import read_answer
from langgraft.memory.stores.chroma.rows import Packed

Matrix: TypeAlias = npt.NDArray[np.float32]
"""One vector a row."""

_STORED: Final = np.dtype("<f4")

_BLOCK: Final = 512
"""Vectors compared at a time, so that their float64 copies stay in the cache."""

_DIGITS: Final = 9
"""Scores are rounded to 1e-9, below which float64 sums depend on the processor."""


@dataclass(frozen=True, slots=True)
class Index:
    """What is embedded, and how: LangGraph's `IndexConfig`, checked.

    Attributes:
        dims: Length of the vectors.
        embeddings: Makes them.
        fields: Paths of the texts of a record.
    """

    dims: int
    embeddings: Embeddings
    fields: tuple[str, ...]

    @classmethod
    def from_config(cls, config: IndexConfig) -> "Index":
        """Read a configuration.

        Raises:
            SettingsError: `dims` is no positive integer, or `embed` is missing.
        """
        dims, embed = config.get("dims"), config.get("embed")
        if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
            msg = f"index['dims'] must be the length of the embedder's vectors, got {dims!r}"
            raise SettingsError(msg)
        if embed is None:
            msg = "index['embed'] is missing: give LangChain Embeddings, a function or a name"
            raise SettingsError(msg)
        return cls(dims, ensure_embeddings(embed), tuple(config.get("fields") or ("$",)))

    def texts(self, value: Mapping[str, Any], fields: Sequence[str] | None) -> tuple[str, ...]:
        """Return the texts of a value that are to be embedded, each once."""
        paths = self.fields if fields is None else fields
        return tuple(dict.fromkeys(t for path in paths for t in get_text_at_path(value, path)))

    def checked(self, texts: Sequence[str], answer: object) -> dict[str, Matrix]:
        """Return the vector of each text.

        Raises:
            InfrastructureError: The embedder returned something else than one vector of
                `dims` finite numbers for each.
        """
        if not texts:
            return {}
        try:
            rows = read_answer(answer, len(texts)).astype(_STORED)
        except ValueError as error:
            msg = f"the embedder returned {error}; check the model"
            raise InfrastructureError(msg) from error
        if rows.shape[1] != self.dims:
            msg = (
                f"the embedder returned vectors of {rows.shape[1]} numbers, and index['dims'] asks"
                f" for {self.dims}"
            )
            raise InfrastructureError(msg)
        return dict(zip(texts, rows, strict=True))

    def unpack(self, packed: Packed, where: object) -> Matrix:
        """Read the vectors of a record.

        Raises:
            SettingsError: It was written with vectors of another length.
        """
        if packed.data and packed.dims != self.dims:
            msg = (
                f"{where} was written with vectors of {packed.dims} numbers, and index['dims'] is"
                f" {self.dims}; use the embedder it was written with, or write the records again"
            )
            raise SettingsError(msg)
        return np.frombuffer(packed.data, dtype=_STORED).reshape(-1, self.dims)


def pack(vectors: Sequence[Matrix]) -> Packed:
    """Write vectors of one length."""
    if not vectors:
        return Packed()
    return Packed(len(vectors[0]), b"".join(vector.tobytes() for vector in vectors))


def nearest(vectors: Sequence[Matrix], query: Matrix) -> npt.NDArray[np.float64]:
    """Return the greatest cosine between a query and each record's vectors.

    Args:
        vectors: Of each record, as `Index.unpack` gives them.
        query: The query's vector.

    Returns:
        A score a record; NaN for one without vectors, and 0 where a vector is all zeros.
    """
    counts = np.array([len(each) for each in vectors], dtype=np.intp)
    best = np.full(len(counts), np.nan)
    if counts.any():
        starts = np.cumsum(counts) - counts
        scores = _cosines(np.concatenate(vectors), query)
        best[counts > 0] = np.maximum.reduceat(scores, starts[counts > 0])
    return best


def _cosines(matrix: Matrix, query: Matrix) -> npt.NDArray[np.float64]:
    """Compare in float64 and in one order of summation, whatever the number of threads."""
    wide = query.astype(np.float64)
    length = np.sqrt(wide @ wide)
    scores = np.zeros(len(matrix))
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK].astype(np.float64)
        dots = np.einsum("ij,j->i", block, wide)
        lengths = np.sqrt(np.einsum("ij,ij->i", block, block)) * length
        np.divide(dots, lengths, out=scores[start : start + _BLOCK], where=lengths > 0)
    return scores.round(_DIGITS)
