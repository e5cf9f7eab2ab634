"""A record as one row of a Chroma collection.

Everything a record has stands in one row, its vectors included, because one row is what Chroma
writes whole or not at all. All of it is metadata:

* Text is JSON in ASCII, which holds what SQLite and HTTP do not (NUL, lone surrogates).
* All but the labels of the namespace is one string: Chroma writes a row of SQLite, and of two
  indexes, for each name (seven names cost 1.3 to 1.8 times one, two cost 1.0 to 1.4).
* Every row has the same names, because Chroma's `upsert` keeps metadata it is not given.
* Chroma's `document` stays empty: it is cut into trigrams for a full-text search nobody asks for,
  which doubles the time and the disk of a write (measured: .68 against .32 ms a row).
* Chroma's own vector stays a number that means nothing: reading it back goes through an index
  that is approximate, normalizes, and can lose rows. It costs .05 ms a row.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, Item, ensure_embeddings, get_text_at_path

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft.memory.embedders.base import read_answer
from langgraft.memory.stores.programs import Address, Namespace, as_json, moment

Metadata: TypeAlias = dict[str, str]

_RECORD: Final = "record"
"""What all of a record stands under: a line about it, then its value."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The vectors of a record, as bytes: little-endian float32, one vector after another."""

    dims: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Row:
    """A record as it is kept.

    Attributes:
        namespace: Where it is.
        key: Its name there.
        created: When the key was first written, in nanoseconds since the epoch; no two records
            written by one store have the same, so this is also their order.
        updated: When it was last written, likewise.
        value: Its value in JSON.
        packed: Its vectors.
        id: Its id in Chroma, which follows from namespace and key.
    """

    namespace: Namespace
    key: str
    created: int
    updated: int
    value: str
    packed: Packed = Packed()
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", row_id((self.namespace, self.key)))

    def content(self) -> dict[str, Any]:
        """Return a new copy of the record's value."""
        value: dict[str, Any] = json.loads(self.value)
        return value

    def item(self) -> Item:
        """Return the record as LangGraph gives it."""
        return Item(
            value=self.content(),
            key=self.key,
            namespace=self.namespace,
            created_at=moment(self.created),
            updated_at=moment(self.updated),
        )

    def metadata(self) -> Metadata:
        """Return what Chroma keeps of it."""
        vectors = base64.b64encode(self.packed.data).decode("ascii")
        about = self.namespace, self.key, self.created, self.updated, self.packed.dims, vectors
        return {**_labels(self.namespace), _RECORD: f"{as_json(about)}\n{self.value}"}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], identifier: str = "") -> "Row":
        """Read what `metadata` wrote, in the row of an id."""
        if _RECORD not in metadata:
            return cls._from_parts(metadata, identifier)
        about, _, value = metadata[_RECORD].partition("\n")
        namespace, key, created, updated, dims, vectors = json.loads(about)
        packed = Packed(dims, base64.b64decode(vectors))
        return cls(tuple(namespace), key, created, updated, value, packed, identifier)

    @classmethod
    def _from_parts(cls, metadata: Mapping[str, Any], identifier: str) -> "Row":
        """Read a row of format 1, which had each part under a name of its own."""
        dims, _, vectors = metadata["vectors"].partition(":")
        return cls(
            namespace=tuple(json.loads(metadata["namespace"])),
            key=json.loads(metadata["key"]),
            created=metadata["created"],
            updated=metadata["updated"],
            value=metadata["value"],
            packed=Packed(int(dims), base64.b64decode(vectors)),
            id=identifier,
        )


def row_id(address: Address) -> str:
    """Return the id of a record's row: of one length, however long its key is."""
    namespace, key = address
    return hashlib.sha256(as_json([*namespace, key]).encode("ascii")).hexdigest()


def placeholder(identifier: str) -> list[float]:
    """Return the vector of one number that Chroma wants for a row.

    Rows have different ones: an index of equal vectors is slower to add to.
    """
    return [int(identifier[:4], 16) / 65536]


def under(prefix: Namespace) -> dict[str, Any] | None:
    """Return Chroma's condition for the rows under a namespace prefix, label by label."""
    labels = [{_label(i): as_json(label)} for i, label in enumerate(prefix)]
    if len(labels) > 1:
        return {"$and": labels}
    return dict(labels[0]) if labels else None


@lru_cache(maxsize=64)
def _labels(namespace: Namespace) -> Metadata:
    """Return what Chroma keeps of a namespace, to find it by a prefix."""
    return {_label(i): as_json(label) for i, label in enumerate(namespace)}


def _label(position: int) -> str:
    return f"label{position}"


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
