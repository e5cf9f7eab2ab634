"""Simulated models as judge, validator and draft: the documented rules are the rules."""

import asyncio
import re
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from langgraft._core.canonical import JSON
from langgraft.benchmarks.simulated import SimulatedBabyAI, SimulatedDataScientist, judging, serve
from langgraft.benchmarks.simulated.judging import judging_reply
from langgraft.memory.model import Attempt, Lesson, Outcome, Question, Step
from langgraft.nodes.dialogue import run_dialogue
from langgraft.nodes.judge import Judgment, aanswer, answer, draft_node
from langgraft.nodes.prompts import prompt
from langgraft.nodes.reflect import distilling, reflect_by_outcome_node
from langgraft.nodes.screening import validate_node
from langgraft.nodes.state import AgentState

MODEL = SimulatedBabyAI()
RULES: dict[str, JSON] = {
    "r1": {"text": "Spell pickup as one word.", "votes": 2},
    "r2": {"text": "Leave through doors.", "votes": 2},
}
DONE = "Thought: I spell it as one word\nAction: pickup grey key 1\nObservation: done"


def votes(outcome: str = "success", *, full: bool = False, limit: int = 4) -> Question:
    """Ask what should become of two rules."""
    shows: dict[str, JSON] = {"rules": RULES, "task": "pick up the key", "trajectory": DONE}
    return Question("votes", "e", {**shows, "outcome": outcome, "limit": limit, "full": full})


def novelty(error: str) -> Question:
    """Ask whether an error adds something."""
    kept = {"package": "numpy", "error": "bad shape (3, 4)", "fix": "reshape"}
    record = {"package": "numpy", "error": error, "fix": "pad"}
    return Question("novelty", "e", {"record": record, "neighbours": {"n1": kept}})


CONTRADICTION = Question(
    "contradiction",
    "e",
    {
        "task": "6 * 7",
        "draft": "I guess.\n\nThe answer is 42.",
        "candidates": {"c1": "The answer is 41.", "c2": "Look around."},
    },
)


def said(judgment: Judgment) -> list[tuple[str, str | None, str]]:
    """Return verdicts of a model that gave a readable reply at once."""
    assert (judgment.by, judgment.why, judgment.calls) == ("model", "ok", 1)
    return [(each.action, each.item_id, each.text) for each in judgment.verdicts]


def state(**fields: Any) -> AgentState:
    """Make a finished episode."""
    step = {"thought": "", "action": "pickup grey key 1", "observation": "done", "valid": True}
    plain = {"instruction": "pick up the key", "steps": [step], "success": True, "score": 1.0}
    return cast("AgentState", {**plain, "reason": "goal reached", **fields})


def test_votes_when_an_attempt_followed_a_rule_bear_it_out_or_speak_against_it() -> None:
    """A rule whose words stand in the trajectory stands or falls with the outcome."""
    made = "To pick up the key: pickup grey key 1."
    assert said(answer(votes(), MODEL)) == [("agree", "r1", ""), ("add", None, made)]
    assert said(answer(votes("failure (x)"), MODEL)) == [("remove", "r1", "")]
    assert said(answer(votes(full=True), MODEL)) == [("agree", "r1", "")]
    assert said(answer(votes(limit=1), MODEL)) == [("agree", "r1", "")]


def test_votes_when_lessons_were_drawn_take_them_up() -> None:
    """A lesson that a rule says already is agreement, another a new rule."""
    lessons = ["leave through DOORS", "Look behind you."]
    judgment = answer(votes("failure"), MODEL, lessons=lessons)
    assert said(judgment) == [
        ("agree", "r2", ""),
        ("remove", "r1", ""),
        ("add", None, "Look behind you."),
    ]


def test_novelty_and_contradiction_when_judged_follow_the_stated_rules() -> None:
    """What is the same but for numbers is a repetition; answers that differ contradict."""
    assert said(answer(novelty("bad shape (5, 6)"), MODEL)) == [("none", "n1", "")]
    assert said(answer(novelty("no memory"), MODEL)) == [("add", None, "")]
    assert said(answer(CONTRADICTION, MODEL)) == [("contradicts", "c1", ""), ("agrees", "c2", "")]


def test_novelty_when_only_the_same_message_counts_follows_the_prompt() -> None:
    """Another number is another error then, whoever of the simulated models is asked."""
    for error, action in (("bad shape (5, 6)", "add"), ("bad shape (3, 4)", "none")):
        question = novelty(error)
        exact = Question("novelty", "e", {**question.shows, "same": "message"})
        for model in (MODEL, SimulatedDataScientist()):
            assert answer(exact, model).verdicts[0].action == action


def test_lessons_when_validated_need_length_and_a_word_of_the_attempt() -> None:
    """At tasks no learner knows, short ones, repetitions and what is about something else go."""
    texts = ["Spell pickup as one word.", "Go.", "Always remember birthdays."]
    lessons = [{"text": text, "when_to_use": ""} for text in texts]
    asked = state(lessons=lessons, instruction="spell the key")
    update = validate_node(MODEL).invoke(asked)
    assert [(v["kept"], v["score"], v["by"]) for v in update["validation"]] == [
        (True, 0.9, "model"),
        (False, 0.2, "model"),
        (False, 0.2, "model"),
    ]


def test_draft_when_asked_for_is_a_guess_that_can_be_contradicted() -> None:
    """A number in the task is the answer; else it would look around."""
    drafted = draft_node(MODEL).invoke(state(instruction="What is 6 * 7?"))["draft"]
    assert drafted == "I guess from the task.\nThe answer is 7."
    assert "look around" in draft_node(MODEL).invoke(state())["draft"]


def test_reflection_by_outcome_when_the_task_is_known_is_learned_from_as_ever() -> None:
    """The learner reads the three new prompts as it reads the one it always knew."""
    first = Step("", "", "Your goal: pick up the key")
    won = Attempt((first, Step("", "pickup grey key 1", "done")), Outcome(success=True))
    lost = Attempt((first, Step("", "turn left", "wall")), Outcome(success=False, reason="x"))
    for attempt, other in ((won, None), (lost, None), (won, lost)):
        drawn = run_dialogue(distilling("pick up the key", attempt, other=other), MODEL)
        assert drawn.why == "ok"
        assert drawn.calls == 1
    (lesson, *_) = run_dialogue(distilling("pick up the key", won, other=lost), MODEL).lessons
    assert isinstance(lesson, Lesson)
    assert "pickup" in lesson.text


async def test_judge_when_reached_over_http_answers_as_it_does_in_the_process() -> None:
    """Messages are all it reads, so a socket in between changes nothing."""
    async with serve(MODEL) as server:
        remote: BaseChatModel = ChatOpenAI(
            model="simulated", base_url=server.base_url, api_key=SecretStr("none"), max_retries=0
        )
        for question in (votes(), novelty("bad shape (5, 6)"), CONTRADICTION):
            assert await aanswer(question, remote) == answer(question, MODEL)
            blocking = await asyncio.to_thread(answer, question, remote)
            assert blocking == answer(question, MODEL)
        lessons = [{"text": "Spell pickup as one word.", "when_to_use": ""}]
        for node, local in (
            (validate_node(remote), validate_node(MODEL)),
            (draft_node(remote), draft_node(MODEL)),
            (reflect_by_outcome_node(remote), reflect_by_outcome_node(MODEL)),
        ):
            asked = state(lessons=lessons)
            assert await node.ainvoke(asked) == local.invoke(asked)
        assert len(server.calls) == 9


@pytest.mark.parametrize(
    "name",
    ["act", "reflect", "reflect_success", "reflect_failure", "reflect_comparative", "repair"],
)
def test_other_prompts_when_met_are_left_to_the_learner(name: str) -> None:
    """Playing and reflecting go on as before."""
    assert judging_reply(prompt(name).text) is None


NAMES = (
    "judge_votes",
    "judge_novelty",
    "judge_novelty_message",
    "judge_contradiction",
    "validate",
    "draft",
)
SCRAPS = [
    '{"id": "r1", "text": "a"}',
    '{"id": []}',
    '"x"',
    "5",
    "Rules:",
    "Task: a",
    "Draft:",
    "\n",
]


@given(st.sampled_from(NAMES), st.lists(st.sampled_from(SCRAPS) | st.text(max_size=9)))
def test_reply_when_the_prompt_is_scrambled_never_fails(name: str, parts: list[str]) -> None:
    """Whatever is filled in, there is a reply, and always the same."""
    head = prompt(name).text.partition("\n")[0]
    text = "\n".join([head, *parts])
    reply = judging_reply(text)
    assert reply
    assert reply == judging_reply(text) == MODEL.invoke([HumanMessage(text)]).text


def test_source_knows_no_condition_provider_split_or_family() -> None:
    """What a study compares is not named, so that no result is built in."""
    source = Path(judging.__file__).read_text(encoding="utf-8")
    banned = (
        r"placebo|shuffl\w*|baseline|transfer|expel|agent_?kb|coding|\bseed|\btrain\w*|\btest\w*"
    )
    assert not re.findall(banned + r"|memory\.providers|\bdomain\b|task_id", source, re.IGNORECASE)
