"""What happened in a run, by reference and as JSON Lines; a run as the list of its steps; the state that refers to it.

An event has a place in its log (`id`), a source, and, where another one brought it about, a cause:
an observation names its action. Nothing in it differs between two runs that do the same: no
clocks, durations, hosts, paths or ids that a provider made up.

Names and arguments come from models, and texts from anywhere: what no log can hold is replaced as
an event is made (`keepable`), so that what is done is what would be repeated.

The log is a chain of contents (see `langgraft.nodes.artifacts`). A record holds the events of one
node of the graph, and what they changed in memory:

    {"events": [{…}, …], "deltas": [[…], …], "previous": "<reference or nothing>"}

`steps_of` gives a run as the list of its steps: one for each action of the agent, with all that is
measured of it.

Events, replies, programs and outputs are contents in `Artifacts`; the state holds the reference of
the log's last record.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, TypeAdapter
from typing_extensions import TypedDict

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft.memory.model import MemoryDelta
from langgraft.nodes.artifacts import Artifacts, RecordChain
from langgraft.nodes.competition_run import Begun
from langgraft.nodes.replies import encodable

DEEPEST: Final = 32
"""Lists and mappings in each other that are kept as such."""

LONGEST_NUMBER: Final = 1024
"""Bits of a whole number that is kept as such."""

Source: TypeAlias = Literal["agent", "user", "environment"]
"""Who did it: the model, who gave the task (a script, in a benchmark), or what is around both."""

MESSAGE: Final = "message"
"""Something said, by the agent or to it; `arguments` hold its `text`."""
INVALID: Final = "invalid"
"""A reply that is no action: an unknown tool, arguments that cannot be read, a form not kept.

`arguments` hold what was asked for (`tool`), what was said (`said`) and what is wrong (`problem`).
"""
RECALL: Final = "recall"
"""Memory was asked, at the beginning of an attempt: `text`, `kinds`, `receipt`."""
DIAGNOSIS: Final = "diagnosis"
"""What memory is taught of a failure: `error`, as an `ErrorRecord`, and `by`, `why`, `calls`."""
RESOLUTION: Final = "resolution"
"""An execution put an earlier failure right (`resolves`, its event): `error`, as memory has it now."""
CONDENSATION: Final = "condensation"
"""From here on the agent no longer sees what lies between its first message and `first_kept`."""
RECOVERY: Final = "recovery"
"""The agent went in circles (`rule`), and goes on from before that: `first_hidden`."""
SUBMIT: Final = "submit"
"""The run has ended (`ended`) and what lies there is taken for its submission: `sha256`, `bytes`."""


def keepable(value: Any, depth: int = 0) -> Any:
    """Return a JSON value as a log can hold it.

    Half of a surrogate pair becomes a question mark, `NaN` and infinities their names, and what is
    nested deeper, or a number longer, than anybody would write a word that says so.
    """
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER:
        return "(a number too long)"  # Python writes none of more than 4,300 digits
    if isinstance(value, dict | list | tuple) and depth > DEEPEST:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {encodable(str(key)): keepable(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [keepable(each, depth + 1) for each in value]
    return value


Text: TypeAlias = Annotated[str, BeforeValidator(keepable)]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: int = Field(ge=0)
    """Place in the log, from 0."""
    source: Source
    cause: int | None = None
    """The event that brought it about; of an observation, its action."""


class Action(_Event):
    """Something done: by the agent a step, by others what it reads.

    `kind` tells it from an observation, `arguments` are those of the tool.
    """

    kind: Literal["action"] = "action"
    name: Text = Field(min_length=1)
    """What is done: the name of a tool, or one of the names above."""
    arguments: Annotated[dict[str, JsonValue], BeforeValidator(keepable)] = Field(
        default_factory=dict
    )
    thought: Text = ""
    """What the model said beside it."""


class Observation(_Event):
    """What came of an action.

    `kind` tells it from an action, `source` is who speaks; of a program: `exit_code`, and whether it
    was `timed_out` or ran out of memory (`oom`).
    """

    kind: Literal["observation"] = "observation"
    source: Source = "environment"
    text: Text
    """As the agent is shown it, before anything is left out for room."""
    failed: bool = False
    """An exception, an exit code other than 0, a limit, or a call that could not be done."""
    executed: bool = False
    """Whether something ran in the sandbox."""
    program: Text = ""
    """The Python that ran: a cell, or the script of a command as it was then; empty for others."""
    exit_code: int | None = None
    exception: Text = ""
    """Class of the exception that ended it; of a limit, `TimeoutError` or `MemoryError`."""
    message: Text = ""
    """Message of that exception."""
    timed_out: bool = False
    allowed: float | None = None
    """Seconds it was given, where that is what ended it; a repetition gets as many."""
    oom: bool = False
    running: bool = False
    """A command goes on that the action started or looked at."""
    lost: Literal["", "kernel", "workspace"] = ""
    """What went with it: all variables, or with them all files that were not there at first."""
    metric: float | None = None
    """Validation metric, as what ran reports it."""
    submission: Literal["valid", "invalid", "absent"] | None = None
    """What the sample submission says of the one that lies there now; `None`: not looked at."""


Event: TypeAlias = Annotated[Action | Observation, Field(discriminator="kind")]
"""A line of the log."""


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


class StepRecord(BaseModel):
    """One action of the agent and what came of it.

    `thought` came before it, `output` after. It `failed` by its `exit_code` or its exception
    (`exc_type`, `exc_value`), or was ended (`timed_out`, `oom`). `metric` is the score it printed,
    `submission` the state of the file it left, `recalled_kinds` what memory had recalled.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: int = Field(ge=0)
    """Actions of the agent before it."""
    action: str
    """Name of the tool, `message`, or `invalid`."""
    command: str = ""
    """What was issued: a command line, a cell's code, the arguments of another tool in one line."""
    thought: str = ""
    executed: bool = False
    """Whether something ran in the sandbox."""
    program: str = ""
    """The Python that ran; empty where none did or it is not known."""
    failed: bool = False
    exit_code: int | None = None
    exc_type: str | None = None
    exc_value: str | None = None
    timed_out: bool = False
    oom: bool = False
    metric: float | None = None
    submission: Literal["valid", "invalid", "absent"] | None = None
    output: str = ""
    attempt: int = Field(default=0, ge=0)
    """The attempt it belongs to, from 0: each begins with what memory recalls."""
    recalled: str = ""
    """The block of memory that the attempt began with."""
    recalled_kinds: tuple[str, ...] = ()
    error: dict[str, JsonValue] | None = None
    """The diagnosis of its failure, as an `ErrorRecord`."""


_SAID: Final = {MESSAGE: "text", INVALID: "said", "run_bash": "command", "run_python": "code"}
"""Actions whose command is one of their arguments."""


def steps_of(log: EventLog) -> tuple[StepRecord, ...]:
    """Return a run as its steps: one for each action of the agent, in order."""
    seen = {event.cause: event for event in log.events if isinstance(event, Observation)}
    errors = {
        event.cause: event.arguments.get("error")
        for event in log.events
        if isinstance(event, Action) and event.name == DIAGNOSIS
    }
    steps: list[StepRecord] = []
    for action, attempt, recalled in _agent_actions(log):
        steps.append(
            StepRecord(
                step=len(steps),
                action=action.name,
                command=command_of(action),
                thought=action.thought,
                attempt=attempt,
                recalled=str(recalled.get("text", "")),
                recalled_kinds=tuple(map(str, recalled.get("kinds", ()))),
                error=_mapping(errors.get(action.id)),
                **_observed(seen.get(action.id)),
            )
        )
    return tuple(steps)


def command_of(action: Action) -> str:
    """Return what an action issued: a command line, code, or its arguments in one line."""
    name = _SAID.get(action.name)
    if name is not None and isinstance(given := action.arguments.get(name), str):
        return given
    if isinstance(given := action.arguments.get("input"), dict):  # what stands beside it was said
        return canonical_json(given)
    return canonical_json(action.arguments) if action.arguments else ""


def recall_of(events: Sequence[Event]) -> Action | None:
    """Return the recall that the attempt which goes on began with; `None` where there is none."""
    for event in reversed(events):
        if isinstance(event, Action) and event.name in (RECALL, RECOVERY):
            return event if event.name == RECALL else None
    return None


def _agent_actions(log: EventLog) -> Iterator[tuple[Action, int, dict[str, Any]]]:
    """Yield each action of the agent with its attempt, and what that began with."""
    attempt = 0
    recalled: dict[str, Any] = {}
    for event in log.events:
        if not isinstance(event, Action):
            continue
        if event.source == "agent":
            yield event, attempt, recalled
        elif event.name == RECOVERY:
            attempt, recalled = attempt + 1, {}
        elif event.name == RECALL:
            recalled = event.arguments


def _observed(seen: Observation | None) -> dict[str, Any]:
    if seen is None:
        return {}
    return {
        "executed": seen.executed,
        "program": seen.program,
        "failed": seen.failed,
        "exit_code": seen.exit_code,
        "exc_type": seen.exception or None,
        "exc_value": seen.message or None,
        "timed_out": seen.timed_out,
        "oom": seen.oom,
        "metric": seen.metric,
        "submission": seen.submission,
        "output": seen.text,
    }


def _mapping(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


class RunInput(TypedDict, total=False):
    """What a run is invoked with."""

    episode_id: str
    """Unique name of the run; made up where it is not given."""
    seed: int
    """0 where it is not given."""


class RunOutput(TypedDict, total=False):
    """What a run gives back. `episode_id` names the run, and `done` says that it has ended."""

    episode_id: str
    log: str
    """Reference of the log's last record, for `read_log`."""
    steps: int
    """Actions of the agent."""
    ended: str
    """Why it ended: `finished`, `steps`, `hours`, `dollars`, `stuck: <rule>`, `context`, `no valid
    reply` …; empty while it goes on."""
    metric: float | None
    """The validation metric last reported before the submission was collected."""
    submission: str
    """Reference of the submission, or empty."""
    done: bool


class Spent(TypedDict):
    """What a run has used so far."""

    seconds: float
    """Wall clock in model calls and executions; what a killed process had under way is not in it."""
    prompt_tokens: int
    completion_tokens: int
    dollars: float


class RunState(RunOutput, total=False):
    """State of a run.

    `seed` decides all draws of the run that has `begun`; `spent` counts against its limits.
    """

    seed: int
    begun: Begun
    attempt: int
    """Attempts before this one."""
    said: str
    """Reference of the action that is to be done next."""
    diagnosed: str
    """Reference of what memory is to be taught of the last action."""
    judged: str
    """Reference of the answers to what memory asked about it."""
    spent: Spent
