"""A run as a list of steps: one for each action of the agent, with all that is measured of it."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from langgraft._core.canonical import canonical_json
from langgraft.nodes.workbench.log import (
    DIAGNOSIS,
    INVALID,
    MESSAGE,
    RECALL,
    RECOVERY,
    Action,
    Event,
    EventLog,
    Observation,
)


class StepRecord(BaseModel):
    """One action of the agent and what came of it."""

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
