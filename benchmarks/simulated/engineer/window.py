"""A prompt of six-field replies, read: the task, the last steps, what is left."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from langgraft._core.canonical import text_digest
from langgraft.benchmarks.simulated.data_scientist.asked import Asked, read_prompt
from langgraft.memory.recall import strip_block
from langgraft.nodes.mlab.replies import ACTION, ACTION_INPUT, FIELDS, PLAN, THOUGHT

_STEP: Final = re.compile(r"^## Step \d+$", re.MULTILINE)
_FIELD: Final = re.compile(rf"^({'|'.join(map(re.escape, FIELDS))}): ?", re.MULTILINE)
_SEEN: Final = re.compile(r"^Observation:\n```\n(.*?)\n```\s*\Z", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Step:
    """A step as the window shows it."""

    plan: str
    """Its Research Plan and Status."""
    thought: str
    action: str
    seen: str
    input: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """What a researcher has before it."""

    asked: Asked
    steps: tuple[Step, ...]
    left: int
    """Steps that are left, the next one included."""
    digest: str
    """Of all that is said but recalled notes."""


def read_window(text: str) -> Window | None:
    """Read a prompt; `None` where it is another one."""
    asked, turn = read_prompt(text, ("mlab_task",)), read_prompt(text, ("mlab_turn",))
    if asked is None or turn is None:
        return None
    left = turn.part("left")
    shown = _STEP.split(turn.part("steps"))[1:]
    digest = text_digest(json.dumps(" ".join(strip_block(text).split())))
    steps = tuple(_step(each) for each in shown)
    return Window(asked, steps, int(left) if left.isdecimal() else 1, digest)


def _step(text: str) -> Step:
    seen = _SEEN.search(text)
    said = text[: seen.start()] if seen else text
    pieces = _FIELD.split(said)
    fields = dict(zip(pieces[1::2], (each.strip() for each in pieces[2::2]), strict=False))
    return Step(
        plan=fields.get(PLAN, ""),
        thought=fields.get(THOUGHT, ""),
        action=fields.get(ACTION, ""),
        seen=seen.group(1) if seen else "",
        input=_object(fields.get(ACTION_INPUT, "")),
    )


def _object(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
