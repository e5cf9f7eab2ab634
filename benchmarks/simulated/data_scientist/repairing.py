"""Repairs: a program that failed, written again without its fault, or with another one."""

import re
from collections.abc import Sequence
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.desk import Desk
from langgraft.benchmarks.simulated.data_scientist.drafting import write_draft
from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair
from langgraft.benchmarks.simulated.data_scientist.parts import SLOTS
from langgraft.benchmarks.simulated.data_scientist.programs import (
    assembled,
    imports_of,
    reply,
    sections_of,
)

RIGHT: Final = 0.65
"""Chance that one try at a repair is the right one."""
SHOWN: Final = 0.8
"""The same, where the output itself says what to write."""
_SHOWS: Final = re.compile(
    r"Did you mean|Use `[^`]+` instead|use `\w+` by itself|must be a str among"
)


def write_repair(desk: Desk, code: str, output: str) -> str:
    """Repair a program that failed: right, or not."""
    told, repaired = [], code
    habit = _culprit(desk.habits, code, output)
    if habit is not None:
        repair = _tried(desk, habit, code, output)
        if repair is not None:
            repaired = habit.repaired(repaired, repair)
            told.append(repair.plan)
    for other in desk.habits:
        known = desk.notes.known.get(other.name)
        if other is not habit and known is other.repair and other.occurs_in(repaired):
            repaired = other.repaired(repaired, known)
            told.append(known.plan)
    if repaired == code:
        return _at_a_loss(desk, code)
    plan = " ".join((*told, "Everything else stays as it was."))
    return reply(plan, imported(repaired))


def _culprit(habits: Sequence[Habit], code: str, output: str) -> Habit | None:
    present = [habit for habit in habits if habit.occurs_in(code)]
    shown = [habit for habit in present if habit.shown_by(output)]
    retried = [habit for habit in present if habit.retried_in(code)]
    return next(iter((*shown, *retried)), None)


def _tried(desk: Desk, habit: Habit, code: str, output: str) -> Repair | None:
    said = desk.notes.known.get(habit.name)
    if said is not None and habit.repaired(code, said) != code:
        return said
    if desk.dice.lucky(f"repair/{habit.name}", chance_of_right(output)):
        return habit.repair
    if not habit.others:
        return None
    return desk.dice.pick(f"other/{habit.name}", dict.fromkeys(habit.others, 1.0))


def chance_of_right(output: str) -> float:
    """Return the chance that one try at a repair is the right one."""
    return SHOWN if _SHOWS.search(output) else RIGHT


def _at_a_loss(desk: Desk, code: str) -> str:
    """Change something that does not matter, or write another program where that was done."""
    quiet = 'import warnings\n\nwarnings.filterwarnings("ignore")\n\n'
    if quiet in code or set(sections_of(code)) != set(SLOTS):
        return write_draft(desk, "")
    plan = (
        "Switch off the warnings, which hide what goes wrong. The rest seems to be as it should be."
        " The program is written again without a change otherwise."
    )
    return reply(plan, f"{quiet}{code}")


def imported(code: str) -> str:
    """Bring the imports up to what the program uses now."""
    sections = sections_of(code)
    if set(sections) != set(SLOTS):
        return code
    return assembled([sections[slot] for slot in SLOTS], imports_of(code))
