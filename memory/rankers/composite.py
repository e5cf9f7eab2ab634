"""Rankers made of other rankers: fusion of ranks or scores, and maximal marginal relevance."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from langgraft._core.arguments import check_argument, checked_fields
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.embedders.base import EmbeddingRequest, Vectors
from langgraft.memory.rankers.base import (
    SCORE_DECIMALS,
    BoundedIndex,
    Document,
    DocumentId,
    DurableIndex,
    EmbeddingIndex,
    Order,
    Ranker,
    RankerIndex,
    Scored,
    SelectiveIndex,
    Ties,
    check_ties,
    is_ranker,
    put_all,
    ranker_name,
    search_among,
)
from langgraft.memory.rankers.dense import Dense, DenseIndex
from langgraft.memory.rankers.diversity import (
    VECTORIZER,
    Similarity,
    TfIdf,
    maximal_marginal_relevance,
)
from langgraft.memory.rankers.documents import Documents
from langgraft.memory.rankers.lexical import BM25


class CompositeIndex:
    """Documents that are kept here and in each of some other indexes.

    With a `search` it is a durable `EmbeddingIndex`; it is not safe for threads on its own.

    Args:
        parts: The other indexes, empty.
    """

    def __init__(self, parts: Sequence[RankerIndex]) -> None:
        self._indexes = parts
        self._documents = Documents()

    def __len__(self) -> int:
        return len(self._documents)

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        self.put_many([Document(document, text, order)])

    def put_many(self, documents: Iterable[Document]) -> None:
        """Add or replace documents."""
        entered = list(documents)
        for document in entered:
            if self._documents.slot(document.id) is None:
                self._documents.extend([document])
            else:
                self._documents.replace(document)
        for index in self._indexes:
            put_all(index, entered)

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        self._documents.remove(document)
        if self._documents.sparse:
            self._documents.sweep()
        for index in self._indexes:
            index.remove(document)

    def lacking(self, query: str | None) -> list[EmbeddingRequest]:
        """Say which vectors a search for `query` would have to fetch; `None`: any search."""
        requests = (
            request
            for index in self._indexes
            if isinstance(index, EmbeddingIndex)
            for request in index.lacking(query)
        )
        # Two rankers may lack the same vectors of one embedder.
        return list(dict.fromkeys(requests))

    def learn(self, request: EmbeddingRequest, vectors: Vectors) -> None:
        """Take in what answers a request."""
        for index in self._indexes:
            if isinstance(index, EmbeddingIndex):
                index.learn(request, vectors)

    def save(self, folder: Path) -> None:
        """Write everything into an empty folder."""
        self._documents.save(folder)
        for i, index in enumerate(self._indexes):
            if isinstance(index, DurableIndex):
                part = folder / f"part_{i}"
                part.mkdir()
                index.save(part)

    def load(self, folder: Path) -> None:
        """Become what `save` wrote."""
        self._documents.load(folder)
        for i, index in enumerate(self._indexes):
            if isinstance(index, DurableIndex):
                index.load(folder / f"part_{i}")
            else:
                put_all(index, self._documents)


_FEWEST: Final = 2

Fusion: TypeAlias = Literal["reciprocal ranks", "scores"]
"""What of each ranking a hybrid adds up."""


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Rank by a sum over other rankers: of reciprocal ranks, or of scores.

    Each ranker contributes its best `pool` documents, ties at the edge decided as it decides
    them. With `fusion="reciprocal ranks"` (Cormack, Clarke and Büttcher, 2009) a document's score
    is the sum, over the rankers whose pool holds it, of

        weight / (k + rank)

    with ranks from 1; within a pool, documents of equal score share the best rank among them.
    With `fusion="scores"` it is the sum, over all rankers, of

        weight · score / highest

    for the documents of all pools. `highest` is what no score for this query can exceed: for
    `BM25`, all of the query's words count, those that no document holds too. So a match of common
    words adds little, and a match of rare words decides. It is 1 for rankers that have no such
    bound, and for `Dense`. A score below 0 counts as 0.

    Equal sums come by `ties`. Documents outside of all pools follow with a score of 0: first
    those that the first ranker matches, in its order, then what only later ones match. So a
    longer list always begins with the shorter one, and a filter finds what lies deep.

    A hit's `parts` hold each ranker's score, and the rank (`dense_rank`) or the share of `highest`
    (`dense_share`), under the ranker's name; the second of a name is `dense_2`.

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

    fusion: Fusion = "reciprocal ranks"
    """What is added up."""

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
        if self.fusion not in get_args(Fusion):
            msg = f"fusion must be 'reciprocal ranks' or 'scores', got {self.fusion!r}"
            raise SettingsError(msg)
        check_ties(self.ties)

    def index(self) -> RankerIndex:
        """Return a new empty index: one of each ranker's."""
        names = part_names(self.rankers)
        parts = [
            _Part(name, weight, ranker.index())
            for name, weight, ranker in zip(names, self._weights, self.rankers, strict=True)
        ]
        return HybridIndex(parts, k=self.k, pool=self.pool, ties=self.ties, fusion=self.fusion)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {
            "ranker": "hybrid",
            "fusion": self.fusion,
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


_Share: TypeAlias = tuple[Scored, float, dict[str, float]]
"""A document as one ranker scores it, what that adds to its sum, and how."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One of the rankers."""

    name: str
    weight: float
    index: RankerIndex

    def by_rank(self, query: str, size: int, k: float) -> Iterator[_Share]:
        """Yield this ranker's best documents with their ranks, which equals share."""
        rank, score = 0, math.nan
        for place, hit in enumerate(self.index.search(query, limit=size), 1):
            if hit.score != score:
                rank, score = place, hit.score
            yield hit, self.weight / (k + rank), {f"{self.name}_rank": rank}

    def by_score(
        self, query: str, pool: Sequence[Scored], others: Collection[DocumentId]
    ) -> Iterator[_Share]:
        """Yield the best of this ranker, and those of some others that it matches."""
        hits = [*pool, *_among(self.index, query, others)]
        bounded = self.index if hits and isinstance(self.index, BoundedIndex) else None
        highest = 1.0 if bounded is None else bounded.highest(query)
        for hit in hits:
            share = round(max(hit.score, 0.0) / highest, SCORE_DECIMALS)
            yield hit, self.weight * share, {f"{self.name}_share": share}


def _among(index: RankerIndex, query: str, documents: Collection[DocumentId]) -> list[Scored]:
    """Return those of some documents that an index matches."""
    if isinstance(index, SelectiveIndex):
        return index.search_among(query, documents, limit=len(documents))
    return search_among(index, query, documents, limit=len(documents))


class HybridIndex(CompositeIndex):
    """A durable `EmbeddingIndex` made of others; it is not safe for threads on its own."""

    def __init__(
        self, parts: Sequence[_Part], *, k: float, pool: int, ties: Ties, fusion: Fusion
    ) -> None:
        super().__init__([part.index for part in parts])
        self._parts = parts
        self._k = k
        self._pool = pool
        self._ties = ties
        self._fusion = fusion

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
        for part, shares in zip(self._parts, self._shares(query), strict=True):
            for hit, share, how in shares:
                sums[hit.id] = sums.get(hit.id, 0.0) + share
                parts.setdefault(hit.id, {}).update({part.name: hit.score} | how)
        orders = {document: self._documents[document].order for document in sums}
        ids = sorted(sums, key=orders.__getitem__, reverse=self._ties == "newest")
        hits = [Scored(i, round(sums[i], SCORE_DECIMALS), parts[i]) for i in ids]
        return sorted(hits, key=lambda hit: -hit.score)

    def _shares(self, query: str) -> list[Iterator[_Share]]:
        """Return what each part adds to the sums of documents."""
        if self._fusion == "reciprocal ranks":
            return [part.by_rank(query, self._pool, self._k) for part in self._parts]
        pools = [part.index.search(query, limit=self._pool) for part in self._parts]
        documents = {hit.id for pool in pools for hit in pool}
        return [
            part.by_score(query, pool, documents - {hit.id for hit in pool})
            for part, pool in zip(self._parts, pools, strict=True)
        ]


def _beyond(rankings: Iterable[Sequence[Scored]], known: set[DocumentId]) -> list[Scored]:
    """Return what no pool holds: all of the first ranking, then what only later ones have."""
    ids = dict.fromkeys(hit.id for ranking in rankings for hit in ranking)
    return [Scored(document, 0.0) for document in ids if document not in known]


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

    def index(self) -> RankerIndex:
        """Return a new empty index."""
        inner = self.of.index()
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
