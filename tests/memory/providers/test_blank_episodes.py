"""An episode in which nothing happened teaches nothing."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.model import Outcome, Step
from langgraft.memory.providers import PROVIDERS, make_provider

QUERY = "the office wifi is down"
BLANK: dict[str, Any] = {"steps": (Step("", "", ""),), "lessons": (), "outcome": Outcome(None)}


@pytest.mark.parametrize("steps", [(), (Step("", "", ""),)], ids=["no step", "an empty one"])
@pytest.mark.parametrize("name", sorted(set(PROVIDERS) - {"none"}))
def test_episode_when_nothing_happened_in_it_leaves_no_item(name: str, steps: Any) -> None:
    """It is filed, so that it is not filed again, and is recalled by nobody."""
    memory = make_provider(name, InMemoryStore())
    memory.file(make_episode("failed", task=QUERY, **{**BLANK, "steps": steps}))
    content = memory.content()
    assert not content.items
    assert content.state["episodes"] == 1
    assert not memory.provide(QUERY, asking(episode_index=0))


def test_recall_when_a_failed_turn_asked_the_same_gives_the_answered_one() -> None:
    """The answered turn is longer, and used to rank below."""
    memory = make_provider("trajectory", InMemoryStore())
    steps = (Step("", "", ""), Step("", "Hold the router's button for ten seconds.", ""))
    memory.file(make_episode("answered", task=QUERY, **{**BLANK, "steps": steps}))
    memory.file(make_episode("failed", task=QUERY, **BLANK))
    recall = memory.provide(f"{QUERY} again", asking())
    assert [item.episode_id for item in recall.items] == ["answered"]


@pytest.mark.parametrize(
    "part", [{"outcome": Outcome(False)}, {"steps": (Step("", "", "a red room"),)}]
)
def test_episode_when_anything_is_known_of_it_is_kept(part: dict[str, Any]) -> None:
    """An end, or one look at the world, is something to recall."""
    memory = make_provider("trajectory", InMemoryStore())
    memory.file(make_episode(task=QUERY, **{**BLANK, **part}))
    assert memory.provide(QUERY, asking())
