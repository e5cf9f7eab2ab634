"""`act`: do what was asked for, and note it in the log with what came of it."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from pydantic import JsonValue

from langgraft._core.arguments import checked
from langgraft.nodes.chain.calls import no_call_told, surplus_told
from langgraft.nodes.chain.perform import IN_WORKSPACE
from langgraft.nodes.chain.room import Browse, Room
from langgraft.nodes.chain.tools import BROWSE, FINISH, THINK
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.workbench.events import INVALID, MESSAGE, Action, Event, Observation
from langgraft.nodes.workbench.limits import spend
from langgraft.nodes.workbench.log import append_events
from langgraft.nodes.workbench.performing import kept_text
from langgraft.nodes.workbench.state import RunState

FINISHED: Final = "finished"
_TOLD: Final = {THINK: "Noted.", FINISH: "The work ends here."}
_LONGEST_PROBLEM: Final = 500


@checked
def act_node(room: Room) -> GraphNode[RunState]:
    """Make the node that does what was asked for.

    A message is answered by the scripted user; everything else is observed.
    """
    desk = room.desk

    def act(state: RunState) -> Update:
        action, surplus = _said(room, state)
        seen: Observation | None
        if action.name in IN_WORKSPACE:
            seen, seconds = desk.run(state, action)
        else:
            began = desk.clock()
            seen = _observed(action, room.browse)
            seconds = desk.clock() - began
        return _done(room, state, _events(room, action, surplus, seen), seconds)

    async def aact(state: RunState) -> Update:
        action, surplus = await asyncio.to_thread(_said, room, state)
        seen: Observation | None
        if action.name in IN_WORKSPACE:
            seen, seconds = await desk.arun(state, action)
        else:
            began = desk.clock()
            seen = await asyncio.to_thread(_observed, action, room.browse)
            seconds = desk.clock() - began
        events = _events(room, action, surplus, seen)
        return await asyncio.to_thread(_done, room, state, events, seconds)

    return GraphNode("act", act, aact)


def _said(room: Room, state: RunState) -> tuple[Action, str]:
    """Return the action that is to be done, and what to say of further calls."""
    told: dict[str, Any] = room.desk.read(state["said"])
    action = Action(
        id=len(room.desk.log(state).events),
        source="agent",
        name=told["name"],
        arguments=told["arguments"],
        thought=told["thought"],
    )
    return action, surplus_told(told["surplus"])


def _observed(action: Action, browse: Browse | None) -> Observation | None:
    """Observe what needs no workspace; nothing is observed of a message."""
    if action.name == MESSAGE:
        return None
    text, failed = _TOLD.get(action.name, ""), False
    if action.name == INVALID:
        problem = str(action.arguments.get("problem", ""))[:_LONGEST_PROBLEM]
        text, failed = f"Not done: {problem}.", True
    elif action.name == BROWSE and browse is not None:
        text, failed = _read_page(browse, str(action.arguments.get("url", "")))
    seen = kept_text(text)
    return Observation(id=action.id + 1, cause=action.id, text=seen, failed=failed)


def _read_page(browse: Browse, url: str) -> tuple[str, bool]:
    try:
        return str(browse(url)), False
    except Exception as error:  # noqa: BLE001 - whatever a page does, the run goes on
        return f"The page could not be read: {type(error).__name__}: {error}", True


def _done(room: Room, state: RunState, events: Sequence[Event], seconds: float) -> Update:
    done = events[0]
    update: Update = {
        "log": append_events(room.desk.artifacts, state.get("log", ""), events),
        "steps": state.get("steps", 0) + 1,
        "said": "",
        "spent": spend(state, seconds=seconds),
    }
    return (
        {**update, "ended": FINISHED}
        if isinstance(done, Action) and done.name == FINISH
        else update
    )


def _events(room: Room, action: Action, surplus: str, seen: Observation | None) -> list[Event]:
    """Return an action, what was observed of it, and what the user says to it."""
    events: list[Event] = [action] if seen is None else [action, seen]
    answer = surplus
    if action.name == MESSAGE:
        problem = no_call_told(str(action.arguments.get("failure", "")))
        answer = room.briefing.prompts.go_on.render(problem=problem).strip()
    if answer:
        place = action.id + len(events)
        told: dict[str, JsonValue] = {"text": answer}
        said = Action(id=place, source="user", cause=action.id, name=MESSAGE, arguments=told)
        events.append(said)
    return events
