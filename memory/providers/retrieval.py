"""What providers that retrieve by rank share: fields to compare, and one ranked search."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias, cast

from langgraph.store.base import SearchItem, SearchOp
from pydantic import Field as SettingsField

from langgraft.memory import bank
from langgraft.memory.episodes import Episode
from langgraft.memory.items import MemoryItem
from langgraft.memory.recall import RecallContext
from langgraft.memory.stores.drive import Program

Field: TypeAlias = Literal["task", "observation"]
"""`task` is the instruction; `observation` is what the agent sees: at the start of the
episode for a key, at the time of asking for a query."""

Fields: TypeAlias = Annotated[tuple[Field, ...], SettingsField(min_length=1)]
"""Fields to put together, in this order."""


def query_text(fields: Sequence[Field], query: str, context: RecallContext) -> str:
    """Put a query together from the instruction and what the agent sees."""
    parts = {"task": query, "observation": context.observation}
    return "\n".join(parts[field] for field in fields)


def key_text(fields: Sequence[Field], episode: Episode) -> str:
    """Put a retrieval key together from the instruction and the first observation."""
    parts = {"task": episode.task, "observation": episode.first_observation}
    return "\n".join(parts[field] for field in fields)


def ranked_items(
    namespace: bank.Namespace, query: str, limit: int
) -> Program[Sequence[tuple[MemoryItem, float]]]:
    """Return the best `limit` items of a bank that match `query`, with their scores."""
    if not query.strip():
        return []  # LangGraph reads a search without a query as a listing, unranked
    results = yield [SearchOp(namespace, query=query, limit=limit)]
    hits = cast("Sequence[SearchItem]", results[0])
    return [(bank.item_of(hit), cast("float", hit.score)) for hit in hits]
