"""A prompt of six-field replies, read: the task, the last steps, and the plan that is carried on.

The Research Plan and Status is all that a researcher knows of its work beyond the last steps: which
scripts there are, what they are made of and what they reached, and no word of what went wrong.
"""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langgraft.benchmarks.simulated.data_scientist.prompts import FilledPrompt, read_prompt
from langgraft.benchmarks.simulated.data_scientist.tasks import Metric
from langgraft.benchmarks.simulated.engineer.conversation import HIGHER
from langgraft.nodes.mlab.replies import ACTION, ACTION_INPUT, FIELDS, PLAN, THOUGHT

_STEP: Final = re.compile(r"^## Step \d+$", re.MULTILINE)
_FIELD: Final = re.compile(rf"^({'|'.join(map(re.escape, FIELDS))}): ?", re.MULTILINE)
_SEEN: Final = re.compile(r"^Observation:\n```\n(.*?)\n```\s*\Z", re.MULTILINE | re.DOTALL)
_SCRIPT: Final = re.compile(
    r"(train_\d+\.py) \(([^|)]*) \| ([^|)]*) \| ([^|)]*)\)"
    r" (?:reached (\S+?)|failed (\d+) times|is new)(?=; |\. )"
)
_NAMED: Final = re.compile(r"(At work|In place|Checked|Looks): ([\w.]+?)\.(?=\s|$)")
_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Step:
    """A step as the window shows it."""

    plan: str
    """Its Research Plan and Status."""
    thought: str
    action: str
    shown: str
    input: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """What a researcher has before it."""

    asked: FilledPrompt
    steps: tuple[Step, ...]
    left: int
    """Steps that are left, the next one included."""


def read_window(text: str) -> Window | None:
    """Read a prompt; `None` where it is another one."""
    asked, turn = read_prompt(text, ("mlab_task",)), read_prompt(text, ("mlab_turn",))
    if asked is None or turn is None:
        return None
    left = turn.part("left")
    shown = _STEP.split(turn.part("steps"))[1:]
    return Window(asked, tuple(map(_step, shown)), int(left) if left.isdecimal() else 1)


def _step(text: str) -> Step:
    seen = _SEEN.search(text)
    said = text[: seen.start()] if seen else text
    pieces = _FIELD.split(said)
    fields = dict(zip(pieces[1::2], (each.strip() for each in pieces[2::2]), strict=False))
    return Step(
        plan=fields.get(PLAN, ""),
        thought=fields.get(THOUGHT, ""),
        action=fields.get(ACTION, ""),
        shown=seen.group(1) if seen else "",
        input=_object(fields.get(ACTION_INPUT, "")),
    )


def _object(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


@dataclass(frozen=True, slots=True)
class Script:
    """A script, as the plan keeps it."""

    name: str
    titles: tuple[str, str, str]
    """Of its features, model and validation."""
    metric: float | None = None
    failures: int = 0

    def written(self) -> str:
        """Write it as the plan has it."""
        state = "is new"
        if self.metric is not None:
            state = f"reached {self.metric:g}"
        elif self.failures:
            state = f"failed {self.failures} times"
        return f"{self.name} ({' | '.join(self.titles)}) {state}"


@dataclass(frozen=True, slots=True)
class Status:
    """How far the work is."""

    scripts: dict[str, Script] = field(default_factory=dict)
    at_work: str = ""
    """The script that is written, run or repaired."""
    in_place: str = ""
    """The script whose submission lies there."""
    checked: bool = False
    """Whether that was found to be valid."""
    looks: int = 0
    """How often the data was looked at."""

    def written(self) -> str:
        """Write the plan."""
        listed = "; ".join(each.written() for each in self.scripts.values()) or _NONE
        return (
            "Look at the data, get a script to run, try other features and models, and hand in the"
            f" best. Scripts: {listed}. At work: {self.at_work or _NONE}. In place:"
            f" {self.in_place or _NONE}. Checked: {'yes' if self.checked else 'no'}. Looks:"
            f" {self.looks}."
        )

    def with_script(self, script: Script) -> "Status":
        """Return the status with a script as it is now."""
        return replace(self, scripts={**self.scripts, script.name: script})

    def current(self) -> Script | None:
        """Return the script at work."""
        return self.scripts.get(self.at_work)

    def best(self, metric: Metric) -> Script | None:
        """Return the script with the best metric, the first of them."""
        ran = [each for each in self.scripts.values() if each.metric is not None]
        sign = -1 if metric in HIGHER else 1
        return min(ran, key=lambda each: sign * (each.metric or 0.0), default=None)

    def attempts(self) -> str:
        """Name what was tried, for choices to differ from it."""
        return "\n".join(title for each in self.scripts.values() for title in each.titles)

    def new_name(self) -> str:
        """Return a name that no script has."""
        return f"train_{len(self.scripts) + 1}.py"


def read_status(plan: str) -> Status:
    """Read a plan that `Status.written` wrote."""
    scripts = {}
    for name, features, model, validation, metric, failures in _SCRIPT.findall(plan):
        titles = (features, model, validation)
        reached = float(metric) if metric else None
        scripts[name] = Script(name, titles, reached, int(failures or 0))
    named = {key: "" if value == _NONE else value for key, value in _NAMED.findall(plan)}
    looks = named.get("Looks", "")
    return Status(
        scripts=scripts,
        at_work=named.get("At work", ""),
        in_place=named.get("In place", ""),
        checked=named.get("Checked") == "yes",
        looks=int(looks) if looks.isdecimal() else 0,
    )
