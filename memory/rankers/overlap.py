"""Term overlap: how many of the query's words a text holds."""

from dataclasses import dataclass

import numpy as np

from langgraft._core.arguments import checked_fields
from langgraft._core.canonical import JSON
from langgraft.memory.rankers.base import RankerIndex
from langgraft.memory.rankers.lexical import LexicalIndex
from langgraft.memory.rankers.postings import Statistics
from langgraft.memory.rankers.selection import Floats, Ties, check_ties
from langgraft.memory.rankers.tokens import TOKENIZER


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

    def index(self, *, frozen: bool) -> RankerIndex:  # noqa: ARG002 - one index serves both
        """Return a new empty index."""
        return LexicalIndex(_OneEach(), ties=self.ties)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {"ranker": "term_overlap", "ties": self.ties, "tokenizer": TOKENIZER}


class _OneEach:
    """Every term counts one, wherever it is."""

    def norms(self, lengths: Floats, statistics: Statistics) -> Floats:  # noqa: ARG002
        return lengths

    def weigh(
        self,
        counts: Floats,
        norms: Floats,  # noqa: ARG002
        *,
        occurrences: int,  # noqa: ARG002
        documents: int,  # noqa: ARG002
        statistics: Statistics,  # noqa: ARG002
    ) -> Floats:
        return np.ones_like(counts)
