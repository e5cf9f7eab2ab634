"""The log as turns, and what the agent sees of them: neither circles nor what was left out for room.

Where the prompt is longer than what the model can read, the newest half of what the agent did
stays, behind its first message; where that is still too long a quarter, and so on down to the last
turn. Then long texts of that turn lose their middle, and at the very last those of the first
message. The last turn itself always stays: without it the agent would do the same again. Nothing
is left out of the log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from langgraft._core.arguments import check_whole
from langgraft.environments.sandboxes.result_text import trimmed
from langgraft.nodes.workbench.log import (
    CONDENSATION,
    MESSAGE,
    RECOVERY,
    Action,
    Event,
    Observation,
    recall_of,
)

_MASKED: Final = "[left out for room]"
_LAST_RESORTS: Final = ((4_000, None), (1_000, None), (1_000, 8_000), (1_000, 2_000), (300, 500))
"""Characters of each text of the last turn, and of the first message."""


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """An action of the agent, and what came of it."""

    action: Action
    observation: Observation | None = None
    """`None` for what is only said."""
    answer: str = ""
    """What the user said to it: to a message, or to further calls in the same reply."""
    step: int = 0
    """Place among the run's steps: unlike an event's, the same with memory and without."""


@dataclass(frozen=True, slots=True)
class StuckNotice:
    """Something the agent reads between its turns: that it went in circles."""

    action: Action


HistoryPart = AgentTurn | StuckNotice


def parts_of(events: Iterable[Event]) -> tuple[HistoryPart, ...]:
    """Return what happened in order: turns, and notices between them."""
    return tuple(_parts(events))


def turns_of(events: Iterable[Event]) -> tuple[AgentTurn, ...]:
    """Return the turns of the agent in order."""
    return tuple(part for part in _parts(events) if isinstance(part, AgentTurn))


def _parts(events: Iterable[Event]) -> Iterator[HistoryPart]:
    turn: AgentTurn | None = None
    steps = 0
    for event in events:
        if isinstance(event, Action) and (event.source == "agent" or event.name == RECOVERY):
            if turn is not None:
                yield turn
            turn = AgentTurn(event, step=steps) if event.source == "agent" else None
            if turn is None:
                yield StuckNotice(event)
            else:
                steps += 1
        elif turn is not None and event.cause == turn.action.id:
            turn = _with(turn, event)
    if turn is not None:
        yield turn


def _with(turn: AgentTurn, event: Event) -> AgentTurn:
    if isinstance(event, Observation):
        return replace(turn, observation=event)
    if event.name == MESSAGE:
        return replace(turn, answer=str(event.arguments.get("text", "")))
    return turn


Condenser: TypeAlias = Callable[[Sequence[HistoryPart]], Sequence[HistoryPart]]
"""Says the same in less room; it changes what the model is sent, and never the log."""


@dataclass(frozen=True, slots=True)
class VisibleHistory:
    """What the agent sees of the log."""

    memory: str
    """The block that the attempt began with."""
    parts: tuple[HistoryPart, ...]
    first_message: int | None = None
    """Characters of the first message, roughly; `None`: all of it."""

    @property
    def turns(self) -> tuple[AgentTurn, ...]:
        """The agent's turns in it."""
        return tuple(part for part in self.parts if isinstance(part, AgentTurn))


@dataclass(frozen=True, slots=True)
class Condensation:
    """What a condensation leaves: the `arguments` of its event."""

    first_kept: int
    """The first event that the agent still sees behind its first message."""
    texts: int | None = None
    """Most characters of each text in what was there then."""
    first_message: int | None = None
    """Characters of the first message, roughly."""

    def arguments(self) -> dict[str, Any]:
        """Return it as the event holds it."""
        values = {"texts": self.texts, "first_message": self.first_message}
        kept = {name: value for name, value in values.items() if value is not None}
        return {"first_kept": self.first_kept, **kept}


def visible_history(
    events: Sequence[Event], condensers: Iterable[Condenser] = ()
) -> VisibleHistory:
    """Return what the agent sees of a log.

    Args:
        events: The log.
        condensers: Applied to what is left, one after the other.
    """
    cut, made = _last_cut(events)
    visible = _seen(parts_of(events), _circles(events), cut, made)
    parts: Sequence[HistoryPart] = tuple(visible)
    for condenser in condensers:
        parts = condenser(parts)
    return VisibleHistory(_memory(events), tuple(parts), cut.first_message)


def _seen(
    parts: Iterable[HistoryPart], circles: Sequence[range], cut: Condensation, made: int
) -> Iterator[HistoryPart]:
    for part in parts:
        place = part.action.id
        if place < cut.first_kept or any(place in circle for circle in circles):
            continue
        yield shortened(part, cut.texts) if cut.texts and place < made else part


def shortened(part: HistoryPart, most: int) -> HistoryPart:
    """Return a turn with the middle of its long texts left out."""
    if not isinstance(part, AgentTurn):
        return part
    arguments = {
        name: trimmed(value, most) if isinstance(value, str) else value
        for name, value in part.action.arguments.items()
    }
    thought = trimmed(part.action.thought, most)
    action = part.action.model_copy(update={"arguments": arguments, "thought": thought})
    return replace(trimmed_observation(part, most), action=action)


def trimmed_observation(turn: AgentTurn, most: int) -> AgentTurn:
    """Return a turn with the middle of a long observation left out."""
    seen = turn.observation
    if seen is None:
        return turn
    shorter = seen.model_copy(update={"text": trimmed(seen.text, most)})
    return replace(turn, observation=shorter)


def _last_cut(events: Sequence[Event]) -> tuple[Condensation, int]:
    """Return what the last condensation left, and its place."""
    for event in reversed(events):
        if isinstance(event, Action) and event.name == CONDENSATION:
            left: Mapping[str, Any] = event.arguments
            cut = Condensation(
                int(left["first_kept"]), left.get("texts"), left.get("first_message")
            )
            return cut, event.id
    return Condensation(0), 0


def _circles(events: Sequence[Event]) -> list[range]:
    """Return the events that the agent went in circles with."""
    return [
        range(int(str(event.arguments["first_hidden"])), event.id)
        for event in events
        if isinstance(event, Action) and event.name == RECOVERY
    ]


def _memory(events: Sequence[Event]) -> str:
    """Return what memory said at the beginning of the attempt."""
    recall = recall_of(events)
    return "" if recall is None else str(recall.arguments.get("text", ""))


# Condensers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObservationTrimming:
    """Shows the beginning and the end of long observations (OpenHands 2.1.0: 10,000 characters)."""

    most: int = 10_000

    def __post_init__(self) -> None:
        check_whole("ObservationTrimming: most", self.most, 100)

    def __call__(self, parts: Sequence[HistoryPart]) -> Sequence[HistoryPart]:
        """Trim the observations."""
        return [
            trimmed_observation(part, self.most) if isinstance(part, AgentTurn) else part
            for part in parts
        ]


@dataclass(frozen=True, slots=True)
class ObservationMasking:
    """Shows the newest observations, and of older ones only that they were there.

    They are masked a block at a time, so that what a prompt begins with stays the same for `block`
    steps and providers find it in their caches. (OpenHands 0.62 has it as `observation_masking`,
    with 100, and masks one more at each step.)
    """

    keep: int = 100
    """Observations that are shown at least."""
    block: int = 25
    """Observations that are masked at once; up to so many more than `keep` are shown meanwhile."""

    def __post_init__(self) -> None:
        check_whole("ObservationMasking: keep", self.keep, 1)
        check_whole("ObservationMasking: block", self.block, 1)

    def __call__(self, parts: Sequence[HistoryPart]) -> Sequence[HistoryPart]:
        """Mask the older observations."""
        seen = [
            part for part in parts if isinstance(part, AgentTurn) and part.observation is not None
        ]
        masked = max(len(seen) - self.keep, 0) // self.block * self.block
        older = {turn.action.id for turn in seen[:masked]}
        return [_masked(part) if part.action.id in older else part for part in parts]


def _masked(part: HistoryPart) -> HistoryPart:
    if not isinstance(part, AgentTurn) or part.observation is None:
        return part
    text = _MASKED if len(part.observation.text) > len(_MASKED) else part.observation.text
    return replace(part, observation=part.observation.model_copy(update={"text": text}))


Measure: TypeAlias = Callable[[Condensation], int]
"""Estimates the tokens of the prompt as a cut would leave it."""


def cut_to_fit(
    history: VisibleHistory, end: int, *, most: int, now: int, measure: Measure
) -> Condensation | None:
    """Return what to leave in a prompt; `None` where it cannot be made any shorter.

    Args:
        history: What the agent sees.
        end: Number of events in the log.
        most: Tokens that it should have at most.
        now: Tokens that it has.
        measure: Estimates the tokens that a cut leaves.

    Returns:
        The first cut that fits, or the shortest where none does.
    """
    shortest, least = None, now
    for cut in _cuts(history, end):
        tokens = measure(cut)
        if tokens <= most and tokens < now:
            return cut
        if tokens < least:
            shortest, least = cut, tokens
    return shortest


def _cuts(history: VisibleHistory, end: int) -> Iterator[Condensation]:
    turns, first_message = history.turns, history.first_message
    kept = len(turns) // 2
    while kept:
        yield Condensation(turns[-kept].action.id, None, first_message)
        kept //= 2
    newest = turns[-1:] or history.parts[-1:]  # without a turn, that it went in circles
    last = newest[0].action.id if newest else end
    for texts, room in _LAST_RESORTS:
        rooms = [each for each in (room, first_message) if each is not None]
        yield Condensation(last, texts, min(rooms, default=None))
