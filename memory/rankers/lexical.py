"""The changing index of the rankers that add up what a query's terms are worth."""

from collections import Counter
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np

from langgraft.memory.rankers.base import DocumentId, Order, Scored
from langgraft.memory.rankers.postings import Postings, Statistics
from langgraft.memory.rankers.selection import Floats, Slots, Ties, best_first, rounded
from langgraft.memory.rankers.ties import told
from langgraft.memory.rankers.tokens import tokenize


class TermWeights(Protocol):
    """What one term of a query is worth in each document that holds it.

    Both methods work element by element in float64 and never sum, so that a document's score
    is the same whatever else is computed beside it.
    """

    def norms(self, lengths: Floats, statistics: Statistics) -> Floats:
        """Return a number per document that depends on its length alone."""
        ...

    def weigh(
        self,
        counts: Floats,
        norms: Floats,
        *,
        occurrences: int,
        documents: int,
        statistics: Statistics,
    ) -> Floats:
        """Return what a term adds to the score of each document.

        Args:
            counts: How often the term occurs in each.
            norms: Of the same documents.
            occurrences: How often the term occurs in the query.
            documents: How many documents hold it.
            statistics: Of the corpus.
        """
        ...


class LexicalIndex:
    """A `DurableIndex` over `Postings`; it is not safe for threads on its own."""

    def __init__(self, weights: TermWeights, *, ties: Ties) -> None:
        self._weights = weights
        self._ties = ties
        self._postings = Postings()

    def __len__(self) -> int:
        return len(self._postings)

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        self._postings.put(document, text, order)

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        self._postings.remove(document)

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that share a term with the query, best first."""
        if limit < 1:
            return []
        scores = self._scores(query)
        return self._ranking(np.flatnonzero(scores), scores, limit)

    def search_among(
        self, query: str, documents: Collection[DocumentId], *, limit: int
    ) -> list[Scored]:
        """Return the best `limit` of some documents that share a term with the query."""
        if limit < 1:
            return []
        scores = self._scores(query)
        slots = self._postings.slots(documents)
        return self._ranking(slots[scores[slots] != 0], scores, limit)

    def _ranking(self, matching: Slots, scores: Floats, limit: int) -> list[Scored]:
        """Order what matches by its final score."""
        postings = self._postings
        final = rounded(scores[matching])
        ranking = (
            Scored(postings.document(slot).id, score)
            for slot, score in best_first(
                matching,
                final,
                width=limit,
                order=lambda slot: postings.document(slot).order,
                ties=self._ties,
            )
        )
        return told(list(islice(ranking, limit)), final)

    def save(self, folder: Path) -> None:
        """Write all documents into an empty folder."""
        self._postings.save(folder)

    def load(self, folder: Path) -> None:
        """Become what `save` wrote."""
        self._postings.load(folder)

    def _scores(self, query: str) -> Floats:
        """Return the unrounded score of every slot; 0 where nothing matches."""
        postings, statistics = self._postings, self._postings.statistics
        scores = np.zeros(postings.size)
        norms: Floats | None = None
        for term, occurrences in Counter(tokenize(query)).items():
            posting = postings.posting(term)
            if posting is None:
                continue
            if norms is None:
                norms = self._weights.norms(postings.lengths, statistics)
            slots, counts = posting.arrays()
            worth = self._weights.weigh(
                counts,
                norms.take(slots),
                occurrences=occurrences,
                documents=posting.documents,
                statistics=statistics,
            )
            # Slots are distinct within a term; `add.at` is four times faster than `+=` here.
            np.add.at(scores, slots, worth)
        scores[postings.dead] = 0.0
        return scores
