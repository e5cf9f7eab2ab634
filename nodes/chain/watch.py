"""`watch`: whether the agent goes in circles, and what is done about it."""

from typing import Final, Literal, TypeAlias

from langgraft._core.arguments import checked
from langgraft.nodes.chain.room import Room
from langgraft.nodes.chain.stuck import find_stuck
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.workbench.events import RECOVERY, Action
from langgraft.nodes.workbench.log import append_events
from langgraft.nodes.workbench.state import RunState

OnStuck: TypeAlias = Literal["stop", "recover"]
STUCK: Final = "stuck"


@checked
def watch_node(room: Room, *, on_stuck: OnStuck, recoveries: int) -> GraphNode[RunState]:
    """Make the node that looks for circles after each step.

    Args:
        room: What the chain agent's nodes share.
        on_stuck: `stop` ends the run. `recover` takes the circles out of what the agent sees, tells
            it so, and begins another attempt.
        recoveries: How often at most; then the run is ended.
    """
    desk = room.desk

    def watch(state: RunState) -> Update:
        if state.get("ended"):
            return {}
        log = desk.log(state)
        stuck = find_stuck(log.events)
        if stuck is None:
            return {}
        attempt = state.get("attempt", 0)
        if on_stuck == "stop" or attempt >= recoveries:
            return {"ended": f"{STUCK}: {stuck.rule}"}
        told = {"rule": stuck.rule, "first_hidden": stuck.first}
        place = len(log.events)
        event = Action(id=place, source="environment", name=RECOVERY, arguments=told)
        longer = append_events(desk.artifacts, log.reference, [event])
        return {"log": longer, "attempt": attempt + 1}

    return GraphNode("watch", watch)


def after_thinking(state: RunState) -> Literal["act", "end"]:
    """Say where to go after `think`: a run that may not go on has nothing to do."""
    return "end" if state.get("ended") else "act"


def after_watching(room: Room, state: RunState) -> Literal["think", "recover", "end"]:
    """Say where to go after `watch`: another attempt asks memory again."""
    if state.get("ended"):
        return "end"
    last = room.desk.log(state).events[-1]
    return "recover" if isinstance(last, Action) and last.name == RECOVERY else "think"
