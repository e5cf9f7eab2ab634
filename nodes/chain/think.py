"""`think`: ask for the next action. A prompt that is too long is made shorter, and is never fatal."""

from dataclasses import asdict, dataclass
from typing import Final

from langgraft._core.arguments import checked
from langgraft.nodes.chain.calls import Asked, asked
from langgraft.nodes.chain.condense import cut_to_fit
from langgraft.nodes.chain.room import Room
from langgraft.nodes.chain.sight import Cut
from langgraft.nodes.chain.stuck import first_condensation
from langgraft.nodes.chat_models import Model
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.talking import Ask, Talk, talking_node
from langgraft.nodes.workbench.events import CONDENSATION, Action, Event, keepable
from langgraft.nodes.workbench.limits import ended_by
from langgraft.nodes.workbench.log import append_events
from langgraft.nodes.workbench.metering import metered
from langgraft.nodes.workbench.state import RunState

CONTEXT: Final = "context"
_SHORTER: Final = 0.75
"""A prompt that a model refused as too long is made at least so much shorter, as estimated."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What came of asking for an action."""

    asked: Asked | None
    """`None` where no prompt is short enough."""
    condensed: tuple[Action, ...] = ()
    """What was left out for that."""


@checked
def think_node(room: Room, model: Model) -> GraphNode[RunState]:
    """Make the node that asks for the next action, where the run may go on at all.

    Args:
        room: What the chain agent's nodes share.
        model: A chat model that the tools are bound to.
    """
    desk = room.desk

    def begin(state: RunState) -> Talk[Update]:
        if ended := ended_by(desk.limits, state, desk.prices):
            return {"ended": ended}
        log = desk.log(state)
        came = yield from metered(desk, state, thinking(room, log.events, room.data(state)))
        thought: Thought = came.value
        update: Update = {"spent": came.spent}
        if came.broke:
            return {**update, "ended": "dollars"}
        if thought.condensed:
            update["log"] = append_events(desk.artifacts, log.reference, thought.condensed)
        if thought.asked is None:
            return {**update, "ended": CONTEXT}
        return {**update, "said": desk.keep(keepable(asdict(thought.asked)))}

    return talking_node("think", model, begin, _of_step)


def thinking(room: Room, events: tuple[Event, ...], data: str) -> Talk[Thought]:
    """Ask for an action, with less in view where the prompt is too long for the model.

    It is too long where it is estimated to be so, or where the model says it is. A model that says
    so again is asked with much less each time.
    """
    seen, share = events, 1.0
    if room.most is not None:
        seen = _shortened(room, seen, data, room.most) or seen
    while True:
        said = yield Ask(room.prompt(seen, data), "think")
        if not said.overflow:
            return Thought(asked(said, room.offered), _new(seen, events))
        share *= _SHORTER
        most = int(room.tokens(seen, data) * share)
        fewer = _shortened(room, seen, data, most)
        if fewer is None or first_condensation(fewer) is not None:
            return Thought(None, _new(fewer or seen, events))
        seen, share = fewer, share / 2


def _of_step(state: RunState) -> tuple[str, str]:
    return state["episode_id"], f"step-{state.get('steps', 0)}"


def _new(seen: tuple[Event, ...], events: tuple[Event, ...]) -> tuple[Action, ...]:
    return tuple(event for event in seen[len(events) :] if isinstance(event, Action))


def _shortened(
    room: Room, events: tuple[Event, ...], data: str, most: int
) -> tuple[Event, ...] | None:
    """Return the events with a condensation that leaves at most so many tokens in view.

    Where none does, with the one that leaves fewest; `None` where nothing has to be left out, or
    nothing can be.
    """
    now = room.tokens(events, data)
    if now <= most:
        return None

    def measure(cut: Cut) -> int:
        return room.tokens((*events, _condensation(len(events), cut)), data)

    cut = cut_to_fit(room.sight(events), len(events), most=most, now=now, measure=measure)
    return None if cut is None else (*events, _condensation(len(events), cut))


def _condensation(place: int, cut: Cut) -> Action:
    return Action(id=place, source="environment", name=CONDENSATION, arguments=cut.arguments())
