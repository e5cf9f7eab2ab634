"""BM25 over contents that do not change: bm25s nominates, exact scores decide."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.rankers.base import SCORE_DECIMALS, DocumentId, Order, Scored
from langgraft.memory.rankers.lexical import TermWeights
from langgraft.memory.rankers.postings import Statistics
from langgraft.memory.rankers.saved import Document
from langgraft.memory.rankers.selection import Floats, Slots, Ties, best_first, rounded
from langgraft.memory.rankers.ties import told
from langgraft.memory.rankers.tokens import tokenize


class FrozenBM25Index:
    """A `RankerIndex` for contents that are put once and then searched.

    bm25s scores every document in float32. That is not exact enough to order by, so whatever
    could still be among the best, given how float32 errs, is scored again as the changing index
    scores it. Rankings and scores are the same. Putting or removing after a search is allowed
    and costs a rebuild at the next one.
    """

    def __init__(self, weights: TermWeights, *, k1: float, b: float, ties: Ties) -> None:
        self._weights = weights
        self._k1 = k1
        self._b = b
        self._ties = ties
        self._documents: dict[DocumentId, Document] = {}
        self._built: _Built | None = None

    def __len__(self) -> int:
        return len(self._documents)

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        entry = Document(document, text, order)
        if self._documents.get(document) != entry:
            self._documents[document] = entry
            self._built = None

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        if self._documents.pop(document, None) is not None:
            self._built = None

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that share a term with the query, best first."""
        built = self._ready()
        terms = built.known(query)
        if limit < 1 or not terms:
            return []
        slots = _near(built.estimates(terms), limit, terms)
        if slots is None:
            slots = built.matching(terms)
        return self._ranking(built, terms, slots)[:limit]

    def search_among(
        self, query: str, documents: Collection[DocumentId], *, limit: int
    ) -> list[Scored]:
        """Return the best `limit` of some documents that share a term with the query."""
        built = self._ready()
        terms = built.known(query)
        if limit < 1 or not terms:
            return []
        slots = built.slots(documents)
        near = _near(built.estimates(terms)[slots], limit, terms)
        slots = np.intersect1d(slots, built.matching(terms)) if near is None else slots[near]
        return self._ranking(built, terms, slots)[:limit]

    def _ready(self) -> "_Built":
        if self._built is None:
            self._built = _Built(list(self._documents.values()), k1=self._k1, b=self._b)
        return self._built

    def _ranking(self, built: "_Built", terms: dict[int, int], slots: Slots) -> list[Scored]:
        """Order the nominated documents by their exact scores."""
        final = rounded(built.exact(slots, terms, self._weights))
        ranking = best_first(
            slots,
            final,
            width=slots.size,
            order=lambda slot: built.documents[slot].order,
            ties=self._ties,
        )
        return told([Scored(built.documents[slot].id, score) for slot, score in ranking], final)


def _near(estimates: NDArray[np.float32], limit: int, terms: dict[int, int]) -> Slots | None:
    """Return the documents that could be among the exact best `limit`, if estimates can tell.

    A sum of n positive float32 numbers is off by at most about n units of rounding; the margin is
    some four times that, plus what rounding the exact scores can move.

    Returns:
        The slots, or `None` where the margin reaches down to 0, which documents without any of
        the terms have as well.
    """
    if limit >= estimates.size:
        return None
    last = float(np.partition(estimates, -limit)[-limit])
    slack = 4 * (sum(terms.values()) + 8) * float(np.finfo(np.float32).eps)
    least = last * (1.0 - slack) - 2 * 10.0**-SCORE_DECIMALS
    if least <= 0.0:
        return None
    # The float32 number below, so that the comparison needs no conversion of all estimates.
    return np.flatnonzero(estimates >= np.nextafter(np.float32(least), np.float32(0)))


@dataclass(frozen=True, slots=True)
class _Columns:
    """How often each term occurs in which slots, term after term, slots ascending."""

    starts: NDArray[np.intp]
    slots: Slots
    counts: Floats

    def holding(self, term: int) -> Slots:
        """Return the documents that hold `term`."""
        return self.slots[self.starts[term] : self.starts[term + 1]]

    def counts_in(self, term: int, slots: Slots) -> Floats:
        """Return the count of `term` in each of `slots`, 0 where it is absent."""
        holding = self.holding(term)
        places = np.minimum(np.searchsorted(holding, slots), holding.size - 1)
        counts = self.counts[self.starts[term] + places]
        return np.where(holding[places] == slots, counts, 0.0)


class _Built:
    """Documents, exact counts, and bm25s over the same term numbers."""

    def __init__(self, documents: list[Document], *, k1: float, b: float) -> None:
        self.documents = documents
        self.places = {document.id: slot for slot, document in enumerate(documents)}
        self.vocabulary: dict[str, int] = {}
        corpus = [
            [self.vocabulary.setdefault(term, len(self.vocabulary)) for term in tokens]
            for tokens in (tokenize(document.text) for document in documents)
        ]
        self.lengths = np.array([len(tokens) for tokens in corpus], dtype=np.float64)
        self.statistics = Statistics(len(documents), sum(map(len, corpus)))
        # bm25s fails on a corpus without tokens, which nothing can match anyway.
        self.columns = _columns(corpus, len(self.vocabulary))
        self.oracle = _oracle(corpus, self.vocabulary, k1=k1, b=b) if self.vocabulary else None

    def known(self, query: str) -> dict[int, int]:
        """Return the query's terms that occur in the corpus, with their numbers of occurrences."""
        counts = Counter(tokenize(query))
        return {
            self.vocabulary[term]: occurrences
            for term, occurrences in counts.items()
            if term in self.vocabulary
        }

    def estimates(self, terms: dict[int, int]) -> NDArray[np.float32]:
        """Return bm25s' scores of all documents; 0 where nothing matches."""
        assert self.oracle is not None
        repeated = [term for term, occurrences in terms.items() for _ in range(occurrences)]
        scores: NDArray[np.float32] = self.oracle.get_scores_from_ids(repeated)
        return scores

    def slots(self, documents: Collection[DocumentId]) -> Slots:
        """Return where documents are; unknown ones are left out."""
        places = map(self.places.get, documents)
        return np.array([slot for slot in places if slot is not None], dtype=np.intp)

    def matching(self, terms: dict[int, int]) -> Slots:
        """Return the documents that hold at least one of the terms."""
        mask = np.zeros(len(self.documents), dtype=np.bool_)
        for term in terms:
            mask[self.columns.holding(term)] = True
        return np.flatnonzero(mask)

    def exact(self, slots: Slots, terms: dict[int, int], weights: TermWeights) -> Floats:
        """Return the unrounded scores of `slots`, summed as the changing index sums them."""
        norms = weights.norms(self.lengths[slots], self.statistics)
        scores = np.zeros(slots.size)
        for term, occurrences in terms.items():
            counts = self.columns.counts_in(term, slots)
            present = np.flatnonzero(counts)
            scores[present] += weights.weigh(
                counts[present],
                norms[present],
                occurrences=occurrences,
                documents=self.columns.holding(term).size,
                statistics=self.statistics,
            )
        return scores


def _columns(corpus: list[list[int]], terms: int) -> _Columns:
    """Count every (term, document) pair of the corpus."""
    numbers = np.array([term for tokens in corpus for term in tokens], dtype=np.int64)
    slots = np.repeat(np.arange(len(corpus)), [len(tokens) for tokens in corpus])
    pairs, counts = np.unique(numbers * len(corpus) + slots, return_counts=True)
    pair_terms, pair_slots = np.divmod(pairs, max(len(corpus), 1))
    starts = np.searchsorted(pair_terms, np.arange(terms + 1))
    return _Columns(starts, pair_slots.astype(np.intp), counts.astype(np.float64))


def _oracle(corpus: list[list[int]], vocabulary: dict[str, int], *, k1: float, b: float) -> Any:
    """Return a bm25s index of the corpus."""
    import bm25s  # noqa: PLC0415 - only frozen contents need it

    oracle = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
    oracle.index((corpus, dict(vocabulary)), create_empty_token=False, show_progress=False)
    return oracle
