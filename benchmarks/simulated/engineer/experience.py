"""What an engineer has learned in the course of its work, as far as it still sees it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.desk import Desk
from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair
from langgraft.benchmarks.simulated.engineer.bench import Tried

RELAPSE: Final = 0.75
"""What is left of the rate of a habit in new code, once its failure was seen in the conversation."""
REMEMBERED: Final = 0.9
"""Chance that a repair which worked earlier in the conversation is made again at once."""


def experienced(desk: Desk, tried: Iterable[Tried]) -> Desk:
    """Return a desk whose habits are rarer where their failure was seen."""
    met = set(failures_seen(desk.habits, tried))
    habits = tuple(
        replace(each, rate=each.rate * RELAPSE) if each.name in met else each
        for each in desk.habits
    )
    return replace(desk, habits=habits)


def remembering(desk: Desk, tried: Iterable[Tried]) -> Desk:
    """Return a desk for a repair, which mostly knows repairs that worked before.

    Notes of memory go first, as everywhere.
    """
    worked = {
        name: repair
        for name, repair in _worked(desk.habits, tuple(tried)).items()
        if desk.dice.lucky(f"remembered/{name}", REMEMBERED)
    }
    known = {**worked, **desk.notes.known}
    return replace(desk, notes=replace(desk.notes, known=known))


def failures_seen(habits: Iterable[Habit], tried: Iterable[Tried]) -> list[str]:
    """Return the habits that programs failed of."""
    failed = [each for each in tried if each.failed]
    return [
        habit.name
        for habit in habits
        if any(habit.occurs_in(each.code) and habit.shown_by(each.output) for each in failed)
    ]


def _worked(habits: Iterable[Habit], tried: tuple[Tried, ...]) -> dict[str, Repair]:
    """Return the habits that a program failed of and a later one that ran has right."""
    found = {}
    for habit in habits:
        at = next((at for at, each in enumerate(tried) if _failed_of(habit, each)), None)
        later = () if at is None else tried[at + 1 :]
        if any(not each.failed and habit.may_occur_in(each.code) for each in later):
            found[habit.name] = habit.repair
    return found


def _failed_of(habit: Habit, tried: Tried) -> bool:
    return tried.failed and habit.occurs_in(tried.code) and habit.shown_by(tried.output)
