"""`recall` at the beginning of an attempt: ask memory what to heed."""

from typing import Any, Final

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft._core.errors import SettingsError
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, RecallContext
from langgraft.nodes.memory import provided, recalled_parts
from langgraft.nodes.node import Node, Update
from langgraft.nodes.preflight import domain, instruction
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.log import RECALL, Action, EventLog, append_events
from langgraft.nodes.workbench.projection import recall_of
from langgraft.nodes.workbench.state import RunState

_GIVEN: Final = frozenset({"errors", "verdicts"})
"""What an agent that works step by step gives to memory."""


@checked
def recall_run_node(
    deps: RunDeps, memory: MemoryProvider[Any], *, budget: Budget | None = None
) -> Node[RunState]:
    """Make the node that asks memory as an attempt begins; what it says becomes an event.

    Where the attempt has been told already, nothing is asked.

    Args:
        deps: What all nodes share.
        memory: The provider to ask.
        budget: Room for recalled text; `None`: that of `Budget()`.
    """
    query = instruction(deps.competition)

    def recall(state: RunState) -> Program[Call, Update]:
        log = deps.log(state)
        if recalled_in(log) is not None:
            return {}
        recalled = yield from provided(memory, query, _context(deps, state), budget)
        event = Action(
            id=len(log.events),
            source="environment",
            name=RECALL,
            arguments=recalled_parts(recalled),
        )
        return {"log": append_events(deps.artifacts, log.reference, [event])}

    return Node.running("recall", recall, in_threads=True)


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


def _context(deps: RunDeps, state: RunState) -> RecallContext:
    return RecallContext(
        domain=domain(deps.competition),
        task_id=deps.competition.id,
        episode_id=f"{state['episode_id']}/attempt-{state.get('attempt', 0)}",
        stage="start",
        step=state.get("steps", 0),
    )
