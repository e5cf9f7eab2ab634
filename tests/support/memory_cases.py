"""Items and episodes to test memory with, by hand; any others come from the provider suite."""

from typing import Any

from langgraft.memory.model import Episode, Lesson, MemoryItem, Outcome, Step
from langgraft.memory.recall import RecallContext
from langgraft.memory.testing.providers.base import (
    HOSTILE,
    episodes,
    item_types,
    items,
    names,
    scalars,
    texts,
)

__all__ = [
    "HOSTILE",
    "asking",
    "episodes",
    "item_types",
    "items",
    "make_episode",
    "make_item",
    "names",
    "scalars",
    "texts",
]


def make_item(identity: str = "i1", **fields: Any) -> MemoryItem:
    """Make an item; what is not given is plain."""
    values: dict[str, Any] = {
        "text": f"text of {identity}",
        "type": "strategic",
        "source_domain": "toy",
        "episode_id": "e1",
        "success": True,
        "order_index": 0,
    }
    return MemoryItem(id=identity, **{**values, **fields})


def make_episode(
    identity: str = "e1", *, task: str = "open the red door", **fields: Any
) -> Episode:
    """Make an episode of two steps and two lessons; what is not given is plain."""
    values: dict[str, Any] = {
        "domain": "toy",
        "task_id": f"task of {identity}",
        "task": task,
        "steps": (Step("", "", "a room"), Step("doors open", "toggle", "it is open")),
        "outcome": Outcome(success=True, score=1.0, reason="goal reached"),
        "lessons": (Lesson("toggle it", f"you must {task}"), Lesson("look around")),
    }
    return Episode(identity, **{**values, **fields})


def asking(**fields: Any) -> RecallContext:
    """Make the context of a question to memory; what is not given is plain."""
    return RecallContext(**{"domain": "toy", "task_id": "t", "episode_id": "asking", **fields})
