"""Reading lessons from whatever a model says."""

from typing import Any, cast

import pytest
from langchain_core.messages import HumanMessage
from toy_world import RuleModel

from langgraft.memory.recall import render_block
from langgraft.nodes.reflect import parse_lessons, reflect_node
from langgraft.nodes.state import AgentState

ONE = {"text": "walk", "when_to_use": "lost"}
JSON_ONE = '[{"when_to_use": "lost", "lesson": "walk"}]'

READABLE: list[tuple[str, list[dict[str, str]]]] = [
    (JSON_ONE, [ONE]),
    (f"```json\n{JSON_ONE}\n```", [ONE]),
    (f"Here you are:\n```\n{JSON_ONE}\n```\nGood luck!", [ONE]),
    (f"I saw [1] and [2]. Lessons: {JSON_ONE} That is all.", [ONE]),
    ('[{"lesson": " walk "}]', [{"text": "walk", "when_to_use": ""}]),
    ('[{"lesson": "walk", "when_to_use": null}]', [{"text": "walk", "when_to_use": ""}]),
    ('[{"lesson": "line\nbreak"}]', [{"text": "line\nbreak", "when_to_use": ""}]),
    ('[{"lesson": "half \\ud83d"}]', [{"text": "half ?", "when_to_use": ""}]),
    ("[]", []),
    ("There is nothing: []", []),
]


@pytest.mark.parametrize(("text", "lessons"), READABLE)
def test_lessons_when_there_is_a_list_are_read(text: str, lessons: list[dict[str, str]]) -> None:
    """Fences and chatter around the list do not matter."""
    assert parse_lessons(text, 3) == (lessons, "ok")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing to say",
        '{"lesson": "walk"}',
        "walk, walk, walk",
        '[{"lesson": "walk", "when_to_use": "lo',
        '[{"lesson": "walk"},',
        "[" * 100_000,
        "null",
        "[1] is not [2]",
    ],
)
def test_lessons_when_there_is_no_list_are_none_and_the_reason_is_kept(text: str) -> None:
    """Garbage teaches nothing and breaks nothing; a list that is cut off is not repaired."""
    lessons, said = parse_lessons(text, 3)
    assert lessons == []
    assert said.startswith(("unreadable: ", "some entries"))


@pytest.mark.parametrize(
    "bad", ['"walk"', "5", "null", "[]", "{}", '{"lesson": 5}', '{"lesson": " "}']
)
def test_lessons_when_an_entry_is_unreadable_keep_the_others(bad: str) -> None:
    """One slip does not cost the rest."""
    text = f'[{{"lesson": "walk", "when_to_use": "lost"}}, {bad}]'
    assert parse_lessons(text, 3) == ([ONE], "some entries were unreadable")


def test_lessons_when_there_are_too_many_are_the_first_ones() -> None:
    """The limit is the paper's."""
    text = "[" + ", ".join(f'{{"lesson": "{number}"}}' for number in range(9)) + "]"
    lessons, said = parse_lessons(text, 3)
    assert [lesson["text"] for lesson in lessons] == ["0", "1", "2"]
    assert said == "ok"


def test_lessons_when_they_quote_recalled_memory_are_stripped_of_it() -> None:
    """Memory never feeds on itself."""
    block = render_block(["old"]).replace("\n", "\\n")
    lessons, _ = parse_lessons(f'[{{"lesson": "{block}walk", "when_to_use": "{block}"}}]', 3)
    assert lessons == [{"text": "walk", "when_to_use": ""}]


def state(**fields: Any) -> AgentState:
    """Make the part of a state that reflecting reads."""
    step = {"thought": "go", "action": "walk", "observation": "At 1.", "valid": True}
    plain = {"instruction": "walk 1 steps", "steps": [step], "success": True, "score": 1.0}
    return cast("AgentState", {**plain, "reason": "goal reached", **fields})


async def test_node_when_run_shows_task_outcome_and_trajectory_sync_and_async() -> None:
    """The model sees how it went, and its lessons come back."""
    model = RuleModel(rule=lambda _: JSON_ONE)
    node = reflect_node(model)
    assert node.invoke(state()) == await node.ainvoke(state())
    assert node.invoke(state()) == {"lessons": [ONE], "reflection": "ok"}
    (asked,) = model.seen[0]
    assert isinstance(asked, HumanMessage)
    for part in ("Task: walk 1 steps", "Outcome: success", "Action: walk", "at most 3 lessons"):
        assert part in asked.text


def test_node_when_the_episode_failed_says_why() -> None:
    """A failure is reflected on with its reason."""
    model = RuleModel(rule=lambda _: "no idea")
    update = reflect_node(model).invoke(state(success=False, reason="out of rounds"))
    assert update["lessons"] == []
    assert update["reflection"].startswith("unreadable: ")
    assert "Outcome: failure (out of rounds)" in model.seen[0][0].text
