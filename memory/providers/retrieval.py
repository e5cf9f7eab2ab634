"""What providers that retrieve by rank share: fields to compare, and one ranked search."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias, cast

from langgraph.store.base import SearchItem, SearchOp
from pydantic import Field as SettingsField

from langgraft.memory import bank
from langgraft.memory.episodes import Episode
from langgraft.memory.portable import portable_text
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program

Field: TypeAlias = Literal["task", "observation"]
"""`task` is the instruction; `observation` is what the agent sees: at the start of the
episode for a key, at the time of asking for a query."""

Fields: TypeAlias = Annotated[tuple[Field, ...], SettingsField(min_length=1)]
"""Fields to put together, in this order."""

Filter: TypeAlias = dict[str, Any]
"""A LangGraph filter over an item's record, such as `{"item.source_domain": "math"}`."""

_WIDENING = 16
"""How much further each next look at a tie goes: most are small, or a good part of the bank."""


def query_text(fields: Sequence[Field], query: str, context: RecallContext) -> str:
    """Put a query together from the instruction and what the agent sees."""
    parts = {"task": query, "observation": context.observation}
    return "\n".join(parts[field] for field in fields)


def key_text(fields: Sequence[Field], episode: Episode) -> str:
    """Put a retrieval key together from the instruction and the first observation."""
    parts = {"task": episode.task, "observation": episode.first_observation}
    return "\n".join(parts[field] for field in fields)


def task_filter(settings: ProviderSettings, context: RecallContext) -> Filter:
    """Return the filter of items that may be recalled for the task that asks: all, by default."""
    if settings.same_task == "allow":
        return {}
    return {bank.TASK_FIELD: {"$ne": portable_text(context.task_id)}}


def ranked_items(
    namespace: bank.Namespace, query: str, limit: int, *, where: Filter | None = None
) -> Program[Found]:
    """Find the best `limit` items of a bank that match `query`.

    The search looks on until the score changes, so that how many share the best one is exact.

    Args:
        namespace: The bank.
        query: What to compare with the keys.
        limit: How many to return.
        where: Which items may be found, as a LangGraph filter; `None`: all. It changes neither
            the scores nor the corpus they are computed over.
    """
    if not query.strip():
        return Found()  # LangGraph reads a search without a query as a listing, unranked
    hits, tied = yield from _through_the_tie(namespace, query, limit, where)
    items = tuple((bank.item_of(hit), cast("float", hit.score)) for hit in hits[:limit])
    return Found(items, query, tied)


def _through_the_tie(
    namespace: bank.Namespace, query: str, limit: int, where: Filter | None
) -> Program[tuple[Sequence[SearchItem], int]]:
    """Return at least the best `limit` hits, and how many that may be found share the best score.

    Where the store does not tell, they are looked at.
    """
    width = limit
    while True:
        results = yield [SearchOp(namespace, filter=where or None, query=query, limit=width)]
        hits = cast("Sequence[SearchItem]", results[0])
        if not hits:
            return hits, 0
        if tied := getattr(hits[0], "tied", 0):
            return hits, tied
        scores = [hit.score for hit in hits]
        if len(hits) < width or scores[-1] != scores[0]:
            return hits, scores.count(scores[0])
        width *= _WIDENING
