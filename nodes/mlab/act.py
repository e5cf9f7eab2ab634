"""`act` and `summarize`: do what was decided, and shorten what came of it where it is too long."""

import asyncio
from typing import Final

from langgraft._core.arguments import checked
from langgraft.nodes.chat_models import Model
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.mlab.answers import summarizing
from langgraft.nodes.mlab.consult import said_action
from langgraft.nodes.mlab.perform import CHANGING, performer
from langgraft.nodes.mlab.prompting import MLABPrompts
from langgraft.nodes.mlab.think import of_step
from langgraft.nodes.mlab.tools import FINAL_ANSWER
from langgraft.nodes.mlab.window import LONGEST_SHOWN, SUMMARY
from langgraft.nodes.talking import Talk, talking_node
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.events import Action, Observation
from langgraft.nodes.workbench.limits import spend
from langgraft.nodes.workbench.log import EventLog, append_events
from langgraft.nodes.workbench.metering import metered
from langgraft.nodes.workbench.performing import observed
from langgraft.nodes.workbench.projection import command_of
from langgraft.nodes.workbench.state import RunState

FINISHED: Final = "finished"


@checked
def act_node(desk: Desk) -> GraphNode[RunState]:
    """Make the node that does an action, and notes it and what was observed of it in the log."""

    def act(state: RunState) -> Update:
        action = said_action(desk, state)
        seen, seconds = _without_workspace(desk, action), 0.0
        if seen is None:
            seen, seconds = desk.run(state, action)
        return _done(desk, state, action, seen, seconds)

    async def aact(state: RunState) -> Update:
        action = await asyncio.to_thread(said_action, desk, state)
        seen, seconds = await asyncio.to_thread(_without_workspace, desk, action), 0.0
        if seen is None:
            seen, seconds = await desk.arun(state, action)
        return await asyncio.to_thread(_done, desk, state, action, seen, seconds)

    return GraphNode("act", act, aact)


def _without_workspace(desk: Desk, action: Action) -> Observation | None:
    """Observe an action that asks nothing of a workspace; `None` for any other.

    What changes a workspace always goes there, so that it knows all that was done in it.
    """
    if action.name in CHANGING:
        return None
    held = performer(desk.competition)(action)
    try:
        next(held)
    except StopIteration as stop:
        return observed(stop.value, action, limits=desk.sandbox.limits, seconds=desk.seconds)
    held.close()
    return None


def _done(desk: Desk, state: RunState, action: Action, seen: Observation, seconds: float) -> Update:
    update: Update = {
        "log": append_events(desk.artifacts, state.get("log", ""), [action, seen]),
        "steps": state.get("steps", 0) + 1,
        "said": "",
        "spent": spend(state, seconds=seconds),
    }
    return {**update, "ended": FINISHED} if action.name == FINAL_ANSWER else update


@checked
def summarize_node(desk: Desk, model: Model, prompts: MLABPrompts) -> GraphNode[RunState]:
    """Make the node that has a long observation shortened; it does nothing for others.

    Args:
        desk: What all nodes of the run share.
        model: Any chat model.
        prompts: Has the one for it.
    """

    def begin(state: RunState) -> Talk[Update]:
        log = desk.log(state)
        last = _long_step(log)
        if last is None:
            return {}
        action, seen = last
        held = summarizing(f"{action.name} {command_of(action)}", seen.text, prompts)
        came = yield from metered(desk, state, held)
        short = came.value
        told = Action(
            id=len(log.events),
            source="environment",
            cause=seen.id,
            name=SUMMARY,
            arguments={"text": short.text, "why": short.why, "calls": short.calls},
        )
        longer = append_events(desk.artifacts, state["log"], [told])
        return {"log": longer, "spent": came.spent}

    return talking_node("summarize", model, begin, _of_last_step)


def is_long(desk: Desk, state: RunState) -> bool:
    """Whether what the last action showed is too long to be shown as it is."""
    return _long_step(desk.log(state)) is not None


def _long_step(log: EventLog) -> tuple[Action, Observation] | None:
    """Return the last action and what was observed of it, where that is the log's end, and long."""
    *_, action, seen = log.events
    if not isinstance(action, Action) or not isinstance(seen, Observation):
        return None
    return (action, seen) if len(seen.text) > LONGEST_SHOWN else None


def _of_last_step(state: RunState) -> tuple[str, str]:
    episode_id, _ = of_step(state)
    return episode_id, f"step-{state['steps'] - 1}"
