"""Several rankers as one: reciprocal-rank fusion."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from langgraft._core.arguments import check_argument
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.among import search_among
from langgraft.memory.rankers.base import (
    SCORE_DECIMALS,
    DocumentId,
    Ranker,
    RankerIndex,
    Scored,
    is_ranker,
    ranker_name,
)
from langgraft.memory.rankers.bm25 import BM25
from langgraft.memory.rankers.composite import CompositeIndex
from langgraft.memory.rankers.dense import Dense
from langgraft.memory.rankers.selection import Ties, check_ties

_FEWEST: Final = 2


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Rank by reciprocal-rank fusion of other rankers (Cormack, Clarke and Büttcher, 2009).

    Each ranker contributes its best `pool` documents, ties at the edge decided as it decides
    them. A document's score is the sum, over the rankers whose pool holds it, of

        weight / (k + rank)

    with ranks from 1; within a pool, documents of equal score share the best rank among them.
    Equal sums come by `ties`. Documents outside of all pools follow with a score of 0: first
    those that the first ranker matches, in its order, then what only later ones match. So a
    longer list always begins with the shorter one, and a filter finds what lies deep.

    A hit's `parts` hold each ranker's score and rank for a document in its pool, under the
    ranker's name; the second of a name is `dense_2`.

    Raises:
        SettingsError: There are fewer than two rankers, not one weight for each, or a number is
            out of range.
    """

    rankers: tuple[Ranker, ...] = field(default_factory=lambda: (BM25(), Dense()))
    """What is fused."""

    k: float = 60.0
    """The larger, the less the first ranks stand out; 60 is the paper's."""

    weights: tuple[float, ...] | None = None
    """What each ranker counts, at least 0; `None`: 1 each."""

    pool: int = 100
    """How many documents each ranker contributes."""

    ties: Ties = "oldest"
    """Which of equal documents comes first."""

    def __post_init__(self) -> None:
        check_argument("`rankers` of Hybrid", self.rankers, Sequence[Ranker])
        rankers = tuple(self.rankers)
        if len(rankers) < _FEWEST or not all(map(is_ranker, rankers)):
            msg = f"a hybrid needs two rankers or more, got {self.rankers!r}"
            raise SettingsError(msg)
        weights = [1.0] * len(rankers) if self.weights is None else self.weights
        object.__setattr__(self, "weights", _numbers("weights", weights))
        object.__setattr__(self, "k", _numbers("k", (self.k,))[0])
        object.__setattr__(self, "rankers", rankers)
        self._check()

    def _check(self) -> None:
        if not (math.isfinite(self.k) and self.k >= 0):
            msg = f"k must be a finite number of at least 0, got {self.k!r}"
            raise SettingsError(msg)
        if type(self.pool) is not int or self.pool < 1:
            msg = f"pool must be an integer of at least 1, got {self.pool!r}"
            raise SettingsError(msg)
        weights = self._weights
        if len(weights) != len(self.rankers):
            msg = f"{len(self.rankers)} rankers need as many weights, got {self.weights!r}"
            raise SettingsError(msg)
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
            msg = f"weights must be finite, at least 0 and not all 0, got {self.weights!r}"
            raise SettingsError(msg)
        check_ties(self.ties)

    def index(self, *, frozen: bool) -> RankerIndex:
        """Return a new empty index: one of each ranker's."""
        names = part_names(self.rankers)
        parts = [
            _Part(name, weight, ranker.index(frozen=frozen))
            for name, weight, ranker in zip(names, self._weights, self.rankers, strict=True)
        ]
        return HybridIndex(parts, k=self.k, pool=self.pool, ties=self.ties)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {
            "ranker": "hybrid",
            "fusion": "reciprocal ranks",
            "rankers": [ranker.describe() for ranker in self.rankers],
            "k": self.k,
            "weights": list(self._weights),
            "pool": self.pool,
            "ties": self.ties,
        }

    @property
    def _weights(self) -> tuple[float, ...]:
        assert self.weights is not None
        return self.weights


def _numbers(setting: str, values: Iterable[float]) -> tuple[float, ...]:
    try:
        return tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        msg = f"{setting} must be made of numbers, got {values!r}"
        raise SettingsError(msg) from error


def part_names(rankers: Sequence[Ranker]) -> list[str]:
    """Name rankers as their descriptions do, with a number from the second of a name on."""
    seen: Counter[str] = Counter()
    names = []
    for ranker in rankers:
        name = ranker_name(ranker)
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One of the rankers."""

    name: str
    weight: float
    index: RankerIndex

    def pool(self, query: str, size: int) -> Iterator[tuple[Scored, int]]:
        """Yield this ranker's best documents with their ranks, which equals share."""
        rank, score = 0, math.nan
        for place, hit in enumerate(self.index.search(query, limit=size), 1):
            if hit.score != score:
                rank, score = place, hit.score
            yield hit, rank


class HybridIndex(CompositeIndex):
    """A durable `EmbeddingIndex` made of others; it is not safe for threads on its own."""

    def __init__(self, parts: Sequence[_Part], *, k: float, pool: int, ties: Ties) -> None:
        super().__init__([part.index for part in parts])
        self._parts = parts
        self._k = k
        self._pool = pool
        self._ties = ties

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that any of the rankers matches, best first."""
        if limit < 1:
            return []
        fused = self._fused(query)
        if len(fused) < limit:
            rankings = [part.index.search(query, limit=limit) for part in self._parts]
            fused += _beyond(rankings, {hit.id for hit in fused})
        return fused[:limit]

    def search_among(
        self, query: str, documents: Collection[DocumentId], *, limit: int
    ) -> list[Scored]:
        """Return the best `limit` of some documents that any of the rankers matches.

        The pools are those of the whole corpus.
        """
        if limit < 1:
            return []
        fused = [hit for hit in self._fused(query) if hit.id in documents]
        if len(fused) < limit:
            rankings = [
                search_among(part.index, query, documents, limit=limit) for part in self._parts
            ]
            fused += _beyond(rankings, {hit.id for hit in fused})
        return fused[:limit]

    def _fused(self, query: str) -> list[Scored]:
        """Rank what the pools hold."""
        sums: dict[DocumentId, float] = {}
        parts: dict[DocumentId, dict[str, float]] = {}
        for part in self._parts:
            for hit, rank in part.pool(query, self._pool):
                share = part.weight / (self._k + rank)
                sums[hit.id] = sums.get(hit.id, 0.0) + share
                said = parts.setdefault(hit.id, {})
                said[part.name], said[f"{part.name}_rank"] = hit.score, rank
        orders = {document: self._documents[document].order for document in sums}
        ids = sorted(sums, key=orders.__getitem__, reverse=self._ties == "newest")
        hits = [Scored(i, round(sums[i], SCORE_DECIMALS), parts[i]) for i in ids]
        return sorted(hits, key=lambda hit: -hit.score)


def _beyond(rankings: Iterable[Sequence[Scored]], known: set[DocumentId]) -> list[Scored]:
    """Return what no pool holds: all of the first ranking, then what only later ones have."""
    ids = dict.fromkeys(hit.id for ranking in rankings for hit in ranking)
    return [Scored(document, 0.0) for document in ids if document not in known]
