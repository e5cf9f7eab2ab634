"""Rankers that add up what the words of a query are worth: BM25, term overlap, their one index."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np

from langgraft._core.arguments import checked_fields
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import (
    DocumentId,
    RankerIndex,
    Scored,
    Ties,
    check_ties,
)
from langgraft.memory.rankers.documents import SLACK, Floats, Slots, best, reaching
from langgraft.memory.rankers.postings import TOKENIZER, Posting, Postings, Statistics, tokenize

_FEW: Final = 20_000
"""Documents up to which to add up all terms is as fast as to look which may be left out."""

_LOOK: Final = 12
"""Adding up a term over all documents that hold it costs each of them so many times less than
looking it up for one document."""

_ROUNDING: Final = 4 * float(np.finfo(np.float64).eps)
"""By how much of itself one more term can put a sum off, generously."""

FiguresT = TypeVar("FiguresT", float, Floats)


class TermWeights(Protocol):
    """What one term of a query is worth in each document that holds it.

    Both methods work element by element in float64 and never sum, so that a document's score
    is the same whatever else is computed beside it. A term is worth no less where it occurs more
    often, and where the norm is smaller; and the norm is no smaller where a document is longer.
    """

    def norms(self, lengths: FiguresT, statistics: Statistics) -> FiguresT:
        """Return a number per document that depends on its length alone."""
        ...

    def weigh(
        self,
        counts: FiguresT,
        norms: FiguresT,
        *,
        occurrences: int,
        documents: int,
        statistics: Statistics,
    ) -> FiguresT:
        """Return what a term adds to the score of each document.

        Args:
            counts: How often the term occurs in each.
            norms: Of the same documents.
            occurrences: How often the term occurs in the query.
            documents: How many documents hold it.
            statistics: Of the corpus.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Sought:
    """A term of a query that documents hold."""

    posting: Posting
    occurrences: int


class LexicalIndex(Postings):
    """A `DurableIndex` that scores; it is not safe for threads on its own.

    The score of a document is the sum of what the query's terms are worth in it, in their order
    in the query. Where that order does not matter, because a sum only says whether a document
    could be among the best, the terms that are worth most come first: common ones, which nearly
    all documents hold, are then looked up only where they could make a difference (MaxScore:
    Turtle and Flood, 1995).
    """

    def __init__(self, weights: TermWeights, *, ties: Ties) -> None:
        super().__init__()
        self._weights = weights
        self._ties = ties

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that share a term with the query, best first."""
        terms = self._sought(query)
        if limit < 1 or not terms:
            return []
        if self.documents.size > _FEW:
            near = self._near(terms, limit)
            if self._is_cheap(near, terms):
                return self._ranking(near, self._scores_at(near, terms), limit)
        scores = self._scores(terms)
        matching = np.flatnonzero(scores != 0)  # much faster than of the numbers themselves
        near, _ = reaching(scores[matching], limit, below=SLACK)
        return self._ranking(matching[near], scores[matching[near]], limit)

    def search_among(
        self, query: str, documents: Collection[DocumentId], *, limit: int
    ) -> list[Scored]:
        """Return the best `limit` of some documents that share a term with the query."""
        terms = self._sought(query)
        if limit < 1 or not terms:
            return []
        slots = self.documents.slots(documents)
        cheap = self._is_cheap(slots, terms)
        scores = self._scores_at(slots, terms) if cheap else self._scores(terms)[slots]
        matching = np.flatnonzero(scores != 0)
        return self._ranking(slots[matching], scores[matching], limit)

    def _ranking(self, slots: Slots, scores: Floats, limit: int) -> list[Scored]:
        return best(self.documents, slots, scores, limit=limit, ties=self._ties)

    def _sought(self, query: str) -> list[_Sought]:
        """Return the query's terms that documents hold, in order of first occurrence."""
        counted = Counter(tokenize(query)).items()
        posting = self.posting
        return [_Sought(found, n) for term, n in counted if (found := posting(term))]

    def _norms(self, lengths: FiguresT) -> FiguresT:
        return self._weights.norms(lengths, self.statistics)

    def _worth(self, term: _Sought, counts: FiguresT, norms: FiguresT) -> FiguresT:
        """Return what a term adds to the scores of documents that hold it."""
        return self._weights.weigh(
            counts,
            norms,
            occurrences=term.occurrences,
            documents=term.posting.documents,
            statistics=self.statistics,
        )

    def _ceilings(self, terms: Iterable[_Sought]) -> list[float]:
        """Return what no document gets more than for each term."""
        least = self._norms(float(self.shortest))
        return [self._worth(term, float(term.posting.most), least) for term in terms]

    def _scores(self, terms: Iterable[_Sought]) -> Floats:
        """Return the unrounded score of every slot; 0 where nothing matches."""
        scores = np.zeros(self.documents.size)
        norms = self._norms(self.lengths)
        for term in terms:
            slots, counts = term.posting.slots.numbers, term.posting.counts.numbers
            # Slots are distinct within a term; `add.at` is four times faster than `+=` here.
            np.add.at(scores, slots, self._worth(term, counts, norms.take(slots)))
        scores[self.documents.dead] = 0.0
        return scores

    def _scores_at(self, slots: Slots, terms: Iterable[_Sought]) -> Floats:
        """Return the same for some present documents, by looking each up."""
        scores = np.zeros(slots.size)
        norms = self._norms(self.lengths[slots])
        for term in terms:
            present, counts = term.posting.among(slots)
            scores[present] += self._worth(term, counts, norms[present])
        return scores

    def _is_cheap(self, slots: Slots, terms: Sequence[_Sought]) -> bool:
        """Say whether looking documents up costs less than adding up whole terms."""
        return slots.size * len(terms) * _LOOK <= _work(terms)

    def _near(self, terms: Sequence[_Sought], limit: int) -> Slots:
        """Return the documents that could be among the best `limit`, and perhaps some more."""
        ceilings = self._ceilings(terms)
        falling = sorted(zip(ceilings, terms, strict=True), key=lambda each: -each[0])
        reached, left = 0.0, sum(ceilings)
        undone, look = _work(terms), self.documents.size // 4
        slack = SLACK + _ROUNDING * len(terms) * left
        scores = np.zeros(self.documents.size)
        for i, (ceiling, term) in enumerate(falling, 1):
            slots, counts = term.posting.slots.numbers, term.posting.counts.numbers
            norms = self._norms(self.lengths[slots])
            np.add.at(scores, slots, self._worth(term, counts, norms))
            reached, left, undone = reached + ceiling, left - ceiling, undone - slots.size
            if i < len(falling) and (left >= reached or undone < look):
                continue  # nothing could be left out, or too little to look for it
            scores[self.documents.dead] = 0.0
            found = np.flatnonzero(scores != 0)
            sums = scores[found]
            near, last = reaching(sums, limit, below=left + slack)
            # Documents that were not found get what is left, at most.
            whole = i == len(falling) or left + slack < last
            if whole and near.size * (len(falling) - i) * _LOOK <= undone:
                return self._nearer(found[near], sums[near], falling[i:], limit, slack)
        return found[near]

    def _nearer(
        self,
        slots: Slots,
        sums: Floats,
        rest: Sequence[tuple[float, _Sought]],
        limit: int,
        slack: float,
    ) -> Slots:
        """Leave out documents that the rest of the terms leave behind."""
        left = sum(ceiling for ceiling, _ in rest)
        for ceiling, term in rest:
            present, counts = term.posting.among(slots)
            norms = self._norms(self.lengths[slots[present]])
            sums[present] += self._worth(term, counts, norms)
            left -= ceiling
            near, _ = reaching(sums, limit, below=left + slack)
            slots, sums = slots[near], sums[near]
        return slots


def _work(terms: Iterable[_Sought]) -> int:
    """Return how many numbers adding up whole terms looks at."""
    return sum(term.posting.slots.size for term in terms)


def inverse_document_frequency(documents: int, *, corpus: int) -> float:
    """Return `ln(1 + (N - df + 0.5) / (df + 0.5))`, which is positive for every df ≤ N.

    Args:
        documents: df, the number of documents that hold the term.
        corpus: N, the number of all documents.
    """
    return math.log(1.0 + (corpus - documents + 0.5) / (documents + 0.5))


@checked_fields
@dataclass(frozen=True, slots=True)
class BM25:
    """Rank by BM25 as bm25s computes it with `method="lucene"`.

    A document's score is the sum, over the query's terms in order of first occurrence, of

        n · idf · tf / (k1 · (1 - b + b · length / mean length) + tf)

    where n is how often the query holds the term: each occurrence adds. There is no `k1 + 1` in
    the numerator; it would scale all scores alike. Documents without a single token count in
    N and in the mean length.

    Raises:
        SettingsError: A setting is out of range.
    """

    k1: float = 1.5
    """How slowly repeats of a term saturate; 0 makes one occurrence as good as many."""

    b: float = 0.75
    """How much a long document is held against itself, from 0 (not) to 1 (fully)."""

    ties: Ties = "oldest"
    """Which of equal documents comes first."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            msg = f"k1 must be a finite number of at least 0, got {self.k1!r}"
            raise SettingsError(msg)
        if not 0 <= self.b <= 1:
            msg = f"b must be between 0 and 1, got {self.b!r}"
            raise SettingsError(msg)
        check_ties(self.ties)

    def index(self) -> RankerIndex:
        """Return a new empty index."""
        weights = _Weights(k1=float(self.k1), b=float(self.b))
        return LexicalIndex(weights, ties=self.ties)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {
            "ranker": "bm25",
            "idf": "lucene",
            "k1": float(self.k1),
            "b": float(self.b),
            "ties": self.ties,
            "tokenizer": TOKENIZER,
        }


@dataclass(frozen=True, slots=True)
class _Weights:
    """The formula of `BM25`, term by term."""

    k1: float
    b: float

    def norms(self, lengths: FiguresT, statistics: Statistics) -> FiguresT:
        mean = statistics.tokens / statistics.documents
        return self.k1 * ((1.0 - self.b) + self.b * lengths / mean)

    def weigh(
        self,
        counts: FiguresT,
        norms: FiguresT,
        *,
        occurrences: int,
        documents: int,
        statistics: Statistics,
    ) -> FiguresT:
        idf = inverse_document_frequency(documents, corpus=statistics.documents)
        return occurrences * idf * (counts / (norms + counts))


@checked_fields
@dataclass(frozen=True, slots=True)
class TermOverlap:
    """Rank by the number of distinct query terms in the document.

    The lexical ranking of Simple RAG (memory transplants, §4.2). Neither repeats nor lengths nor
    the rarity of a term count, so ties are frequent and `ties` matters.
    """

    ties: Ties = "oldest"
    """Which of equal documents comes first."""

    def __post_init__(self) -> None:
        check_ties(self.ties)

    def index(self) -> RankerIndex:
        """Return a new empty index."""
        return LexicalIndex(_OneEach(), ties=self.ties)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {"ranker": "term_overlap", "ties": self.ties, "tokenizer": TOKENIZER}


class _OneEach:
    """Every term counts one, wherever it is."""

    def norms(self, lengths: FiguresT, statistics: Statistics) -> FiguresT:  # noqa: ARG002
        return lengths

    def weigh(
        self,
        counts: FiguresT,
        norms: FiguresT,  # noqa: ARG002
        *,
        occurrences: int,  # noqa: ARG002
        documents: int,  # noqa: ARG002
        statistics: Statistics,  # noqa: ARG002
    ) -> FiguresT:
        return counts / counts
