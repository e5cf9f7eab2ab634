"""What the agent sees of the log: not what it went in circles with, nor what was left out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from langgraft._core.arguments import check_whole
from langgraft.environments.sandboxes.telling import trimmed
from langgraft.nodes.chain.turns import Part, Turn, parts_of
from langgraft.nodes.workbench.events import CONDENSATION, RECOVERY, Action, Event
from langgraft.nodes.workbench.projection import recall_of

Condenser: TypeAlias = Callable[[Sequence[Part]], Sequence[Part]]
"""Says the same in less room; it changes what the model is sent, and never the log."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What the agent sees of the log."""

    memory: str
    """The block that the attempt began with."""
    parts: tuple[Part, ...]
    first_message: int | None = None
    """Characters of the first message, roughly; `None`: all of it."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The agent's turns in it."""
        return tuple(part for part in self.parts if isinstance(part, Turn))


@dataclass(frozen=True, slots=True)
class Cut:
    """What a condensation leaves: the `arguments` of its event."""

    first_kept: int
    """The first event that the agent still sees behind its first message."""
    texts: int | None = None
    """Most characters of each text in what was there then."""
    first_message: int | None = None
    """Characters of the first message, roughly."""

    def arguments(self) -> dict[str, Any]:
        """Return it as the event holds it."""
        told = {"texts": self.texts, "first_message": self.first_message}
        kept = {name: value for name, value in told.items() if value is not None}
        return {"first_kept": self.first_kept, **kept}


def sight_of(events: Sequence[Event], condensers: Iterable[Condenser] = ()) -> Sight:
    """Return what the agent sees of a log.

    Args:
        events: The log.
        condensers: Applied to what is left, one after the other.
    """
    cut, made = _last_cut(events)
    visible = _seen(parts_of(events), _circles(events), cut, made)
    parts: Sequence[Part] = tuple(visible)
    for condenser in condensers:
        parts = condenser(parts)
    return Sight(_memory(events), tuple(parts), cut.first_message)


def _seen(parts: Iterable[Part], circles: Sequence[range], cut: Cut, made: int) -> Iterator[Part]:
    for part in parts:
        place = part.action.id
        if place < cut.first_kept or any(place in circle for circle in circles):
            continue
        yield shortened(part, cut.texts) if cut.texts and place < made else part


def shortened(part: Part, most: int) -> Part:
    """Return a turn with the middle of its long texts left out."""
    if not isinstance(part, Turn):
        return part
    arguments = {
        name: trimmed(value, most) if isinstance(value, str) else value
        for name, value in part.action.arguments.items()
    }
    thought = trimmed(part.action.thought, most)
    action = part.action.model_copy(update={"arguments": arguments, "thought": thought})
    return replace(trimmed_observation(part, most), action=action)


def trimmed_observation(turn: Turn, most: int) -> Turn:
    """Return a turn with the middle of a long observation left out."""
    seen = turn.observation
    if seen is None:
        return turn
    told = seen.model_copy(update={"text": trimmed(seen.text, most)})
    return replace(turn, observation=told)


def _last_cut(events: Sequence[Event]) -> tuple[Cut, int]:
    """Return what the last condensation left, and its place."""
    for event in reversed(events):
        if isinstance(event, Action) and event.name == CONDENSATION:
            told: Mapping[str, Any] = event.arguments
            cut = Cut(int(told["first_kept"]), told.get("texts"), told.get("first_message"))
            return cut, event.id
    return Cut(0), 0


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

    def __call__(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Trim the observations."""
        return [
            trimmed_observation(part, self.most) if isinstance(part, Turn) else part
            for part in parts
        ]


@dataclass(frozen=True, slots=True)
class ObservationMasking:
    """Shows the newest observations, and of older ones only that they were there.

    (OpenHands 0.62 has it as `observation_masking`, with 100.)
    """

    keep: int = 100

    def __post_init__(self) -> None:
        check_whole("ObservationMasking: keep", self.keep, 1)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Mask the older observations."""
        seen = [part for part in parts if isinstance(part, Turn) and part.observation is not None]
        older = {turn.action.id for turn in seen[: -self.keep]}
        return [_masked(part) if part.action.id in older else part for part in parts]


def _masked(part: Part) -> Part:
    if not isinstance(part, Turn) or part.observation is None:
        return part
    told = _MASKED if len(part.observation.text) > len(_MASKED) else part.observation.text
    return replace(part, observation=part.observation.model_copy(update={"text": told}))


_MASKED: Final = "[left out for room]"
