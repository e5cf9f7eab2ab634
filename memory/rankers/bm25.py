"""BM25 with Lucene's inverse document frequency, which is never negative."""

import math
from dataclasses import dataclass

from langgraft._core.arguments import checked_fields
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import RankerIndex
from langgraft.memory.rankers.frozen import FrozenBM25Index
from langgraft.memory.rankers.lexical import LexicalIndex
from langgraft.memory.rankers.postings import Statistics
from langgraft.memory.rankers.selection import Floats, Ties, check_ties
from langgraft.memory.rankers.tokens import TOKENIZER


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

    def index(self, *, frozen: bool) -> RankerIndex:
        """Return a new empty index: bm25s behind `frozen`, our own otherwise."""
        weights = _Weights(k1=float(self.k1), b=float(self.b))
        if frozen:
            return FrozenBM25Index(weights, k1=self.k1, b=self.b, ties=self.ties)
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

    def norms(self, lengths: Floats, statistics: Statistics) -> Floats:
        mean = statistics.tokens / statistics.documents
        return self.k1 * ((1.0 - self.b) + self.b * lengths / mean)

    def weigh(
        self,
        counts: Floats,
        norms: Floats,
        *,
        occurrences: int,
        documents: int,
        statistics: Statistics,
    ) -> Floats:
        idf = inverse_document_frequency(documents, corpus=statistics.documents)
        return occurrences * idf * (counts / (norms + counts))
