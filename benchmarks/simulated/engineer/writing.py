"""Programs: a plan and a whole text, written as the data scientist writes them."""

from dataclasses import dataclass, replace
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.asked import Asked
from langgraft.benchmarks.simulated.data_scientist.desk import Desk, desk_for
from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.drafting import write_draft
from langgraft.benchmarks.simulated.data_scientist.forms import carried_on
from langgraft.benchmarks.simulated.data_scientist.habits import Habit
from langgraft.benchmarks.simulated.data_scientist.improving import write_improvement
from langgraft.benchmarks.simulated.data_scientist.repairing import write_repair
from langgraft.benchmarks.simulated.data_scientist.schema import schema_habits
from langgraft.benchmarks.simulated.data_scientist.stale import STALE
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

_ENDLESS: Final = "without end"
_FENCE: Final = "\n\n```python\n"


@dataclass(frozen=True, slots=True)
class Written:
    """A program, and what is said of it."""

    plan: str
    code: str


def engineer_desk(asked: Asked, dice: Dice, ignorance: float) -> Desk:
    """Read the task of an engineer."""
    # In front of `$memory` a blank line ends a part; what comes before memory goes on there.
    after = asked.part("memory")
    task, data = asked.part("task"), asked.part("data")
    parts = {
        "task": f"{task}\n\n{after}" if asked.kind == "chain_task" else task,
        "data": data if asked.kind == "chain_task" else f"{data}\n\n{after}",
        "rules": f"installed, among others: {asked.part('packages')}",
    }
    desk = desk_for(Asked(asked.kind, parts, asked.notes), dice, ignorance)
    return replace(desk, habits=habits_of(desk.task))


def habits_of(task: Task) -> tuple[Habit, ...]:
    """Return the habits of an engineer: those of the data scientist that end by themselves."""
    habits = (*STALE, *schema_habits(task))
    return tuple(each for each in habits if _ENDLESS not in each.name)


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
