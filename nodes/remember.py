"""`remember`: hand the episode to memory, and journal what that changed."""

from typing import Any

from langchain_core.runnables import Runnable

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.episodes import Episode, ErrorRecord, Lesson, Outcome
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Verdict
from langgraft.memory.recall import Receipt
from langgraft.nodes.reflect import episode_steps
from langgraft.nodes.state import AgentState, Node, Update


@checked
def remember_node(memory: MemoryProvider[Any]) -> Runnable[AgentState, Update]:
    """Make the node that files an episode."""

    def remember(state: AgentState) -> Update:
        return {"deltas": _journal(memory.file(episode_of(state)))}

    async def aremember(state: AgentState) -> Update:
        return {"deltas": _journal(await memory.afile(episode_of(state)))}

    return Node("remember", remember, aremember)


def episode_of(state: AgentState) -> Episode:
    """Put the episode together from a graph's state."""
    return Episode(
        id=state["episode_id"],
        domain=state["domain"],
        task_id=state["task_id"],
        task=state["instruction"],
        steps=episode_steps(state["steps"]),
        outcome=Outcome(state["success"], state["score"], state["reason"]),
        lessons=tuple(Lesson(**lesson) for lesson in state["lessons"]),
        errors=tuple(ErrorRecord(**error) for error in state.get("errors", ())),
        verdicts=tuple(Verdict(**verdict) for verdict in state.get("verdicts", ())),
        recalls=tuple(Receipt(**receipt) for receipt in state.get("receipts", [])),
    )


def _journal(delta: MemoryDelta) -> list[list[JSON]]:
    return [delta.to_json()] if delta else []
