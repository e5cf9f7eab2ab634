"""The forms in which conversations are written, and which episodes are."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError, PlanError
from langgraft.benchmarks.harness.conversations import (
    Choice,
    Form,
    Message,
    PlayedEpisode,
    Recalled,
    export,
    up_to_the_last_learned,
)
from langgraft.benchmarks.studies import studies

REPLIES = st.lists(st.booleans(), min_size=1, max_size=12)
"""Of each reply of a conversation, whether something is to be learned from it."""


def conversation(learned: Sequence[bool]) -> list[Message]:
    """Return a conversation with these replies."""
    messages = [Message("system", "rules")]
    for number, each in enumerate(learned):
        messages += [Message("user", f"u{number}"), Message("assistant", f"a{number}", each)]
    return messages


def episode(**fields: Any) -> PlayedEpisode:
    """Return an episode that went well."""
    told = up_to_the_last_learned(conversation([True]))
    shown = Recalled(0, "q", "block", ({"id": "i"},), (0.5,))
    given: dict[str, Any] = {
        "run": "r",
        "condition": "agg",
        "split": "evaluate",
        "domain": "d",
        "task": "d/1",
        "success": True,
        "score": 1.0,
        "steps": [("", "", "seen"), ("thought", "act", "done")],
        "recalled": lambda: (shown,),
        "conversations": lambda _: told,
    }
    return PlayedEpisode(**given | fields)


def rows(episodes: Sequence[PlayedEpisode], form: Form, **options: Any) -> list[Any]:
    """Return what an export of all episodes holds."""
    with_memory = options.pop("with_memory", True)
    return [
        json.loads(line)
        for line in export(episodes, form, Choice(**options), with_memory=with_memory).lines
    ]


@given(REPLIES)
def test_prompt_completions_when_made_hold_each_learned_reply_after_all_before_it(
    learned: list[bool],
) -> None:
    """A row a reply, whose completion is that reply alone."""
    told = conversation(learned)
    plain = [each.to_json() for each in told]
    found = [row for each in up_to_the_last_learned(told) for row in each.prompt_completions()]
    assert found == [
        {"prompt": plain[:n], "completion": [plain[n]]}
        for n, each in enumerate(told)
        if each.learned
    ]


@given(REPLIES)
def test_openai_when_replies_are_not_learned_gives_them_no_weight(learned: list[bool]) -> None:
    """It ends with a reply that counts, and only replies have a weight."""
    for each in up_to_the_last_learned(conversation(learned)):
        messages: Any = each.openai()["messages"]
        assert messages[-1]["role"] == "assistant"
        assert "weight" not in messages[-1]
        weights = [m.get("weight", 1) for m in messages if m["role"] == "assistant"]
        assert weights == [int(one) for one in learned[: len(weights)]]
        assert not any("weight" in m for m in messages if m["role"] != "assistant")


def test_conversation_when_nothing_is_to_be_learned_is_none() -> None:
    """There would be nothing to train on."""
    assert up_to_the_last_learned(conversation([False, False])) == ()


def test_trajectory_when_asked_for_tells_the_episode_and_what_was_recalled() -> None:
    """One object; without memory nothing tells of it."""
    (row,) = rows([episode()], "trajectories")
    assert row == {
        "run": "r",
        "condition": "agg",
        "split": "evaluate",
        "domain": "d",
        "task": "d/1",
        "success": True,
        "score": 1.0,
        "steps": [
            {"thought": "", "action": "", "observation": "seen"},
            {"thought": "thought", "action": "act", "observation": "done"},
        ],
        "recalled": [
            {"step": 0, "query": "q", "block": "block", "items": [{"id": "i"}], "scores": [0.5]}
        ],
    }
    (bare,) = rows([episode()], "trajectories", with_memory=False)
    assert bare == {name: value for name, value in row.items() if name != "recalled"}


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, ["d/1", "d/2", "e/1"]),
        ({"success": True}, ["d/1", "e/1"]),
        ({"split": "train"}, ["e/1"]),
        ({"split": "evaluate"}, ["d/1", "d/2"]),
        ({"conditions": ("none",)}, ["d/2"]),
        ({"conditions": ("none", "agg"), "domains": ("d",)}, ["d/1", "d/2"]),
        ({"tasks": ("e/1",)}, ["e/1"]),
    ],
)
def test_episodes_when_chosen_pass_all_that_is_given(
    options: dict[str, Any], left: list[str]
) -> None:
    """Each filter narrows; several names of one kind widen."""
    played = [
        episode(),
        episode(task="d/2", success=False, condition="none"),
        episode(task="e/1", domain="e", split="train"),
    ]
    assert [row["task"] for row in rows(played, "trajectories", **options)] == left


def test_choice_when_a_name_is_of_no_episode_is_refused() -> None:
    """A typing error must not pass for an empty selection; names that there are, are told."""
    with pytest.raises(InputError, match=r"no episode .* condition 'aggg'; there are agg"):
        rows([episode()], "openai", conditions=("agg", "aggg"))


def test_export_when_nothing_is_left_is_refused() -> None:
    """No empty file passes for a data set."""
    with pytest.raises(InputError, match=r"of 1 episodes in the log 0 are chosen$"):
        rows([episode(success=False)], "openai", success=True)
    with pytest.raises(InputError, match="1 are chosen, and none holds a reply to learn from"):
        rows([episode(conversations=lambda _: ())], "sft")


def test_export_when_an_episode_holds_nothing_counts_it() -> None:
    """What has no line is told of."""
    played = [episode(), episode(conversations=lambda _: ())]
    made = export(played, "sft", Choice(), with_memory=True)
    assert (made.episodes, made.empty, len(made.lines)) == (2, 1, 1)


def test_lines_when_texts_hold_anything_are_ascii() -> None:
    """They steer no terminal, and come back as they were."""
    text = "caf\u00e9 \x1b[31m \u009b \u2028 \U0001f600"
    (line,) = export(
        [episode(steps=[("", "", text)])], "trajectories", Choice(), with_memory=False
    ).lines
    assert line.isascii()
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert json.loads(line)["steps"][0]["observation"] == text


def test_study_when_its_log_holds_no_conversation_says_why() -> None:
    """One error names the study."""
    nothing: Any = None
    with pytest.raises(
        PlanError, match=r"study 'mle' cannot be exported: .* no prompts or replies"
    ):
        studies()["mle"].episodes(nothing, nothing)
