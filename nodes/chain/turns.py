"""The log as turns: an action of the agent, and all that came of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from langgraft.nodes.workbench.events import (
    MESSAGE,
    RECOVERY,
    Action,
    Event,
    Observation,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """An action of the agent, and what came of it."""

    action: Action
    observation: Observation | None = None
    """`None` for what is only said."""
    answer: str = ""
    """What the user said to it: to a message, or to further calls in the same reply."""
    step: int = 0
    """Place among the run's steps: unlike an event's, the same with memory and without."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the agent is told between its turns: that it went in circles."""

    action: Action


Part = Turn | Notice


def parts_of(events: Iterable[Event]) -> tuple[Part, ...]:
    """Return what happened in order: turns, and notices between them."""
    return tuple(_parts(events))


def turns_of(events: Iterable[Event]) -> tuple[Turn, ...]:
    """Return the turns of the agent in order."""
    return tuple(part for part in _parts(events) if isinstance(part, Turn))


def _parts(events: Iterable[Event]) -> Iterator[Part]:
    turn: Turn | None = None
    steps = 0
    for event in events:
        if isinstance(event, Action) and (event.source == "agent" or event.name == RECOVERY):
            if turn is not None:
                yield turn
            turn = Turn(event, step=steps) if event.source == "agent" else None
            if turn is None:
                yield Notice(event)
            else:
                steps += 1
        elif turn is not None and event.cause == turn.action.id:
            turn = _with(turn, event)
    if turn is not None:
        yield turn


def _with(turn: Turn, event: Event) -> Turn:
    if isinstance(event, Observation):
        return replace(turn, observation=event)
    if event.name == MESSAGE:
        return replace(turn, answer=str(event.arguments.get("text", "")))
    return turn
