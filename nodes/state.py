"""The state that agents in text worlds share, and how nodes become part of a graph."""

import operator
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import TypedDict, override


class StepState(TypedDict):
    """One turn, as kept in a graph's state (see `langgraft.memory.episodes.Step`)."""

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


class AgentState(AgentInput, total=False):
    """State of one episode: small, and plain JSON throughout.

    The world itself is not in it: `langgraft.nodes.sessions` holds that, and rebuilds it from
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
    draft: str
    """A tentative answer, for memory that looks for contradictions."""
    draft_verdicts: list[dict[str, Any]]
    """What a judge said about it, as `langgraft.memory.questions.Verdict`."""
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
    lessons: list[dict[str, Any]]
    """Lessons drawn from it, as `langgraft.memory.episodes.Lesson`."""
    reflection: str
    """What came of reflecting: `ok`, or why there are no lessons."""
    validation: list[dict[str, Any]]
    """How each lesson did in validation: whether it was kept, its score, the reason, and who
    says so."""
    counterpart: dict[str, Any]
    """An earlier attempt that this one is compared with for lessons, as
    `langgraft.memory.episodes.Attempt`; empty: none."""
    compared_with: str
    """The episode that the counterpart was; empty: none."""
    dropped: list[DroppedLesson]
    """Lessons that were drawn and not kept, in the order in which they were dropped."""
    errors: list[dict[str, Any]]
    """Errors met on the way, as `langgraft.memory.episodes.ErrorRecord`."""
    verdicts: list[dict[str, Any]]
    """Answers to memory's questions about the episode, as `Verdict`."""
    judging: list[dict[str, Any]]
    """How each question was answered: by a model or by rules, why, and after how many calls."""
    deltas: Annotated[list[list[Any]], operator.add]
    """What the episode changed in memory: the journal of `langgraft.memory.deltas`."""


class AgentOutput(TypedDict, total=False):
    """What an agent gives back."""

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


Update = dict[str, Any]
"""What a node returns: new values for some keys of the state."""


class Node(Runnable[AgentState, Update]):
    """A graph node made of a function and, where waiting is involved, its async twin.

    LangGraph takes one function or the other; a `RunnableLambda` takes both and costs more
    than most nodes do. Without a twin, async graphs run the function in a thread.
    """

    def __init__(
        self,
        name: str,
        call: Callable[[AgentState], Update],
        acall: Callable[[AgentState], Awaitable[Update]] | None = None,
    ) -> None:
        self.name = name
        self._call = call
        self._acall = acall

    @override
    def invoke(
        self, input: AgentState, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Update:
        """Run the node."""
        return self._call(input)

    @override
    async def ainvoke(
        self, input: AgentState, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Update:
        """Run the node's async twin, or the node in a thread."""
        if self._acall is None:
            return await super().ainvoke(input, config, **kwargs)
        return await self._acall(input)
