"""What `ExpeL` keeps of an episode, and how the two kinds of items are told apart."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from langgraft.memory.bank import Filter
from langgraft.memory.episodes import Episode
from langgraft.memory.items import MemoryItem
from langgraft.memory.providers.episode_items import authors, render_lesson
from langgraft.memory.questions import By

Scored: TypeAlias = tuple[MemoryItem, float]

INSIGHTS: Final[Filter] = {"item.type": "strategic"}
"""Filter of insights."""
TRAJECTORIES: Final[Filter] = {"item.type": {"$ne": "strategic"}}
"""Filter of trajectories."""


def is_insight(item: MemoryItem) -> bool:
    """Say whether an item is an insight; all others count as trajectories.

    The type alone says it, so that an imported item has its place without more ado.
    """
    return item.type == "strategic"


def insights_of(episode: Episode, order_index: int) -> list[MemoryItem]:
    """Put an episode's lessons into one insight, found by its own text; no lessons give none."""
    if not episode.lessons:
        return []
    text = "\n".join(map(render_lesson, episode.lessons))
    by: By = "rules" if authors(episode.lessons) else "model"
    return [insight(episode, f"{episode.id}/insight", text, order_index, by=by)]


def insight(episode: Episode, identity: str, text: str, order_index: int, *, by: By) -> MemoryItem:
    """Make an insight or a rule; one that no model wrote says so in its metadata."""
    return MemoryItem(
        id=identity,
        text=text,
        type="strategic",
        source_domain=episode.domain,
        episode_id=episode.id,
        success=episode.outcome.success,
        order_index=order_index,
        task_id=episode.task_id,
        metadata={"by": by} if by == "rules" else {},
    )


def with_other_outcome(episode: Episode, items: Sequence[MemoryItem]) -> MemoryItem | None:
    """Find the latest trajectory of the same task that ended the other way."""
    if episode.outcome.success is None or not episode.task_id:
        return None
    others = [
        item
        for item in items
        if (item.source_domain, item.task_id) == (episode.domain, episode.task_id)
        and not is_insight(item)
        and item.success is (not episode.succeeded)
    ]
    return max(others, key=lambda item: item.order_index, default=None)


def latest_successes(items: Sequence[MemoryItem], limit: int) -> list[MemoryItem]:
    """Find the last successful trajectories, the latest one last."""
    successes = [item for item in items if item.success and not is_insight(item)]
    return sorted(successes, key=lambda item: item.order_index)[-limit:]


def one_per_task(ranked: Sequence[Scored]) -> list[Scored]:
    """Keep the shortest trajectory of each task, best first; without a task, each counts."""
    shortest: dict[tuple[str, str], Scored] = {}
    for item, score in ranked:
        task = (item.source_domain, item.task_id) if item.task_id else ("", item.id)
        known = shortest.get(task)
        if known is None or len(item.text) < len(known[0].text):
            shortest[task] = (item, score)
    return sorted(shortest.values(), key=lambda scored: -scored[1])
