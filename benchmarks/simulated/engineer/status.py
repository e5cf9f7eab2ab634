"""Research Plan and Status: all that a researcher knows of its work beyond the last steps.

It holds which scripts there are, what they are made of and what they reached, and no word of what
went wrong in them.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.tasks import Metric
from langgraft.benchmarks.simulated.engineer.bench import HIGHER

_SCRIPT: Final = re.compile(
    r"(train_\d+\.py) \(([^|)]*) \| ([^|)]*) \| ([^|)]*)\)"
    r" (?:reached (\S+?)|failed (\d+) times|is new)(?=; |\. )"
)
_NAMED: Final = re.compile(r"(At work|In place|Checked|Looks): ([\w.]+?)\.(?=\s|$)")
_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Script:
    """A script, as the plan keeps it."""

    name: str
    titles: tuple[str, str, str]
    """Of its features, model and validation."""
    metric: float | None = None
    failures: int = 0

    def told(self) -> str:
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

    def told(self) -> str:
        """Write the plan."""
        listed = "; ".join(each.told() for each in self.scripts.values()) or _NONE
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
    """Read a plan that `Status.told` wrote."""
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
