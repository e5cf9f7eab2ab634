"""What a ranker is: settings that order texts by relevance, and the index it keeps."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from langgraft._core.canonical import JSON

DocumentId: TypeAlias = Hashable
"""Whatever names a document in an index; `RankedStore` uses `(namespace, key)`."""

Order: TypeAlias = tuple[int | str, ...]
"""Position of a document among equals: comparable, and different for different documents."""

SCORE_DECIMALS = 9
"""Scores are rounded to this many decimals, so that they do not depend on threads."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One ranked document."""

    id: DocumentId
    score: float
    """In float64, rounded to `SCORE_DECIMALS`; higher is more relevant."""


class RankerIndex(Protocol):
    """The changing index a ranker keeps over the texts of one corpus.

    The ranking is a function of the present documents alone: neither the order in which they
    were written nor what was overwritten or deleted meanwhile shows in it.
    """

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        ...

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        ...

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that match the query, best first.

        Documents that do not match at all are never returned.
        """
        ...

    def __len__(self) -> int:
        """Return the number of documents."""
        ...


class Ranker(Protocol):
    """Settings that say how texts are ordered: frozen, hashable, printable."""

    def index(self, *, frozen: bool) -> RankerIndex:
        """Return a new empty index.

        Args:
            frozen: The contents will not change once searched; an index may then trade the
                ability to change cheaply for speed. Rankings and scores are the same.
        """
        ...

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        ...
