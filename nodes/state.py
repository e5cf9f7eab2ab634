"""The state that agents in text worlds share, and how nodes become part of a graph."""

import operator
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from langchain_core.runnables import Runnable, RunnableLambda
from typing_extensions import TypedDict

from langgraft._core.canonical import JSON


class StepState(TypedDict):
    """One turn, as kept in a graph's state (see `langgraft.memory.episodes.Step`)."""

    thought: str
    action: str
    observation: str
    valid: bool
    """Whether the reply held an action; only such turns reached the world."""


class AgentInput(TypedDict, total=False):
    """What an agent is invoked with."""

    task_id: str
    """The task instance, as the world names it."""
    episode_id: str
    """Unique name of this attempt; made up where it is not given."""
    episode_index: int
    """Position of the attempt in its stream, where there is one."""


class AgentState(AgentInput, total=False):
    """State of one episode: small, and plain JSON throughout.

    The world itself is not in it: `langgraft.nodes.sessions` holds that, and rebuilds it from
    the steps where it is missing.
    """

    domain: str
    instruction: str
    """The goal in one line."""
    world_instructions: str
    """How the world is played."""
    steps: Annotated[list[StepState], operator.add]
    """The turns so far; the first one holds what the world showed at the start."""
    recalled: str
    """The block of recalled memory now in the prompt."""
    receipts: Annotated[list[dict[str, JSON]], operator.add]
    """Receipts of all recalls so far."""
    thought: str
    action: str
    valid: bool
    max_rounds: int
    done: bool
    success: bool
    score: float
    reason: str
    lessons: list[dict[str, str]]
    reflection: str
    """What came of reflecting: `ok`, or why there are no lessons."""
    deltas: Annotated[list[list[JSON]], operator.add]
    """What the episode changed in memory: the journal of `langgraft.memory.deltas`."""


class AgentOutput(TypedDict, total=False):
    """What an agent gives back."""

    task_id: str
    episode_id: str
    success: bool
    score: float
    reason: str
    steps: list[StepState]
    receipts: list[dict[str, JSON]]
    lessons: list[dict[str, str]]
    reflection: str
    deltas: list[list[JSON]]


Update = dict[str, Any]
"""What a node returns: new values for some keys of the state."""


def node(
    name: str,
    call: Callable[[AgentState], Update],
    acall: Callable[[AgentState], Awaitable[Update]] | None = None,
) -> Runnable[AgentState, Update]:
    """Make a graph node of a function, with an async twin where waiting is involved."""
    return RunnableLambda(call, afunc=acall, name=name)  # type: ignore[arg-type]  # twin is optional
