"""A log as the list of its steps, and what an attempt in it began with."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from langgraft._core.canonical import canonical_json
from langgraft.nodes.workbench.events import (
    DIAGNOSIS,
    INVALID,
    MESSAGE,
    RECALL,
    RECOVERY,
    Action,
    Event,
    Observation,
)
from langgraft.nodes.workbench.log import EventLog
from langgraft.nodes.workbench.steps import StepRecord

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
