"""The last steps of a run, as each prompt shows them: six fields, and what was observed.

Each field is shown as the model wrote it.
"""

from typing import Any, Final

from langgraft.environments.sandboxes.telling import trimmed
from langgraft.nodes.mlab.replies import FIELDS, THOUGHT
from langgraft.nodes.search.program_text import quotable
from langgraft.nodes.workbench.events import Action, Observation
from langgraft.nodes.workbench.log import EventLog

SUMMARY: Final = "summary"
"""Event: what a model made of an observation that is too long to be shown; `text`, `why`, `calls`."""

LONGEST_SHOWN: Final = 5000
"""Most characters of an observation that are shown (MLAB's figure)."""
NO_STEPS: Final = "(none yet)"


def window_text(log: EventLog, window: int, *, room: int = LONGEST_SHOWN) -> str:
    """Write the last steps of a run.

    Args:
        log: What happened so far.
        window: How many steps are shown, at most.
        room: Most characters of one observation, and of one field.
    """
    actions = [
        event for event in log.events if isinstance(event, Action) and event.source == "agent"
    ]
    first = max(len(actions) - window, 0)
    steps = [
        _step(log, action, number, room) for number, action in enumerate(actions) if number >= first
    ]
    return "\n\n".join(steps) or NO_STEPS


def _step(log: EventLog, action: Action, number: int, room: int) -> str:
    fields = six_fields(action)
    shown = trimmed(_shown(log, action), room) or "(nothing)"
    return "\n".join(
        [
            f"## Step {number}",
            *(f"{name}: {trimmed(fields[name], room)}" for name in FIELDS),
            "Observation:",
            f"```\n{quotable(shown)}\n```",
        ]
    )


def six_fields(action: Action) -> dict[str, str]:
    """Return the six fields of the reply that an action was made of."""
    said: Any = action.arguments["fields"]
    return {**said, THOUGHT: action.thought}


def _shown(log: EventLog, action: Action) -> str:
    """Return what is shown of an action: what was observed, or the summary of it."""
    text = ""
    for event in log.events[action.id + 1 :]:
        if isinstance(event, Action) and event.source == "agent":
            break
        if isinstance(event, Observation) and event.cause == action.id:
            text = event.text
        if isinstance(event, Action) and event.name == SUMMARY:
            text = str(event.arguments.get("text", ""))
    return text
