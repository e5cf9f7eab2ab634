"""`TrajectoryMemory`: what it keeps, and by what it finds it again."""

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.model import Outcome, Step
from langgraft.memory.providers import TrajectoryMemory, TrajectorySettings


def memory_with(**fields: object) -> TrajectoryMemory:
    """Make a provider with settings."""
    return TrajectoryMemory(InMemoryStore(), settings=TrajectorySettings.model_validate(fields))


def recalled(memory: TrajectoryMemory, query: str, observation: str = "") -> list[str]:
    """Return the episodes recalled."""
    found = memory.provide(query, asking(observation=observation))
    return [item.episode_id for item in found.items]


@pytest.mark.parametrize(
    ("success", "result"), [(True, "Result: success"), (False, "Result: failure"), (None, None)]
)
def test_item_when_made_tells_task_trajectory_and_result(
    success: bool | None, result: str | None
) -> None:
    """The whole episode is its text; a result that nobody knows is not made up."""
    memory = memory_with()
    memory.file(make_episode("e1", outcome=Outcome(success)))
    (item,) = memory.content().items.values()
    assert item.text.splitlines() == [
        "Task: open the red door",
        "Observation: a room",
        "Thought: doors open",
        "Action: toggle",
        "Observation: it is open",
        *([result] if result else []),
    ]
    assert (item.id, item.type, item.success) == ("e1/trajectory", "operational", success)
    assert (item.task_id, item.source_domain) == ("task of e1", "toy")


def test_success_only_when_set_keeps_known_successes() -> None:
    """Failures and unknown outcomes leave no item, and count as episodes."""
    memory = memory_with(success_only=True)
    for identity, success in (("yes", True), ("no", False), ("who knows", None)):
        memory.file(make_episode(identity, outcome=Outcome(success)))
    assert list(memory.content().items) == ["yes/trajectory"]
    assert memory.content().state["episodes"] == 3


def test_key_when_it_is_the_instruction_ignores_what_was_seen() -> None:
    """The two readings of the paper find different episodes."""
    room = (Step("", "", "you see a blue ball and a grey box"),)
    hall = (Step("", "", "you see a green key"),)
    found: dict[str, list[str]] = {}
    for name, fields in (("instruction", ["task"]), ("first sight", ["task", "observation"])):
        memory = memory_with(key_fields=fields, query_fields=fields, top_k=1)
        memory.file(make_episode("room", task="open a door", steps=room))
        memory.file(make_episode("hall", task="open a door", steps=hall))
        found[name] = recalled(memory, "open a door", "you see a grey box")
    assert found == {"instruction": ["hall"], "first sight": ["room"]}


def test_ties_when_equal_give_the_latest_first_by_default() -> None:
    """The order of equals is a stated setting."""
    for ties, expected in (("newest", ["e2", "e1"]), ("oldest", ["e0", "e1"])):
        memory = memory_with(top_k=2, ranker={"ranker": "bm25", "ties": ties})
        for number in range(3):
            memory.file(make_episode(f"e{number}"))
        assert recalled(memory, "open the red door") == expected


def test_query_when_it_says_nothing_recalls_nothing() -> None:
    """An empty instruction matches no memory."""
    memory = memory_with()
    memory.file(make_episode())
    assert recalled(memory, "") == recalled(memory, " \n") == recalled(memory, "?!") == []


@pytest.mark.parametrize("top_k", [1, 3, 40])
@pytest.mark.parametrize("alike", [1, 2, 3, 33, 70])
def test_receipt_when_items_tie_counts_all_of_them(top_k: int, alike: int) -> None:
    """The tie is counted to its end, however few items are recalled."""
    memory = memory_with(top_k=top_k)
    for number in range(alike):
        memory.file(make_episode(f"e{number}"))
    memory.file(make_episode("less", task="open the red door of the green house"))
    receipt = memory.provide("open the red door", asking()).receipt
    assert receipt.tied == alike
    assert len(receipt.item_ids) == min(top_k, alike + 1)
    assert memory.provide("nothing like it", asking()).receipt.tied == 0


def test_receipt_when_more_is_compared_than_the_task_tells_what() -> None:
    """The text that met the keys can be read off the receipt."""
    memory = memory_with(query_fields=("task", "observation"))
    memory.file(make_episode())
    receipt = memory.provide("open it", asking(observation="a red door")).receipt
    assert (receipt.query, receipt.searched) == ("open it", "open it\na red door")
