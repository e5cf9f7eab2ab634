"""What a corpus is asked while no other thread uses it."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final, TypeAlias

from langgraft.memory.embedders.base import EmbeddingRequest, Vectors
from langgraft.memory.rankers.base import EmbeddingIndex, RankerIndex, Scored, SelectiveIndex
from langgraft.memory.stores.corpus import Corpus
from langgraft.memory.stores.records import Address

_FIRST_LOOK: Final = 320
"""Documents ranked at first, at least, where only records can tell which of them pass: ranking
them again costs more than that, and among as many are ten, nearly always, of one in twenty."""

FEW: Final = 12
"""Documents that are at most one in so many are searched by themselves: more are not found
faster than by ranking all and leaving out the others."""

_WIDENING: Final = 4

Learned: TypeAlias = tuple[EmbeddingRequest, Vectors]


@dataclass(frozen=True, slots=True)
class Ranking:
    """An answer."""

    hits: Sequence[Scored]
    """Best first. Those that cannot pass the filter are left out, as far as the corpus knows."""

    whole: bool
    """Nothing that could pass comes after them."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """No answer is possible before this is known."""

    requests: Sequence[EmbeddingRequest] = ()
    fields: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and which documents may answer it.

    With a filter, `Scored.tied` counts those that pass; it is 0 where that is not known.
    """

    query: str
    conditions: Mapping[str, Any] | None

    def ask(
        self, corpus: Corpus, *, limit: int, learned: Sequence[Learned] = ()
    ) -> Ranking | Lacking:
        """Return the best `limit` or more, or say what is lacking."""
        index = corpus.index
        fields = corpus.fields.unread(self.conditions) if self.conditions else ()
        requests: Sequence[EmbeddingRequest] = ()
        if isinstance(index, EmbeddingIndex):
            for request, vectors in learned:
                index.learn(request, vectors)
            requests = index.lacking(self.query)
        if requests or fields:
            return Lacking(requests, fields)
        if not self.conditions:
            return _ranking(index.search(self.query, limit=limit), limit)
        documents = corpus.fields.matching(self.conditions)
        if documents is None:
            limit = max(limit, _FIRST_LOOK)
            return _ranking(_without_ties(index.search(self.query, limit=limit)), limit)
        return _ranking(self._among(index, documents, limit), limit)

    def _among(
        self, index: RankerIndex, documents: AbstractSet[Address], limit: int
    ) -> list[Scored]:
        """Rank some documents."""
        # There may be some in the fields that are about to be entered in an empty index.
        if not documents or not len(index):
            return []
        if len(documents) * FEW <= len(index) and isinstance(index, SelectiveIndex):
            return index.search_among(self.query, documents, limit=limit)
        width = _depth(limit, share=len(documents) / len(index))
        while True:
            ranking = index.search(self.query, limit=width)
            found = [hit for hit in _without_ties(ranking) if hit.id in documents]
            if len(found) >= min(limit, len(documents)) or len(ranking) < width:
                return found[:limit]
            width = wider(width, found=len(found), wanted=limit)


def wider(width: int, *, found: int, wanted: int) -> int:
    """Say how far down a ranking to look after `found` of its first `width` passed a filter."""
    return max(width * _WIDENING, _depth(wanted, share=(found + 0.5) / width))


def _depth(wanted: int, *, share: float) -> int:
    """Say how far down a ranking `wanted` are found, with half as much to spare."""
    return ceil(1.5 * wanted / share)


def _ranking(hits: Sequence[Scored], limit: int) -> Ranking:
    return Ranking(hits, whole=len(hits) < limit)


def _without_ties(hits: list[Scored]) -> list[Scored]:
    """Forget how many share the best score: not all of them pass."""
    return [replace(hits[0], tied=0), *hits[1:]] if hits else hits
