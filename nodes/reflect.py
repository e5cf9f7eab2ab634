"""`reflect`: distill lessons from a finished episode (continual-memory §3, *Insight*).

`reflect_node` asks one question whatever the outcome, once, and takes the reply as it is: the
node of the continual study. `reflect_by_outcome_node` asks one of three questions, about a success,
a failure, or two attempts at comparable tasks side by side (the three distillations of ReMe,
arXiv:2512.10696 §3), has a bad reply corrected, and where that fails notes what is known by rules.
With `strategy_prompts` it asks for strategies with title, description and content, as ReasoningBank
does (arXiv:2509.25140).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft._core.texts import Prompt
from langgraft.memory.model import Attempt, Lesson, Outcome, Step, strip_block
from langgraft.memory.providers.episode_items import render_trajectory
from langgraft.nodes.dialogue import ChatModel, Dialogue, Node, Update, chat_model, dialogue_node
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.replies import reply_text
from langgraft.nodes.state import AgentState, StepState
from langgraft.nodes.structured import CUT_OFF, asking, listed, read_reply

LESSONS = 3
"""How many a prompt asks for: about three insights per episode (continual-memory §A.1.4)."""
MAX_LESSONS = 2 * LESSONS
"""How many are kept of a model that has more to say."""
LAST_ACTIONS = 3
"""How many actions a lesson by rules names."""
QUOTED = 200
"""Most characters a lesson by rules quotes of a task or an action."""


@checked
def reflect_node(
    model: ChatModel, *, prompt: Prompt | None = None, max_lessons: int = MAX_LESSONS
) -> Runnable[AgentState, Update]:
    """Make the node that asks a model for lessons.

    A reply that cannot be read gives no lessons; `reflection` in the state then says why.

    Args:
        model: Any chat model, or the name of one (`openai:gpt-4.1-mini`).
        prompt: Prompt with the placeholders `$task`, `$outcome`, `$trajectory`, and `$limit`: about how
            many lessons it asks for, three, or `max_lessons` where that is less.
        max_lessons: Most lessons kept of one episode.
    """
    template = prompt or shipped("reflect")
    model = chat_model(model, "`model` of reflect_node")

    def messages(state: AgentState) -> list[BaseMessage]:
        steps = episode_steps(state["steps"])
        outcome = Outcome(state["success"], state["score"], state["reason"])
        return reflection_messages(template, state["instruction"], steps, outcome, max_lessons)

    def reflect(state: AgentState) -> Program[Call, Update]:
        reply: BaseMessage = yield Call(model.invoke, model.ainvoke, messages(state))
        lessons, reflection = parse_lessons(reply_text(reply), max_lessons)
        return {"lessons": lessons, "reflection": reflection}

    return Node.running("reflect", reflect)


def reflection_messages(
    template: Prompt, task: str, steps: Sequence[Step], outcome: Outcome, limit: int
) -> list[BaseMessage]:
    """Write the question for lessons."""
    return [HumanMessage(template.render(**_filled(task, steps, outcome, limit)))]


def _filled(task: str, steps: Sequence[Step], outcome: Outcome, limit: int) -> dict[str, str]:
    return {
        "task": task,
        "outcome": describe_outcome(outcome),
        "trajectory": render_trajectory(steps, result=""),
        "limit": str(min(LESSONS, limit)),
    }


def describe_outcome(outcome: Outcome) -> str:
    """Say in a few words how an attempt ended."""
    ended = {True: "success", False: f"failure ({outcome.reason})", None: "unknown"}
    return ended[outcome.success]


def episode_steps(steps: Sequence[StepState]) -> tuple[Step, ...]:
    """Turn the steps of a graph's state into those of an episode."""
    return tuple(Step(step["thought"], step["action"], step["observation"]) for step in steps)


def parse_lessons(text: str, limit: int) -> tuple[list[dict[str, str]], str]:
    """Read a JSON list of lessons from a model's reply.

    Returns:
        The lessons as `{"text", "when_to_use"}`, and `ok` or why there are none.
    """
    found = read_reply(text, _READ_LESSONS)
    if found.value is None:
        return [], f"unreadable: {found.why}"
    lessons = [{"text": each.lesson, "when_to_use": each.when_to_use} for each in found.value]
    return lessons[:limit], _NOTED.get(found.problems[:1], "some entries were unreadable")


_NOTED = {(): "ok", (CUT_OFF,): CUT_OFF}
_WHEN = re.compile(r"\A(?:when(?:ever)?\b[\s:,]*)+", re.IGNORECASE)


def _situation(value: object) -> str:
    """Read when a lesson is for, as a clause that can follow "when"."""
    # Some models write null, or true, where nothing comes to mind.
    return _WHEN.sub("", value.strip()) if isinstance(value, str) else ""


def _name(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


class _Lesson(BaseModel):
    # Other keys are those of ReMe's prompts, and what models fall back to.
    lesson: str = Field(
        min_length=1,
        validation_alias=AliasChoices(
            *("lesson", "advice", "insight", "experience", "content", "text")
        ),
    )
    title: Annotated[str, BeforeValidator(_name)] = ""
    when_to_use: Annotated[str, BeforeValidator(_situation)] = Field(
        "",
        validation_alias=AliasChoices(
            *("when_to_use", "when", "situation", "condition", "description")
        ),
    )


_READ_LESSONS = listed(_Lesson)


# By outcome -------------------------------------------------------------------------------


OtherAttempt: TypeAlias = Callable[[AgentState], Attempt | None]
"""Finds another attempt at a comparable task, where there is one to compare with."""


def counterpart_in(state: AgentState) -> Attempt | None:
    """Return the attempt that `counterpart_node` found."""
    found = state.get("counterpart")
    if not found:
        return None
    steps = tuple(Step(**step) for step in found["steps"])
    outcome = Outcome(**found["outcome"])
    return Attempt(steps, outcome, task=found["task"], episode_id=found["episode_id"])


@dataclass(frozen=True, slots=True)
class ReflectionPrompts:
    """One prompt for each occasion, with `$task`, `$outcome`, `$trajectory` and `$limit`."""

    success: Prompt = field(default_factory=partial(shipped, "reflect_success"))
    failure: Prompt = field(default_factory=partial(shipped, "reflect_failure"))
    comparative: Prompt = field(default_factory=partial(shipped, "reflect_comparative"))
    """Has `$other_task`, `$other_outcome` and `$other_trajectory` too."""
    unknown: Prompt = field(default_factory=partial(shipped, "reflect"))
    """Where nobody can tell how the attempt ended."""


def strategy_prompts() -> ReflectionPrompts:
    """Return prompts that ask for strategies: title, description and content of each."""
    asked = {name: shipped(f"strategies_{name}") for name in ("success", "failure")}
    return ReflectionPrompts(unknown=shipped("strategies"), **asked)


@dataclass(frozen=True, slots=True)
class Distilled:
    """What came of reflecting."""

    lessons: tuple[Lesson, ...]
    why: str
    """`ok`, or what was wrong with a model's reply, or that rules wrote the lesson, and why."""
    calls: int
    """How often a model was asked."""


@checked
def reflect_by_outcome_node(
    model: ChatModel | None,
    *,
    other_attempt: OtherAttempt = counterpart_in,
    prompts: ReflectionPrompts | None = None,
    max_lessons: int = MAX_LESSONS,
) -> Runnable[AgentState, Update]:
    """Make the node that asks for the lessons of a success, a failure, or two attempts.

    Where no reply can be used, one lesson by rules takes its place: it says `by="rules"`, and
    `reflection` in the state says why.

    Args:
        model: Any chat model, or the name of one; `None` leaves reflecting to the rules.
        other_attempt: Finds another attempt; where it does, the two are compared. By default it
            is the one that `counterpart_node` put into the state.
        prompts: One for each occasion; `None` takes those that ship.
        max_lessons: Most lessons kept of one episode.
    """

    def begin(state: AgentState) -> Dialogue[Update]:
        outcome = Outcome(state["success"], state["score"], state["reason"])
        attempt = Attempt(episode_steps(state["steps"]), outcome)
        drawn = yield from distilling(
            state["instruction"],
            attempt,
            other=other_attempt(state),
            prompts=prompts,
            limit=max_lessons,
        )
        return {
            "lessons": [
                {"text": each.text, "when_to_use": each.when_to_use, "by": each.by}
                | ({"title": each.title} if each.title else {})
                for each in drawn.lessons
            ],
            "reflection": drawn.why,
        }

    return dialogue_node("reflect", model, begin)


def distilling(
    task: str,
    attempt: Attempt,
    *,
    other: Attempt | None = None,
    prompts: ReflectionPrompts | None = None,
    limit: int = MAX_LESSONS,
) -> Dialogue[Distilled]:
    """Ask for the lessons of an attempt, or of two; see `reflect_by_outcome_node`."""
    question = _question(task, attempt, other, prompts or ReflectionPrompts(), limit)
    answer = yield from asking([question], _READ_LESSONS, what="reflect")
    if answer.value is None:
        lessons = lessons_by_rules(task, attempt)
        return Distilled(lessons, f"by rules: {answer.why}", answer.calls)
    lessons = tuple(
        Lesson(each.lesson, each.when_to_use, title=each.title) for each in answer.value[:limit]
    )
    return Distilled(lessons, answer.why, answer.calls)


def lessons_by_rules(task: str, attempt: Attempt) -> tuple[Lesson, ...]:
    """Note task, outcome and last actions as one lesson; none where nothing was done."""
    actions = [_quoted(step.action) for step in attempt.steps if step.action.strip()]
    if not actions:
        return ()
    ending = "; ".join(actions[-LAST_ACTIONS:])
    reason = _quoted(attempt.outcome.reason)
    texts = {
        True: f"This reached the goal, and ended with: {ending}.",
        False: f"This did not reach the goal ({reason or 'no reason given'}): {ending}.",
        None: f"How this ended is not known: {ending}.",
    }
    when = f"the task is like this one: {_quoted(task)}"
    return (Lesson(texts[attempt.outcome.success], when, by="rules"),)


def _question(
    task: str, attempt: Attempt, other: Attempt | None, prompts: ReflectionPrompts, limit: int
) -> HumanMessage:
    values = _filled(task, attempt.steps, attempt.outcome, limit)
    by_outcome = {True: prompts.success, False: prompts.failure, None: prompts.unknown}
    template = by_outcome[attempt.outcome.success]
    if other is not None:
        template = prompts.comparative
        values["other_task"] = strip_block(other.task) or task
        values["other_outcome"] = describe_outcome(other.outcome)
        values["other_trajectory"] = strip_block(render_trajectory(other.steps, result=""))
    return HumanMessage(template.render(**values))


def _quoted(text: str) -> str:
    """Return a text on one line, cut short."""
    line = " ".join(strip_block(text).split())
    return line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"
