"""All that bears on what is written next, and how choices follow from it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.asked import Asked
from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.forms import carried_on
from langgraft.benchmarks.simulated.data_scientist.habits import Habit
from langgraft.benchmarks.simulated.data_scientist.notes import Notes, read_notes
from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.schema import schema_habits
from langgraft.benchmarks.simulated.data_scientist.stale import STALE
from langgraft.benchmarks.simulated.data_scientist.tasks import Task, read_task

TRIED: Final = 0.3
"""What is left of the weight of a part that an earlier attempt has."""
LIMITED: Final = 0.05
"""What is left of the weight of a model whose package or class ran into a limit, by a note."""
LIGHTER: Final = 0.35
"""What is left of the weight of other heavy models, once any note tells of a limit."""
PRIMED: Final = 2.0
"""Factor on the weight of a part whose use a note explains."""
SHUNNED: Final = 0.5
"""Factor on the weight of a part that a note tells a mistake of, and no way out."""
WARNED: Final = 0.1
"""What is left of the rate of a habit that a note names without saying what to write."""
NARROWER: Final = 0.06
"""By how much each note that tells something raises the power that weights are taken to."""
MOST_NOTES: Final = 10
_PACKAGES: Final = re.compile(r"installed, among others: ([^\n]*)")


@dataclass(frozen=True, slots=True)
class Desk:
    """All that bears on what is written next."""

    task: Task
    notes: Notes
    habits: tuple[Habit, ...]
    dice: Dice
    ignorance: float
    packages: frozenset[str]
    """Those that the prompt lists; empty where it lists none."""

    def chosen(self, question: str, parts: Iterable[Part], tried: str = "") -> Part:
        """Choose a part, by its weight and by what notes and earlier attempts leave of it."""
        listed = list(parts)
        weights = {at: self._weight(each, tried) for at, each in enumerate(listed)}
        return listed[self.dice.pick(question, weights)]

    def available(self, parts: Iterable[Part]) -> list[Part]:
        """Return the parts whose package is there."""
        if not self.packages:
            return list(parts)
        names = self.packages | ({"sklearn"} if "scikit-learn" in self.packages else frozenset())
        return [each for each in parts if each.package in names or each.package == "sklearn"]

    def spoiled(self, section: str, earlier: str = "") -> str:
        """Write a section as habit has it, as far as no note and no earlier program tells better."""
        for habit in self.habits:
            if not habit.may_occur_in(section) or habit.may_occur_in(earlier):
                continue
            said = self.notes.known.get(habit.name)
            if said is not None:
                section = section if said is habit.repair else habit.broken(section, said.text)
            elif self._happens(habit):
                section = habit.broken(section)
        return section

    def _happens(self, habit: Habit) -> bool:
        rate = habit.rate * self.ignorance
        if habit.name in self.notes.warned:
            rate *= WARNED
        return self.dice.lucky(f"habit/{habit.name}", min(rate, 1.0))

    def _weight(self, part: Part, tried: str) -> float:
        weight = part.weight * (TRIED if part.title in tried else 1.0)
        if part.slot == "Model" and self.notes.limited:
            if any(name in part.text or name == part.package for name in self.notes.limited):
                weight *= LIMITED
            elif part.heavy:
                weight *= LIGHTER
        for habit in self.habits:
            if part.slot in ("Features", "Model") and habit.may_occur_in(part.text):
                weight *= PRIMED if habit.name in self.notes.known else 1.0
                weight *= SHUNNED if habit.name in self.notes.warned else 1.0
        return float(weight ** (1 + NARROWER * min(self.notes.told, MOST_NOTES)))


def desk_for(asked: Asked, dice: Dice, ignorance: float) -> Desk:
    """Read a prompt."""
    task = carried_on(read_task(asked.part("task"), asked.part("data")), asked.part("code"))
    habits = (*STALE, *schema_habits(task))
    listed = _PACKAGES.search(asked.part("rules"))
    packages = re.findall(r"[\w-]+", listed.group(1).lower()) if listed else ()
    return Desk(task, read_notes(asked.notes, habits), habits, dice, ignorance, frozenset(packages))
