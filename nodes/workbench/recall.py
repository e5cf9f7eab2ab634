"""`recall` at the beginning of an attempt: ask memory what to heed."""

import asyncio
from typing import Any, Final

from langgraft._core.arguments import checked
from langgraft._core.errors import SettingsError
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.nodes.competing import domain, instruction
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.events import RECALL, Action
from langgraft.nodes.workbench.log import EventLog, append_events
from langgraft.nodes.workbench.projection import recall_of
from langgraft.nodes.workbench.state import RunState

_GIVEN: Final = frozenset({"errors", "verdicts"})
"""What an agent that works step by step gives to memory."""


@checked
def recall_run_node(
    desk: Desk, memory: MemoryProvider[Any], *, budget: Budget | None = None
) -> GraphNode[RunState]:
    """Make the node that asks memory as an attempt begins; what it says becomes an event.

    Where the attempt has been told already, nothing is asked.

    Args:
        desk: What all nodes share.
        memory: The provider to ask.
        budget: Room for recalled text; `None`: that of `Budget()`.
    """
    query = instruction(desk.competition)

    def recall(state: RunState) -> Update:
        log = desk.log(state)
        if recalled_in(log) is not None:
            return {}
        recalled = memory.provide(query, _context(desk, state), budget)
        return _update(desk, log, recalled)

    async def arecall(state: RunState) -> Update:
        log = await asyncio.to_thread(desk.log, state)
        if recalled_in(log) is not None:
            return {}
        recalled = await memory.aprovide(query, _context(desk, state), budget)
        return await asyncio.to_thread(_update, desk, log, recalled)

    return GraphNode("recall", recall, arecall)


def recalled_in(log: EventLog) -> str | None:
    """Return what memory said in the attempt that goes on; `None` where it was not asked yet."""
    event = recall_of(log.events)
    return None if event is None else str(event.arguments.get("text", ""))


def memory_needs(memory: MemoryProvider[Any] | None, *, learn: bool) -> frozenset[str]:
    """Return what memory needs for filing.

    Raises:
        SettingsError: It needs what an agent that works step by step does not have.
    """
    if memory is None:
        return frozenset()
    needs = frozenset(memory.needs)
    if "draft" in needs:
        msg = (
            f"{type(memory).__name__} wants a tentative answer before it is asked, to look for"
            " contradictions, and an agent that works step by step has none. Turn that off in its"
            " settings (gate=False)"
        )
        raise SettingsError(msg)
    if learn and not needs <= _GIVEN:
        msg = (
            f"{type(memory).__name__} learns from {', '.join(sorted(needs - _GIVEN))}, and an agent"
            " that works step by step files errors alone: attach it with learn=False, or take"
            " CodingMemory"
        )
        raise SettingsError(msg)
    return needs if learn else frozenset()


def _context(desk: Desk, state: RunState) -> RecallContext:
    return RecallContext(
        domain=domain(desk.competition),
        task_id=desk.competition.id,
        episode_id=f"{state['episode_id']}/attempt-{state.get('attempt', 0)}",
        stage="start",
        step=state.get("steps", 0),
    )


def _update(desk: Desk, log: EventLog, recalled: Recall) -> Update:
    event = Action(
        id=len(log.events),
        source="environment",
        name=RECALL,
        arguments={
            "text": recalled.text,
            "kinds": [str(item.metadata.get("kind", "")) for item in recalled.items],
            "receipt": recalled.receipt.to_json(),
        },
    )
    return {"log": append_events(desk.artifacts, log.reference, [event])}
