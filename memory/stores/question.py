"""What a corpus is asked while no other thread uses it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langgraft.memory.embedders.base import EmbeddingRequest, Vectors
from langgraft.memory.rankers.among import search_among, without_ties
from langgraft.memory.rankers.base import EmbeddingIndex, Scored
from langgraft.memory.stores.corpus import Corpus

_FIRST_LOOK: Final = 320
"""Documents ranked at first, at least, where only records can tell which of them pass: ranking
them again costs more than that, and among as many are ten, nearly always, of one in twenty."""

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
            return _ranking(without_ties(index.search(self.query, limit=limit)), limit)
        return _ranking(search_among(index, self.query, documents, limit=limit), limit)


def _ranking(hits: Sequence[Scored], limit: int) -> Ranking:
    return Ranking(hits, whole=len(hits) < limit)
