"""Instructions for edits: what a researcher wants done, and all that whoever does it has to know."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from langgraft.benchmarks.simulated.data_scientist.desk import Desk
from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

_PART: Final = re.compile(r"^(Features|Model|Validation): ([^\n]+)$", re.MULTILINE)
_FACTS: Final = re.compile(r"^Facts of the task: (\{[^\n]*\})$", re.MULTILINE)
_PACKAGES: Final = re.compile(r"^Packages: ([^\n]*)$", re.MULTILINE)
QUIET: Final = "Switch off the warnings."
"""What is tried where nothing else comes to mind."""


@dataclass(frozen=True, slots=True)
class Order:
    """An instruction, read."""

    parts: Mapping[str, str] = field(default_factory=dict)
    """Sections that are to be written → what they are to be."""
    task: Task = field(default_factory=Task)
    packages: str = ""
    quiet: bool = False


def written_order(desk: Desk, parts: Mapping[str, str], code: str) -> str:
    """Write the instruction for a script, or for sections of one.

    Args:
        desk: The task, and what memory told.
        parts: The sections that are to be written.
        code: A text that has in it what the script is going to hold, for choosing from what
            memory told.
    """
    lines = ["Write these parts of the script, and those that it has not yet."]
    lines += [f"{slot}: {title}" for slot, title in parts.items()]
    lines.append(f"Facts of the task: {json.dumps(asdict(desk.task), ensure_ascii=False)}")
    if desk.packages:
        lines.append(f"Packages: {', '.join(sorted(desk.packages))}")
    heeded = [habit for habit in desk.habits if habit.may_occur_in(code)]
    return "\n\n".join(["\n".join(lines), *_heed(desk, heeded)])


def repairing_order(habit: Habit, repair: Repair) -> str:
    """Write the instruction for a repair."""
    return _entry(habit, repair)


def read_order(text: str) -> Order:
    """Read an instruction."""
    packages = _PACKAGES.search(text)
    return Order(
        parts=dict(_PART.findall(text)),
        task=_task(text),
        packages=packages.group(1) if packages else "",
        quiet=QUIET in text,
    )


def _heed(desk: Desk, habits: Iterable[Habit]) -> Iterable[str]:
    """Yield what memory told of habits, an entry for each."""
    for habit in habits:
        known = desk.notes.known.get(habit.name)
        if known is not None:
            yield _entry(habit, known)
        elif habit.name in desk.notes.warned:
            yield f"Error: {_about(habit)}"


def _entry(habit: Habit, repair: Repair) -> str:
    return f"Error: {_about(habit)}\nFix: {repair.plan}"


def _about(habit: Habit) -> str:
    return " ".join(word.rstrip("*") for word in habit.about)


def _task(text: str) -> Task:
    found = _FACTS.search(text)
    if found is None:
        return Task()
    try:
        facts: dict[str, Any] = json.loads(found.group(1))
        return Task(**{**facts, "outputs": tuple(facts["outputs"])})
    except (ValueError, TypeError, KeyError):
        return Task()
