"""A ranking in which each result says something new: maximal marginal relevance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from langgraft._core.arguments import checked_fields
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import (
    SCORE_DECIMALS,
    DocumentId,
    Ranker,
    RankerIndex,
    Scored,
)
from langgraft.memory.rankers.composite import CompositeIndex
from langgraft.memory.rankers.dense_index import DenseIndex
from langgraft.memory.rankers.diversity import Similarity, maximal_marginal_relevance
from langgraft.memory.rankers.tfidf import VECTORIZER, TfIdf


@checked_fields
@dataclass(frozen=True, slots=True)
class MMR:
    """Reorder another ranker's best by maximal marginal relevance (Carbonell, Goldstein 1998).

    The first stays first. Each next one has the largest

        trade_off · relevance - (1 - trade_off) · likeness

    where relevance is the other ranker's score divided by its best (0 if negative), and likeness
    the largest similarity with a document chosen before: the cosine of the embeddings (0 if
    negative) where the other ranker is `Dense`, and of TF-IDF vectors over the candidates
    otherwise. That figure is the score, so scores fall along the ranking; `parts` hold it as
    `mmr`, the other ranker's score as `relevance`, and its parts. Documents beyond the candidates
    follow in their order with the lowest score there is, `trade_off - 1`.

    Raises:
        SettingsError: A setting is out of range.
    """

    of: Ranker
    """The ranker whose best are reordered."""

    trade_off: float = 0.5
    """λ, from 0 (only likeness counts after the first) to 1 (the order stays as it is)."""

    candidates: int = 50
    """How many of the best are reordered."""

    def __post_init__(self) -> None:
        if not 0 <= self.trade_off <= 1:
            msg = f"trade_off must be between 0 and 1, got {self.trade_off!r}"
            raise SettingsError(msg)
        if self.candidates < 1:
            msg = f"candidates must be an integer of at least 1, got {self.candidates!r}"
            raise SettingsError(msg)

    def index(self, *, frozen: bool) -> RankerIndex:
        """Return a new empty index."""
        inner = self.of.index(frozen=frozen)
        return MMRIndex(inner, trade_off=float(self.trade_off), candidates=self.candidates)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {
            "ranker": "mmr",
            "of": self.of.describe(),
            "trade_off": float(self.trade_off),
            "candidates": self.candidates,
            "likeness": f"cosine of embeddings if of is dense, else {VECTORIZER}",
        }


class MMRIndex(CompositeIndex):
    """A durable `EmbeddingIndex` around another index; it is not safe for threads on its own."""

    def __init__(self, inner: RankerIndex, *, trade_off: float, candidates: int) -> None:
        super().__init__([inner])
        self._inner = inner
        self._trade_off = trade_off
        self._candidates = candidates

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that the other ranker matches, most telling first."""
        if limit < 1:
            return []
        ranking = self._inner.search(query, limit=max(limit, self._candidates))
        chosen = self._chosen(ranking[: self._candidates], limit)
        beyond = (_marked(hit, self._trade_off - 1) for hit in ranking[self._candidates :])
        return [*chosen, *beyond][:limit]

    def _chosen(self, hits: Sequence[Scored], limit: int) -> list[Scored]:
        similarity = self._similarity([hit.id for hit in hits])
        relevance = np.array([hit.score for hit in hits])
        positions = maximal_marginal_relevance(
            range(len(hits)), relevance, similarity, trade_off=self._trade_off, limit=limit
        )
        best = float(relevance.max(initial=0.0)) or 1.0
        chosen: list[Scored] = []
        likeness = np.zeros(len(hits))
        for position in positions:
            worth = max(float(relevance[position]), 0.0) / best
            score = self._trade_off * worth - (1 - self._trade_off) * float(likeness[position])
            chosen.append(_marked(hits[position], score))
            likeness = np.maximum(likeness, similarity(position))
        return chosen

    def _similarity(self, documents: Sequence[DocumentId]) -> Similarity:
        """Say how alike candidates are."""
        if isinstance(self._inner, DenseIndex):
            cosines = partial(self._inner.similarities, documents)
            # Opposite directions are no more unlike than none in common: the first has likeness 0.
            return lambda position: np.maximum(cosines(position), 0.0)
        return TfIdf.of([self._documents[document].text for document in documents]).similarities


def _marked(hit: Scored, score: float) -> Scored:
    """Return a hit with its new score, and what it was before among the parts."""
    rounded = round(score, SCORE_DECIMALS)
    parts = {**hit.parts, "relevance": hit.score, "mmr": rounded}
    return replace(hit, score=rounded, parts=parts, tied=0)  # others shared the old score
