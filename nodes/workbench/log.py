"""The event log of a run as a chain of contents (see `langgraft.nodes.record_chain`).

A record holds the events of one node of the graph, and what they changed in memory:

    {"events": [{…}, …], "deltas": [[…], …], "previous": "<reference or nothing>"}
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue, TypeAdapter

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft.memory.deltas import MemoryDelta
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.record_chain import RecordChain
from langgraft.nodes.workbench.events import Action, Event, Observation

__all__ = ["EventLog", "append_events", "log_lines", "read_log"]

_EVENTS: Final[TypeAdapter[list[Event]]] = TypeAdapter(list[Event])


@dataclass(frozen=True, slots=True)
class EventLog:
    """What happened in a run so far."""

    reference: str
    """Of its last record; nothing before the first one."""
    events: tuple[Event, ...] = ()
    """In order: an event's place here is its `id`."""
    deltas: tuple[MemoryDelta, ...] = ()
    """What the run changed in memory: folded over the bank it began with, they give its bank."""

    def observation(self, action: Action) -> Observation | None:
        """Return what was observed of an action; `None` where nothing was yet."""
        for event in self.events[action.id + 1 :]:
            if isinstance(event, Observation) and event.cause == action.id:
                return event
        return None


def append_events(
    artifacts: Artifacts,
    previous: str,
    events: Sequence[Event],
    *,
    deltas: Iterable[MemoryDelta] = (),
) -> str:
    """Add events to a log, and return the reference of the log with them.

    Args:
        artifacts: Where the log is kept.
        previous: Reference of the log so far; nothing for the first events.
        events: Their ids go on where the log ends.
        deltas: What they changed in memory, in order.

    Raises:
        InputError: They do not follow from the log, or the log is missing or damaged.
        InfrastructureError: They cannot be written now.
    """
    written: list[JSON] = [event.model_dump(mode="json") for event in events]
    changed: list[Any] = [delta.to_json() for delta in deltas]
    return _LOGS.append(artifacts, previous, {"events": written, "deltas": changed})


def read_log(artifacts: Artifacts, reference: str) -> EventLog:
    """Read a log back; no reference gives an empty one.

    Raises:
        InputError: A record is missing, damaged, no record, or does not follow from the one before.
        InfrastructureError: A record is there and cannot be read now.
    """
    return _LOGS.read(artifacts, reference)


def log_lines(log: EventLog) -> str:
    """Write a log as canonical JSON Lines, one event a line: equal for runs that did the same."""
    return "".join(f"{canonical_json(event.model_dump(mode='json'))}\n" for event in log.events)


# Records -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Record:
    events: tuple[Event, ...]
    deltas: tuple[MemoryDelta, ...]


def _parse(value: Mapping[str, JsonValue]) -> _Record:
    deltas: Any = value["deltas"]
    if not isinstance(deltas, list):
        raise InputError("`deltas` is no list")
    events = tuple(_EVENTS.validate_python(value["events"]))
    return _Record(events, tuple(MemoryDelta.from_json(delta) for delta in deltas))


def _extend(log: EventLog, record: _Record, reference: str) -> EventLog:
    for place, event in enumerate(record.events, start=len(log.events)):
        if event.id != place:
            msg = f"event {event.id} cannot follow: the log goes on with event {place}"
            raise InputError(msg)
        if event.cause is not None and not 0 <= event.cause < place:
            msg = f"event {place} names event {event.cause} as its cause, which is not before it"
            raise InputError(msg)
    return EventLog(reference, log.events + record.events, log.deltas + record.deltas)


_LOGS: Final = RecordChain(
    "run", keys=("events", "deltas"), parse=_parse, extend=_extend, start=EventLog("")
)
