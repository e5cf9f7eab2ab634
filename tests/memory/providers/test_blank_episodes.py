"""What is kept of an episode in which nothing happened is not recalled."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.controls import RandomRetrieval
from langgraft.memory.model import Lesson, Outcome, Step
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.recall import BLANK

QUERY = "the office wifi is down"
NOTHING: dict[str, Any] = {"steps": (Step("", "", ""),), "lessons": (), "outcome": Outcome(None)}
ANSWER = (Step("", "", ""), Step("", "Hold the router's button for ten seconds.", ""))


@pytest.mark.parametrize("steps", [(), (Step("", "", ""),)], ids=["no step", "an empty one"])
@pytest.mark.parametrize("name", sorted(set(PROVIDERS) - {"none"}))
def test_episode_when_nothing_happened_in_it_is_filed_and_not_recalled(
    name: str, steps: Any
) -> None:
    """So it is not filed again, and tells no agent anything."""
    memory = make_provider(name, InMemoryStore())
    memory.file(make_episode("failed", task=QUERY, **{**NOTHING, "steps": steps}))
    content = memory.content()
    assert content.state["episodes"] == 1
    recall = memory.provide(QUERY, asking(episode_index=0))
    assert recall.text == ""
    assert {drop.reason for drop in recall.dropped} <= {BLANK}


@pytest.mark.parametrize("failed", [1, 40])
def test_recall_when_failed_turns_asked_the_same_gives_the_answered_one(failed: int) -> None:
    """The answered turn is longer, and used to rank below."""
    memory = make_provider("trajectory", InMemoryStore())
    memory.file(make_episode("answered", task=QUERY, **{**NOTHING, "steps": ANSWER}))
    for number in range(failed):
        memory.file(make_episode(f"failed{number}", task=QUERY, **NOTHING))
    recall = memory.provide(f"{QUERY} again", asking())
    assert [item.episode_id for item in recall.items] == ["answered"]
    assert {drop.reason for drop in recall.receipt.dropped} == {BLANK}
    random = RandomRetrieval(memory).provide(f"{QUERY} again", asking())
    assert [item.episode_id for item in random.items] == ["answered"]


@pytest.mark.parametrize(
    "part",
    [
        {"outcome": Outcome(False)},
        {"steps": (Step("", "", "a red room"),)},
        {"lessons": (Lesson(QUERY),)},
    ],
    ids=["an end", "a look", "a note of the agent's"],
)
def test_episode_when_anything_is_known_of_it_is_recalled(part: dict[str, Any]) -> None:
    """An end, one look at the world or a note is something to recall."""
    memory = make_provider("trajectory", InMemoryStore())
    memory.file(make_episode(task=QUERY, **{**NOTHING, **part}))
    assert memory.provide(QUERY, asking())
