"""Keeping of the lessons drawn those that hold."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from toy_world import RuleModel

from langgraft._core.texts import Prompt
from langgraft.nodes.dialogue import NO_MODEL
from langgraft.nodes.screening import LONGEST, MIN_SCORE, validate_by_rules, validate_node
from langgraft.nodes.state import AgentState

TEXTS = ["Walk until the corridor ends.", "Never fall into the pit.", "Count every step you take."]
LESSONS = [{"text": text, "when_to_use": f"w{i}", "by": "model"} for i, text in enumerate(TEXTS)]


def scripted(*replies: Any) -> FakeListChatModel:
    """Make a model that gives these replies, as JSON where they are no texts."""
    texts = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
    return FakeListChatModel(responses=texts)


def state(lessons: Any = LESSONS) -> AgentState:
    """Make the part of a state that validating reads."""
    step = {"thought": "go", "action": "walk", "observation": "At 1.", "valid": True}
    plain = {"instruction": "walk 1 steps", "steps": [step], "success": True, "score": 1.0}
    return cast("AgentState", {**plain, "reason": "goal reached", "lessons": lessons})


def score(lesson: int, score: float, *, valid: bool = True, reason: str = "") -> dict[str, Any]:
    """Write an entry of a reply."""
    return {"lesson": lesson, "valid": valid, "score": score, "reason": reason}


async def test_lessons_when_judged_are_kept_if_valid_and_at_least_half() -> None:
    """ReMe's rule; the state says of each lesson what became of it, and why."""
    reply = [score(3, MIN_SCORE), score(1, 0.9, valid=False, reason="not so"), score(2, 0.49)]
    node = validate_node(scripted(f"```json\n{json.dumps(reply)}\n```"))
    update = node.invoke(state())
    assert update == await node.ainvoke(state())
    assert update["lessons"] == [LESSONS[2]]
    said = [(v["text"], v["kept"], v["score"], v["reason"]) for v in update["validation"]]
    assert said == [
        (TEXTS[0], False, 0.9, "not so"),
        (TEXTS[1], False, 0.49, "score 0.49"),
        (TEXTS[2], True, 0.5, "score 0.5"),
    ]
    assert {(v["by"], v["why"]) for v in update["validation"]} == {("model", "ok")}


def test_lessons_when_asked_about_are_shown_with_the_attempt() -> None:
    """The model sees each lesson with its number, and what it was drawn from."""
    model = RuleModel(rule=lambda _: json.dumps([score(n, 1.0) for n in (1, 2, 3)]))
    validate_node(model).invoke(state())
    (asked,) = model.seen[0]
    second = '{"lesson": 2, "when_to_use": "w1", "text": "Never fall into the pit."}'
    for part in (second, "Task: walk 1 steps", "Outcome: success", "Action: walk"):
        assert part in asked.text
    validate_node(model, prompt=Prompt("mine", "Good? $lessons")).invoke(state())
    assert model.seen[1][0].text.startswith('Good? {"lesson": 1')


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (score(4, 1.0), "there is no lesson 4"),
        (score(0, 1.0), "there is no lesson 0"),
        (score(1, 1.0), "another entry for lesson 1"),
        (score(2, 1.5), "less than or equal to 1"),
        (score(2, -0.1), "greater than or equal to 0"),
        ({"lesson": 2, "score": 1}, "`valid`: Field required"),
    ],
)
def test_lessons_when_a_score_is_not_possible_then_it_is_corrected_or_left_to_rules(
    entry: dict[str, Any], problem: str
) -> None:
    """What two replies do not settle, rules decide, and say so."""
    bad = [score(1, 0.1), entry]
    update = validate_node(scripted(bad, bad)).invoke(state())
    assert [v["by"] for v in update["validation"]] == ["model", "rules", "rules"]
    assert update["lessons"] == LESSONS[1:]
    assert problem in update["validation"][1]["why"]
    assert "no entry for lesson 2, 3" in update["validation"][1]["why"]
    good = [score(n, 0.8) for n in (1, 2, 3)]
    corrected = validate_node(scripted(bad, good)).invoke(state())
    assert [v["by"] for v in corrected["validation"]] == ["model"] * 3


@pytest.mark.parametrize(("model", "why"), [(None, NO_MODEL), (scripted("?", "??"), "no complete")])
def test_lessons_when_no_reply_can_be_used_are_judged_by_rules(model: Any, why: str) -> None:
    """Nothing falls back silently."""
    lessons = [*LESSONS[:1], {"text": "short", "when_to_use": ""}]
    update = validate_node(model).invoke(state(lessons))
    assert update["lessons"] == LESSONS[:1]
    assert [v["by"] for v in update["validation"]] == ["rules", "rules"]
    assert all(why in v["why"] for v in update["validation"])
    assert update["validation"][1]["reason"] == "shorter than 20 characters"


def test_lessons_when_there_are_none_cost_nothing() -> None:
    """No lesson, no call."""
    model = RuleModel(rule=lambda _: pytest.fail("the model was asked"))
    assert validate_node(model).invoke(state([])) == {
        "lessons": [],
        "validation": [],
        "dropped": [],
    }


def test_rules_when_applied_look_at_length_repetition_and_the_task() -> None:
    """Each lesson is dropped for the first fault found."""
    task = "Walk until the corridor ends. Then turn left and open the door."
    texts = [TEXTS[1], "  never fall INTO the pit", TEXTS[0], "x" * (LONGEST + 1), "Walk."]
    judged = validate_by_rules(texts, task)
    assert [(each.kept, each.score, each.reason) for each in judged] == [
        (True, 1.0, ""),
        (False, 0.0, "says what another lesson says"),
        (False, 0.0, "repeats the task"),
        (False, 0.0, f"longer than {LONGEST} characters"),
        (False, 0.0, "shorter than 20 characters"),
    ]


ENTRY = st.fixed_dictionaries(
    {
        "lesson": st.integers(-1, 5) | st.text(max_size=2),
        "valid": st.booleans() | st.none(),
        "score": st.floats() | st.integers(),
    }
)


@given(st.lists(ENTRY, max_size=5).map(json.dumps) | st.text(max_size=30))
def test_lessons_when_the_reply_is_anything_are_a_part_of_those_drawn(reply: str) -> None:
    """No reply makes it fail, changes a lesson, or leaves one without an entry."""
    update = validate_node(scripted(reply)).invoke(state())
    assert all(lesson in LESSONS for lesson in update["lessons"])
    assert [v["text"] for v in update["validation"]] == TEXTS
    assert sum(v["kept"] for v in update["validation"]) == len(update["lessons"])
    assert all(0 <= v["score"] <= 1 for v in update["validation"])
