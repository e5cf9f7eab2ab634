"""Episodes: JSON there and back, what is refused, and trajectories as text."""

import json
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from memory_cases import episodes, make_episode

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import InputError
from langgraft.memory.model import (
    Dropped,
    Episode,
    ErrorRecord,
    Lesson,
    Outcome,
    Question,
    Receipt,
    Step,
    Verdict,
)
from langgraft.memory.providers.episode_items import note_of, render_trajectory
from langgraft.memory.recall import OVER_BUDGET, render_block


@given(episodes())
def test_episode_when_written_and_read_back_is_equal(episode: Episode) -> None:
    """Any episode survives JSON unchanged."""
    assert Episode.from_json(json.loads(canonical_json(episode.to_json()))) == episode


def test_episode_when_it_carries_receipts_keeps_them() -> None:
    """Receipts come back as receipts, tuples included."""
    receipt = Receipt("r", "query", 4, ("a",), (0.5,), 7, (Dropped("b", OVER_BUDGET),))
    episode = make_episode(recalls=(receipt,))
    assert Episode.from_json(json.loads(canonical_json(episode.to_json()))) == episode


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"color": "red"}, "Episode has no field color"),
        ({"id": ""}, "has an empty id"),
        ({"id": "\ud800"}, "lone surrogate"),
        ({"steps": "walk"}, "`steps` of an episode is a list"),
        ({"steps": ["walk"]}, "not a Step: 'walk'"),
        ({"steps": [{"thought": "", "action": ""}]}, "Step needs `observation`"),
        ({"outcome": None}, "not a Outcome: None"),
        ({"outcome": {}}, "Outcome needs `success`"),
        ({"lessons": [{"text": "a", "advice": "b"}]}, "Lesson has no field advice"),
    ],
)
def test_episode_when_a_part_is_wrong_is_refused(change: dict[str, Any], said: str) -> None:
    """The message names the part."""
    with pytest.raises(InputError, match=said):
        Episode.from_json({**make_episode().to_json(), **change})


@pytest.mark.parametrize("success", ["yes", 1, 0, np.True_])
def test_outcome_when_success_is_not_plain_is_refused(success: Any) -> None:
    """What is no boolean would be filed as a failure, without a word."""
    with pytest.raises(
        InputError, match="`success` of an outcome is one of True, False, None; got"
    ):
        Outcome(success)


@pytest.mark.parametrize("feedback", ["gold", "Oracle", "", None])
def test_outcome_when_nobody_knows_whose_word_it_is_is_refused(feedback: Any) -> None:
    """A misspelt `oracle` does not pass the guard against gold answers."""
    with pytest.raises(InputError, match="`feedback` of an outcome is one of environment, self"):
        Outcome(success=True, feedback=feedback)


def test_error_record_when_its_kind_is_unknown_is_refused() -> None:
    """No setting could name such a kind, to recall it or to leave it out."""
    with pytest.raises(InputError, match=r"`kind` of an error record is one of code, .*got 'gpu'"):
        ErrorRecord("torch", "out of memory", "", kind=cast("Any", "gpu"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"outcome": True}, "`outcome` of an episode must be an Outcome, got True"),
        ({"steps": (("", "walk", ""),)}, "not a Step: .*in `steps` of an episode"),
        ({"lessons": ("walk",)}, "not a Lesson: 'walk', in `lessons`"),
        ({"lessons": Lesson("walk")}, "`lessons` of an episode is a list"),
        ({"errors": ({"error": "boom"},)}, "not a ErrorRecord: .*boom.*in `errors`"),
        ({"verdicts": ("add",)}, "not a Verdict: 'add', in `verdicts`"),
        ({"recalls": ("r1",)}, "not a Receipt: 'r1', in `recalls`"),
    ],
)
def test_episode_when_made_of_other_parts_is_refused(change: dict[str, Any], said: str) -> None:
    """The message names the part and where it stands, before any memory sees it."""
    with pytest.raises(InputError, match=said):
        make_episode(**change)


def test_episode_when_memory_was_quoted_in_it_can_be_cleared_of_it() -> None:
    """Whatever part of an attempt repeats a recalled block, memory does not take it in again."""
    block = render_block(["an old lesson"])
    episode = make_episode(
        task=f"{block}open the door",
        steps=(Step(f"I read {block}.", f"go {block}", f"{block}a room"),),
        outcome=Outcome(success=True, reason=f"done {block}"),
        lessons=(Lesson(f"{block}look", f"{block}you search"),),
        errors=(ErrorRecord("numpy", f"{block}ValueError", f"{block}cast"),),
        verdicts=(Verdict("q", "add", text=f"{block}look"),),
    )
    cleared = episode.without_memory()
    assert "old lesson" not in canonical_json(cleared.to_json())
    assert cleared.steps == (Step("I read .", "go ", "a room"),)
    assert make_episode().without_memory() == make_episode()


def test_question_when_it_shows_something_else_has_another_id() -> None:
    """A question is named by all it shows, in whatever order."""
    question = Question("votes", "e1", {"a": 1, "b": 2})
    assert question.id == Question("votes", "e1", {"b": 2, "a": 1}).id
    others = [
        Question("votes", "e1", {"a": 1, "b": 3}),
        Question("votes", "e2", {"a": 1, "b": 2}),
        Question("novelty", "e1", {"a": 1, "b": 2}),
    ]
    assert len({question.id, *(other.id for other in others)}) == 4


def test_trajectory_when_rendered_shows_each_part_on_its_line() -> None:
    """Parts that hold nothing leave no line."""
    steps = [
        Step("", "", "a room"),
        Step("hm", "go", "a door"),
        Step("", "open", "open"),
        Step("", "", ""),
    ]
    assert render_trajectory(steps, result="failure").splitlines() == [
        "Observation: a room",
        "Thought: hm",
        "Action: go",
        "Observation: a door",
        "Action: open",
        "Observation: open",
        "Result: failure",
    ]
    assert render_trajectory([], result="") == ""


def test_trajectory_when_replies_held_no_action_shows_what_was_said_to_them() -> None:
    """No model is shown such a reply to imitate, nor the same answer twice in a row."""
    slip = Step("Thought: Thought: hm", "", "Nothing was done.")
    steps = [Step("", "", "a room"), slip, slip, Step("on", "go", "a door"), slip]
    assert [step.malformed for step in steps] == [False, True, True, False, True]
    assert render_trajectory(steps, result="").splitlines() == [
        "Observation: a room",
        "Observation: Nothing was done.",
        "Thought: on",
        "Action: go",
        "Observation: a door",
        "Observation: Nothing was done.",
    ]
    episode = Episode("e", "d", "t", "task", tuple(steps), Outcome(success=False))
    note = note_of(episode, 0, part_characters=400)
    assert note.text.endswith("Thought: on\nAction: go")


@pytest.mark.parametrize(("success", "succeeded"), [(True, True), (False, False), (None, False)])
def test_episode_when_nobody_can_tell_has_not_succeeded(
    success: bool | None, succeeded: bool
) -> None:
    """Success is what is known to be one."""
    assert make_episode(outcome=Outcome(success)).succeeded is succeeded
