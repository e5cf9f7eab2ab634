"""Programs: a plan and a whole text, written as the data scientist writes them."""

from dataclasses import dataclass, replace
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.asked import Asked
from langgraft.benchmarks.simulated.data_scientist.desk import Desk, desk_for
from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.drafting import write_draft
from langgraft.benchmarks.simulated.data_scientist.forms import carried_on
from langgraft.benchmarks.simulated.data_scientist.improving import write_improvement
from langgraft.benchmarks.simulated.data_scientist.repairing import write_repair

_ENDLESS: Final = "without end"
_FENCE: Final = "\n\n```python\n"


@dataclass(frozen=True, slots=True)
class Written:
    """A program, and what is said of it."""

    plan: str
    code: str


def engineer_desk(asked: Asked, dice: Dice, ignorance: float) -> Desk:
    """Read the task of an engineer; it has all habits but those of rounds without end."""
    parts = {
        # A blank line in the description ends what the template calls the task.
        "task": f"{asked.part('task')}\n\n{asked.part('memory')}",
        "data": asked.part("data"),
        "rules": f"installed, among others: {asked.part('packages')}",
    }
    desk = desk_for(Asked(asked.kind, parts, asked.notes), dice, ignorance)
    return replace(desk, habits=tuple(each for each in desk.habits if _ENDLESS not in each.name))


def drafted(desk: Desk, attempts: str) -> Written:
    """Write a new program, unlike the earlier ones."""
    return _split(write_draft(desk, attempts))


def improved(desk: Desk, code: str, attempts: str) -> Written:
    """Change one thing of a program that ran."""
    return _split(write_improvement(_for(desk, code), code, attempts))


def repaired(desk: Desk, code: str, output: str) -> Written:
    """Repair a program that failed: right, or not."""
    return _split(write_repair(_for(desk, code), code, output))


def _for(desk: Desk, code: str) -> Desk:
    return replace(desk, task=carried_on(desk.task, code))


def _split(reply: str) -> Written:
    plan, _, rest = reply.partition(_FENCE)
    return Written(plan, rest.rpartition("\n```")[0] + "\n")
