"""What a ranker is: settings that order texts by relevance, and the index it keeps."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.embedders.base import EmbeddingRequest, Vectors

DocumentId: TypeAlias = Hashable
"""Whatever names a document in an index; `RankedStore` uses `(namespace, key)`."""

Order: TypeAlias = tuple[int | str, ...]
"""Position of a document among equals: comparable, and different for different documents."""

Ties: TypeAlias = Literal["oldest", "newest"]
"""Among equal scores, whether the smallest or the largest `Order` comes first."""

SCORE_DECIMALS = 9
"""Scores are rounded to this many decimals, so that they do not depend on threads."""


class Document(NamedTuple):
    """A text to be ranked."""

    id: DocumentId
    text: str
    order: Order


@dataclass(frozen=True, slots=True)
class Scored:
    """One ranked document. `id` is its document's."""

    id: DocumentId
    score: float
    """In float64, rounded to `SCORE_DECIMALS`; higher is more relevant."""
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)
    """What a ranker made of others put the score together from; empty where it is one figure."""
    tied: int = field(default=0, compare=False)
    """How many of the documents searched share the score, told with the best of a ranking; 0
    where that is not told."""


class RankerIndex(Protocol):
    """The changing index a ranker keeps over the texts of one corpus.

    The ranking is a function of the present documents alone: neither the order in which they
    were written nor what was overwritten or deleted meanwhile shows in it.
    """

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        ...

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        ...

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that match the query, best first.

        Documents that do not match at all are never returned.
        """
        ...

    def __len__(self) -> int:
        """Return the number of documents."""
        ...


@runtime_checkable
class EmbeddingIndex(RankerIndex, Protocol):
    """A `RankerIndex` that ranks by vectors, and lets its owner fetch them.

    Documents may be put before their vectors are known, and the vector of a text that stays is
    never asked for again. Whoever holds a lock, or runs an event loop, asks what is lacking,
    fetches it outside, and searches when nothing is lacking any more. For others a search
    fetches what it lacks by itself, synchronously.
    """

    def lacking(self, query: str | None) -> list[EmbeddingRequest]:
        """Say which vectors a search for `query` would have to fetch; `None`: any search."""
        ...

    def learn(self, request: EmbeddingRequest, vectors: Vectors) -> None:
        """Take in what answers a request; texts nobody needs any more are passed over."""
        ...


@runtime_checkable
class SelectiveIndex(RankerIndex, Protocol):
    """A `RankerIndex` that can search some of its documents for less than all of them."""

    def search_among(
        self, query: str, documents: Collection[DocumentId], *, limit: int
    ) -> list[Scored]:
        """Return the best `limit` of some documents that match the query, best first.

        Order and scores are those of `search`, whose ranking this is without the others:
        statistics of the corpus are taken over all of it. Documents that the index does not
        have are ignored.
        """
        ...


@runtime_checkable
class BoundedIndex(RankerIndex, Protocol):
    """A `RankerIndex` that knows how high a score for a query can be."""

    def highest(self, query: str) -> float:
        """Return a number above 0 that no document's score exceeds, whatever its text."""
        ...


@runtime_checkable
class BulkIndex(RankerIndex, Protocol):
    """A `RankerIndex` that takes many documents for less than one by one."""

    def put_many(self, documents: Iterable[Document]) -> None:
        """Do as `put` does for each of some documents, in their order."""
        ...


def put_all(index: RankerIndex, documents: Iterable[Document]) -> None:
    """Put many documents into an index, whichever way it has."""
    if isinstance(index, BulkIndex):
        index.put_many(documents)
        return
    for document in documents:
        index.put(document.id, document.text, document.order)


@runtime_checkable
class DurableIndex(RankerIndex, Protocol):
    """A `RankerIndex` that can be kept in files, so that opening it costs less than building it.

    What `load` makes ranks exactly as what was saved. The ids of the documents must be strings,
    integers, or tuples of such.
    """

    def save(self, folder: Path) -> None:
        """Write everything into an empty folder."""
        ...

    def load(self, folder: Path) -> None:
        """Become what `save` of an index of the same ranker wrote.

        The files may be read whenever a search or a write concerns what is in them. They must
        not change meanwhile; deleting them is harmless where the system lets open files live.
        """
        ...


class Ranker(Protocol):
    """Settings that say how texts are ordered: frozen, hashable, printable."""

    def index(self) -> RankerIndex:
        """Return a new empty index."""
        ...

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        ...


def is_ranker(value: object) -> bool:
    """Say whether `value` is a ranker: an object, neither the name nor the class of one."""
    made = not isinstance(value, type)
    return made and hasattr(value, "index") and hasattr(value, "describe")


def ranker_name(ranker: Ranker) -> str:
    """Return the name in a ranker's description."""
    return str(ranker.describe().get("ranker", type(ranker).__name__))


def check_ties(ties: str) -> None:
    """Raise `SettingsError` unless `ties` is one of the two ways to break them."""
    if ties not in ("oldest", "newest"):
        msg = f"ties must be 'oldest' or 'newest', got {ties!r}"
        raise SettingsError(msg)


def without_tie_count(ranking: list[Scored]) -> list[Scored]:
    """Leave out how many documents share the best score of a ranking: some of them may not count."""
    return [replace(ranking[0], tied=0), *ranking[1:]] if ranking else ranking


FEW: Final = 12
"""Documents that are at most one in so many are searched by themselves: more are not found
faster than by ranking all and leaving out the others."""

_WIDENING: Final = 4
"""How much further each next look down a ranking goes, at least."""


def search_among(
    index: RankerIndex, query: str, documents: Collection[DocumentId], *, limit: int
) -> list[Scored]:
    """Return the best `limit` of some documents, as `SelectiveIndex` does, with any index.

    Where all are ranked, it is told how many of `documents` share the best score if the ranking
    goes on below it.

    Args:
        index: The index.
        query: What to compare with the documents.
        documents: Which may be found; being asked for one must cost little, as with a set.
        limit: How many to return.
    """
    # There may be some that are about to be entered in an empty index.
    if not documents or not len(index):
        return []
    if len(documents) * FEW <= len(index) and isinstance(index, SelectiveIndex):
        return index.search_among(query, documents, limit=limit)
    width = _depth(limit, share=len(documents) / len(index))
    while True:
        ranking = index.search(query, limit=width)
        found = [hit for hit in without_tie_count(ranking) if hit.id in documents]
        if len(found) >= min(limit, len(documents)) or len(ranking) < width:
            if found and (len(ranking) < width or ranking[-1].score < found[0].score):
                tied = sum(hit.score == found[0].score for hit in found)
                found[0] = replace(found[0], tied=tied)
            return found[:limit]
        width = wider(width, found=len(found), wanted=limit)


def wider(width: int, *, found: int, wanted: int) -> int:
    """Say how far down a ranking to look after `found` of its first `width` were looked for."""
    return max(width * _WIDENING, _depth(wanted, share=(found + 0.5) / width))


def _depth(wanted: int, *, share: float) -> int:
    """Say how far down a ranking `wanted` are found, with half as much to spare."""
    return ceil(1.5 * wanted / share)
