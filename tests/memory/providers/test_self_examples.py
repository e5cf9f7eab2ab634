"""`SelfGeneratedExamples`: similar successes, in a stated order."""

from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item

from langgraft.memory.bank_format import write_items
from langgraft.memory.model import Outcome
from langgraft.memory.providers import SelfExamplesSettings, SelfGeneratedExamples, make_provider
from langgraft.memory.recall import Budget


def memory_with(**fields: object) -> SelfGeneratedExamples:
    """Make a provider with settings."""
    settings = SelfExamplesSettings.model_validate(fields)
    return SelfGeneratedExamples(InMemoryStore(), settings=settings)


def test_bank_when_episodes_end_otherwise_keeps_what_did_not_fail() -> None:
    """An example is what feedback says is right, or says nothing of, and both are recalled."""
    memory = memory_with()
    for name, success in (("yes", True), ("no", False), ("who knows", None)):
        memory.file(make_episode(name, outcome=Outcome(success)))
    assert list(memory.content().items) == ["yes/trajectory", "who knows/trajectory"]
    item, unknown = memory.content().items.values()
    assert unknown.success is None
    assert set(memory.provide("open the red door", asking()).items) == {item, unknown}
    assert item.text.startswith("Task: open the red door\nObservation: a room\n")
    assert item.text.endswith("Result: success")


@pytest.mark.parametrize("order", ["most_similar_last", "most_similar_first"])
def test_block_when_rendered_puts_the_most_similar_where_it_is_said_to(order: str) -> None:
    """The order is a setting; what is recalled does not depend on it."""
    memory = memory_with(top_k=2, order=order)
    for task in ("open a red door", "close the window", "open the red door"):
        memory.file(make_episode(task, task=task))
    recall = memory.provide("open the red door", asking())
    assert [item.episode_id for item in recall.items] == ["open the red door", "open a red door"]
    best, other = (recall.text.index(f"Task: {item.key}") for item in recall.items)
    assert (best > other) == (order == "most_similar_last")


def test_budget_when_short_is_given_to_the_most_similar() -> None:
    """Best first, whichever way round they stand."""
    memory = memory_with()
    for task in ("open the red door", "open a door"):
        memory.file(make_episode(task, task=task))
    recall = memory.provide("open the red door", asking(), Budget(tokens=78))
    assert [item.episode_id for item in recall.items] == ["open the red door"]
    assert [each.id for each in recall.dropped] == ["open a door/trajectory"]


def test_recall_when_there_are_many_has_sixteen_and_the_newest_of_equals(tmp_path: Path) -> None:
    """Self-StreamICL's k; of two thousand equal texts the last ones, failures left out."""
    path = tmp_path / "bank.jsonl"
    listed = [
        make_item(f"i{n:04}", text="open it", success=n < 1_990, order_index=n)
        for n in range(2_000)
    ]
    write_items(path, listed)
    memory = make_provider("self_examples", InMemoryStore(), settings={})
    memory.import_items(path)
    recall = memory.provide("open", asking())
    assert [item.id for item in recall.items] == [f"i{n:04}" for n in range(1_989, 1_973, -1)]
    assert recall.receipt.tied == 1_990
