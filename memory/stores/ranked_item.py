"""A search result that says what its score is made of."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from langgraph.store.base import SearchItem


class RankedItem(SearchItem):
    """A LangGraph `SearchItem` with the parts of its score, and whether it is alone with it.

    It is equal to, and has the same `dict()` as, the plain one.

    Attributes:
        parts: Name → figure, such as `{"bm25": 3.21, "bm25_rank": 1, "dense": 0.83,
            "dense_rank": 4}` of a hybrid ranker; of any other, its name and the score.
        tied: How many documents of the corpus that pass the filter share the score: told with
            the best of a ranking, where they are counted; 0 elsewhere.
    """

    __slots__ = ("parts", "tied")

    def __init__(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        created_at: datetime,
        updated_at: datetime,
        *,
        score: float | None,
        parts: Mapping[str, float],
        tied: int = 0,
    ) -> None:
        super().__init__(namespace, key, value, created_at, updated_at, score)
        self.parts = parts
        self.tied = tied
