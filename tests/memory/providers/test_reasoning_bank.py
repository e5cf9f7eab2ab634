"""`ReasoningBank`: the strategies of the task most like the one at hand."""

from dataclasses import replace

from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.model import Lesson, Outcome
from langgraft.memory.providers import ReasoningBank, ReasoningBankSettings

FILTER = Lesson("Filter before you count.", "Counting rows of a table", title="Filter first")
CHECK = Lesson("Read the error before trying again.", "A command failed", title="Errors tell")


def test_recall_when_asked_has_all_strategies_of_the_nearest_task() -> None:
    """Failures teach as successes do; titles, descriptions and contents stand in lines."""
    memory = ReasoningBank(InMemoryStore())
    memory.file(make_episode("a", task="count the red balls", lessons=(FILTER, CHECK)))
    failed = Outcome(success=False)
    memory.file(make_episode("b", task="open the door", outcome=failed, lessons=(CHECK,)))
    (found,) = memory.provide("count the blue balls", asking()).items
    assert found.text == (
        "# Filter first\nCounting rows of a table\nFilter before you count.\n"
        "# Errors tell\nA command failed\nRead the error before trying again."
    )
    (found,) = memory.provide("open the box", asking()).items
    assert (found.episode_id, found.success) == ("b", False)


def test_recall_when_two_tasks_are_asked_for_has_the_nearest_first() -> None:
    """`top_k` counts past tasks, not strategies."""
    memory = ReasoningBank(InMemoryStore(), settings=ReasoningBankSettings(top_k=2))
    for name, task in (("a", "sing a song"), ("b", "count balls"), ("c", "count red balls")):
        memory.file(make_episode(name, task=task, lessons=(FILTER, CHECK)))
    recall = memory.provide("count red balls now", asking())
    assert [item.episode_id for item in recall.items] == ["c", "b"]


def test_episode_when_it_taught_nothing_leaves_no_item() -> None:
    """Its trajectory is nothing that this memory keeps."""
    memory = ReasoningBank(InMemoryStore())
    memory.file(make_episode("a", lessons=()))
    assert not memory.content().items


def test_lesson_when_it_has_no_title_is_kept_without_one() -> None:
    """As of agents that distil another way, and of rules in the place of a model."""
    memory = ReasoningBank(InMemoryStore())
    bare = replace(FILTER, title="", when_to_use="", by="rules")
    memory.file(make_episode("a", lessons=(bare,)))
    (item,) = memory.content().items.values()
    assert item.text == "Filter before you count."
    assert item.metadata["by"] == "rules"
