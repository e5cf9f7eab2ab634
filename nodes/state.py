"""The state that agents in text worlds share."""

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final, get_origin, get_type_hints

from langgraph.types import Overwrite
from typing_extensions import TypedDict


class StepState(TypedDict):
    """One turn, as kept in a graph's state (see `langgraft.memory.model.Step`)."""

    said: str
    """The reply, word for word: what the model is shown as its own words."""
    thought: str
    """What it holds beside the action; all of it where there is none."""
    action: str
    observation: str
    valid: bool
    """Whether the reply held an action; only such turns reached the world."""


class DroppedLesson(TypedDict):
    """A lesson that was drawn and is not kept, by whichever node dropped it."""

    text: str
    node: str
    """`validate` or `deduplicate`."""
    reason: str
    """What is wrong with it, in words that can be counted; more may follow a colon."""
    score: float
    """By `validate`: what it is worth; by `deduplicate`: how like it is to what it repeats."""


class AgentInput(TypedDict, total=False):
    """What an agent is invoked with."""

    task_id: str
    """The task instance, as the world names it."""
    episode_id: str
    """Unique name of this attempt; made up where it is not given, and where the thread's last
    attempt had it."""
    episode_index: int
    """Position of the attempt in its stream, where there is one."""
    at: str
    """When it is made, as ISO 8601, for memory that keeps facts in time."""
    user: str
    """Who asks, for memory that keeps what one user said from another."""
    sources: list[str]
    """What the episode is learned from, where anybody says: `user:ada`, `tool:search` …"""


class AgentState(AgentInput, total=False):
    """State of one episode: small, and plain JSON throughout.

    `domain` is the task's family; `thought`, `action` and `valid` are the last reply's as in
    `StepState`; it is `done` when the world has ended or `max_rounds` replies are spent, and `reason`
    says which.

    The world itself is not in it: `langgraft.nodes.text_world` holds that, and rebuilds it from
    the steps where it is missing.
    """

    attempt: str
    """The `episode_id` begun last: one that a later input of the same thread does not replace
    is left over from it."""
    domain: str
    instruction: str
    """The goal in one line."""
    world_instructions: str
    """How the world is played."""
    steps: Annotated[list[StepState], operator.add]
    """The turns so far; the first one holds what the world showed at the start."""
    actions: list[str]
    """What can be done now, in worlds that name it at the start."""
    shown_now: str
    """What the world shows behind the latest observation only."""
    draft: str
    """A tentative answer, for memory that looks for contradictions."""
    draft_verdicts: list[dict[str, Any]]
    """What a judge said about it, as `langgraft.memory.model.Verdict`."""
    recalled: str
    """The block of recalled memory now in the prompt."""
    receipts: Annotated[list[dict[str, Any]], operator.add]
    """Receipts of all recalls so far."""
    said: str
    """The last reply; this and what follows as in `StepState`."""
    thought: str
    action: str
    valid: bool
    max_rounds: int
    done: bool
    success: bool
    """The world's latest word on whether the goal has been reached."""
    score: float
    """The world's reward for the last action that reached it."""
    reason: str
    feedback: str
    """Whose word `success` is, as `langgraft.memory.model.Feedback`; empty: the world's."""
    lessons: list[dict[str, Any]]
    """Lessons drawn from it, as `langgraft.memory.model.Lesson`."""
    reflection: str
    """What came of reflecting: `ok`, or why there are no lessons."""
    validation: list[dict[str, Any]]
    """How each lesson did in validation: whether it was kept, its score, the reason, and who
    says so."""
    counterpart: dict[str, Any]
    """An earlier attempt that this one is compared with for lessons, as
    `langgraft.memory.model.Attempt`; empty: none."""
    compared_with: str
    """The episode that the counterpart was; empty: none."""
    dropped: list[DroppedLesson]
    """Lessons that were drawn and not kept, in the order in which they were dropped."""
    errors: list[dict[str, Any]]
    """Errors met on the way, as `langgraft.memory.model.ErrorRecord`."""
    facts: list[dict[str, Any]]
    """Facts that were told in it, as `langgraft.memory.facts.Fact`."""
    extraction: str
    """What came of extracting them: `ok`, or why some are missing."""
    verdicts: list[dict[str, Any]]
    """Answers to memory's questions about the episode, as `Verdict`."""
    judging: list[dict[str, Any]]
    """How each question was answered: by a model or by rules, why, and after how many calls."""
    deltas: Annotated[list[list[Any]], operator.add]
    """What the episode changed in memory: the journal of `langgraft.memory.model`."""


class AgentOutput(TypedDict, total=False):
    """What an agent gives back.

    The attempt `episode_id` at `task_id`; `success`, `score`, `steps`, `reason`, `receipts`, `lessons`,
    `reflection`, `compared_with`, `validation`, `dropped`, `verdicts`, `draft_verdicts`, `judging` and
    `deltas` are as in `AgentState`.
    """

    task_id: str
    episode_id: str
    success: bool
    score: float
    reason: str
    steps: list[StepState]
    receipts: list[dict[str, Any]]
    lessons: list[dict[str, Any]]
    reflection: str
    compared_with: str
    validation: list[dict[str, Any]]
    dropped: list[DroppedLesson]
    verdicts: list[dict[str, Any]]
    draft_verdicts: list[dict[str, Any]]
    judging: list[dict[str, Any]]
    deltas: list[list[Any]]


class SolverState(AgentState, total=False):
    """State of one attempt at a problem."""

    asked: str
    """SHA-256 of what the solver was sent."""
    stage: str
    """What found the answer equal to the right one."""
    by_last_token: bool | None
    """What the reply's last token alone would count as; `None`: that says nothing here."""


class SolverOutput(AgentOutput, total=False):
    """What a solver gives back."""

    said: str
    recalled: str
    asked: str
    stage: str
    by_last_token: bool | None


_KEPT: Final = {*AgentInput.__annotations__, "attempt"}


def fresh_state(*, added_to: bool) -> dict[str, Any]:
    """Return all that an episode begins with empty, whichever nodes will fill it.

    A thread may still hold what its last episode left.

    Args:
        added_to: Whether the lists that nodes add to hold something, which only an `Overwrite` ends.
    """
    empty = {key: kind() for key, kind in _kinds().items()}
    lists = _lists() if added_to else ()
    return {**empty, **{key: Overwrite([]) for key in lists}}


@lru_cache(maxsize=1)
def _kinds() -> dict[str, Callable[[], Any]]:
    hints = get_type_hints(AgentState)
    lists = _lists()
    return {
        key: get_origin(hint) or hint
        for key, hint in hints.items()
        if key not in _KEPT and key not in lists
    }


@lru_cache(maxsize=1)
def _lists() -> tuple[str, ...]:
    hints = get_type_hints(AgentState, include_extras=True)
    return tuple(key for key, hint in hints.items() if get_origin(hint) is Annotated)
