"""Reading lessons from whatever a model says."""

from typing import Any, cast

import pytest
from langchain_core.messages import HumanMessage
from toy_world import RuleModel

from langgraft._core.texts import Prompt
from langgraft.memory.model import Attempt, Lesson, Outcome, Step
from langgraft.memory.recall import render_block
from langgraft.nodes.dialogue import run_dialogue
from langgraft.nodes.reflect import (
    Distilled,
    ReflectionPrompts,
    distilling,
    lessons_by_rules,
    parse_lessons,
    reflect_by_outcome_node,
    reflect_node,
)
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
    (f'{{"lessons": {JSON_ONE}}}', [ONE]),
    ('{"when_to_use": "lost", "lesson": "walk"}', [ONE]),
    (
        '{"when_to_use": "a", "lesson": "b"}\n' + JSON_ONE[1:-1],
        [{"text": "b", "when_to_use": "a"}, ONE],
    ),
    ('[{"situation": "When lost", "advice": "walk"}]', [ONE]),
    ('[{"condition": "when When: lost", "experience": "walk", "tags": ["a"]}]', [ONE]),
    ('[{"when_to_use": "whenever lost", "content": "walk"}]', [ONE]),
    ('[{"when_to_use": "whence", "lesson": "walk"}]', [{"text": "walk", "when_to_use": "whence"}]),
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
        '{"lesson": 5}',
        '{"lesson": "walk"',
        "walk, walk, walk",
        '[{"lesson": "walk", "when_to_use": "lo',
        "[" * 100_000,
        "null",
        "[1] is not [2]",
    ],
)
def test_lessons_when_there_is_no_list_are_none_and_the_reason_is_kept(text: str) -> None:
    """Garbage teaches nothing and breaks nothing."""
    lessons, said = parse_lessons(text, 3)
    assert lessons == []
    assert said.startswith(("unreadable: ", "some entries"))


@pytest.mark.parametrize("rest", [",", ', {"lesson": "ru', ', {"lesson": "run"', ", {", ""])
def test_lessons_when_the_list_is_cut_off_are_those_that_are_whole(rest: str) -> None:
    """What a limit on replies cuts off costs no lesson that was written."""
    text = f"Lessons:\n```json\n{JSON_ONE[:-1]}{rest}"
    assert parse_lessons(text, 3) == ([ONE], "the list is cut off")


def test_by_outcome_when_the_list_is_cut_off_asks_once_for_all_of_it() -> None:
    """The correction counts; where it is no better, what was whole of the first reply does."""
    cut = JSON_ONE[:-1] + ', {"lesson": "ru'
    replies = iter([cut, '[{"lesson": "walk"}, {"lesson": "run"}]', cut, "no"])
    model = RuleModel(rule=lambda _: next(replies))
    whole = run_dialogue(distilling("t", attempt(True, "walk")), model)
    assert [lesson.text for lesson in whole.lessons] == ["walk", "run"]
    kept = run_dialogue(distilling("t", attempt(True, "walk")), model)
    assert [(lesson.text, lesson.by) for lesson in kept.lessons] == [("walk", "model")]


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
    for part in ("Task: walk 1 steps", "Outcome: success", "Action: walk", "about 3 lessons"):
        assert part in asked.text


def test_node_when_the_episode_failed_says_why() -> None:
    """A failure is reflected on with its reason."""
    model = RuleModel(rule=lambda _: "no idea")
    update = reflect_node(model).invoke(state(success=False, reason="out of rounds"))
    assert update["lessons"] == []
    assert update["reflection"].startswith("unreadable: ")
    assert "Outcome: failure (out of rounds)" in model.seen[0][0].text


# By outcome ---------------------------------------------------------------------------------


def attempt(success: bool | None, *actions: str, reason: str = "") -> Attempt:
    """Make an attempt of these actions."""
    steps = (Step("", "", "At 0."), *(Step("go", action, "At 1.") for action in actions))
    return Attempt(steps, Outcome(success, reason=reason))


@pytest.mark.parametrize(
    ("success", "marks"),
    [
        (True, "reached its goal"),
        (False, "did not reach its goal"),
        (None, "look back at one finished attempt"),
    ],
)
def test_by_outcome_when_there_is_one_attempt_asks_about_how_it_ended(
    success: bool | None, marks: str
) -> None:
    """Success, failure and an unknown end each have a question of their own."""
    model = RuleModel(rule=lambda _: JSON_ONE)
    drawn = run_dialogue(distilling("walk 1 steps", attempt(success, "walk", reason="r")), model)
    assert drawn == Distilled((Lesson("walk", "lost"),), "ok", 1)
    (asked,) = model.seen[0]
    assert marks in asked.text
    for part in ("Task: walk 1 steps", "Action: walk", "about 3 lessons", "Outcome: "):
        assert part in asked.text


async def test_by_outcome_when_there_is_another_attempt_compares_the_two() -> None:
    """Both attempts are shown, the other without memory that it recalled."""
    model = RuleModel(rule=lambda _: JSON_ONE)
    other = Attempt((Step(render_block(["old"]), "fall", "Ouch."),), Outcome(False, reason="hurt"))
    node = reflect_by_outcome_node(model, other_attempt=lambda state: other)
    update = node.invoke(state())
    assert update == await node.ainvoke(state())
    assert update == {"lessons": [{**ONE, "by": "model"}], "reflection": "ok"}
    (asked,) = model.seen[0]
    for part in ("compare two attempts", "Action: walk", "Action: fall", "failure (hurt)"):
        assert part in asked.text
    assert "old" not in asked.text
    nobody = reflect_by_outcome_node(model, other_attempt=lambda state: None)
    nobody.invoke(state(success=False))
    assert "did not reach its goal" in model.seen[-1][0].text


def test_a_model_with_more_to_say_than_about_three_is_not_cut_short() -> None:
    """Three are asked for, and five come: all are lessons; of a flood the first six."""
    for wrote, kept in ((5, 5), (9, 6)):
        replies = RuleModel(rule=lambda _, n=wrote: f"[{', '.join([JSON_ONE[1:-1]] * n)}]")
        for node in (reflect_node(replies), reflect_by_outcome_node(replies)):
            assert len(node.invoke(state())["lessons"]) == kept
        assert all("about 3 lessons" in asked[0].text for asked in replies.seen)
    few = RuleModel(rule=lambda _: "[]")
    reflect_node(few, max_lessons=2).invoke(state())
    assert "about 2 lessons" in few.seen[0][0].text


def test_by_outcome_when_the_reply_is_bad_then_it_is_corrected_once() -> None:
    """One bad reply costs a call, not the lessons; there are never more than the limit."""
    replies = iter(["no idea", f"```\n[{JSON_ONE[1:-1]}, {JSON_ONE[1:-1]}]\n```"])
    model = RuleModel(rule=lambda _: next(replies))
    update = reflect_by_outcome_node(model, max_lessons=1).invoke(state())
    assert update == {"lessons": [{**ONE, "by": "model"}], "reflection": "ok"}
    assert len(model.seen) == 2


@pytest.mark.parametrize("model", [None, RuleModel(rule=lambda _: "no idea")])
def test_by_outcome_when_no_reply_can_be_used_then_one_lesson_is_by_rules(model: Any) -> None:
    """It names task, outcome and last actions, says who wrote it, and the state says why."""
    update = reflect_by_outcome_node(model).invoke(state(success=False, reason="out of rounds"))
    (lesson,) = update["lessons"]
    assert lesson == {
        "text": "This did not reach the goal (out of rounds): walk.",
        "when_to_use": "the task is like this one: walk 1 steps",
        "by": "rules",
    }
    why = "there is no model to ask" if model is None else "the reply holds no complete JSON value"
    assert update["reflection"] == f"by rules: {why}"


def test_by_outcome_when_the_model_finds_nothing_then_the_rules_add_nothing() -> None:
    """An empty list is an answer."""
    model = RuleModel(rule=lambda _: "[]")
    update = reflect_by_outcome_node(model).invoke(state())
    assert update == {"lessons": [], "reflection": "ok"}


def test_lessons_by_rules_are_short_and_only_of_what_was_done() -> None:
    """Long texts are cut, memory is left out, and where nothing was done nothing is said."""
    assert lessons_by_rules("t", attempt(True)) == ()
    block = render_block(["old"])
    (lesson,) = lessons_by_rules("t" * 999, attempt(True, "a", "b", f"{block}c\nd", "e" * 999))
    assert lesson.text.startswith("This reached the goal, and ended with: b; c d; eee")
    assert len(lesson.text) < 300
    assert len(lesson.when_to_use) < 300
    (lesson,) = lessons_by_rules("t", attempt(None, "a"))
    assert lesson.text == "How this ended is not known: a."


def test_prompts_when_replaced_are_used() -> None:
    """Each occasion's prompt can be another one."""
    model = RuleModel(rule=lambda _: "[]")
    prompts = ReflectionPrompts(success=Prompt("mine", "Why did $task work?"))
    reflect_by_outcome_node(model, prompts=prompts).invoke(state())
    assert model.seen[0][0].text == "Why did walk 1 steps work?"
