"""Drafts, improvements and repairs: a plan and a whole program."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.asked import Asked
from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.forms import parts_for
from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair
from langgraft.benchmarks.simulated.data_scientist.models import blended
from langgraft.benchmarks.simulated.data_scientist.notes import Notes, read_notes
from langgraft.benchmarks.simulated.data_scientist.parts import SLOTS, Part
from langgraft.benchmarks.simulated.data_scientist.programs import (
    assembled,
    imports_of,
    sections_of,
    title_of,
)
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
WARNED: Final = 0.3
"""What is left of the rate of a habit that a note names without saying what to write."""
NARROWER: Final = 0.06
"""By how much each note that tells something raises the power that weights are taken to."""
MOST_NOTES: Final = 10
RIGHT: Final = 0.6
"""Chance that one try at a repair is the right one."""
SHOWN: Final = 0.8
"""The same, where the output itself says what to write."""
_SHOWS: Final = re.compile(
    r"Did you mean|Use `[^`]+` instead|use `\w+` by itself|must be a str among"
)
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
    task = read_task(asked.part("task"), asked.part("data"))
    habits = (*STALE, *schema_habits(task))
    listed = _PACKAGES.search(asked.part("rules"))
    packages = re.findall(r"[\w-]+", listed.group(1).lower()) if listed else ()
    return Desk(task, read_notes(asked.notes, habits), habits, dice, ignorance, frozenset(packages))


def write_draft(desk: Desk, attempts: str) -> str:
    """Write a new solution, unlike the earlier ones."""
    parts = desk.available(parts_for(desk.task))
    features = desk.chosen("features", _slot(parts, "Features"), attempts)
    fitting = [each for each in _slot(parts, "Model") if features.makes in each.takes]
    model = desk.chosen("model", fitting, attempts)
    ways = _slot(parts, "Validation")
    # Folds of what takes long take too long where there are many features.
    quick = not model.heavy or desk.task.form == "table"
    validation = desk.chosen("validation", ways) if quick else ways[0]
    chosen: dict[str, Part] = {each.slot: each for each in parts}
    chosen |= {"Features": features, "Model": model, "Validation": validation}
    sections = [desk.spoiled(chosen[slot].written(desk.dice, "draft")) for slot in SLOTS]
    plan = (
        f"Make {features.title} of the data, and fit {model.title}. "
        f"Validate with {validation.title} by {chosen['Metric'].title}. "
        "Nothing is tuned yet: this is to be a plain solution that runs."
    )
    return _reply(plan, assembled(sections))


def write_improvement(desk: Desk, code: str) -> str:
    """Make one change to a program that runs."""
    sections = sections_of(code)
    if set(sections) != set(SLOTS):
        return write_draft(desk, "")
    parts = desk.available(parts_for(desk.task))
    change = desk.dice.pick("change", {"model": 3.0, "features": 2.0, "blend": 2.0, "options": 2.0})
    sections, plan = _changed(desk, parts, sections, change)
    return _reply(plan, assembled([sections[slot] for slot in SLOTS], imports_of(code)))


def _changed(
    desk: Desk, parts: Sequence[Part], sections: Mapping[str, str], change: str
) -> tuple[dict[str, str], str]:
    earlier = "\n\n".join(sections.values())
    old_model, old_features = title_of(sections["Model"]), title_of(sections["Features"])
    features = next((each for each in parts if each.title == old_features), None)
    makes = features.makes if features else "dense"
    models = [each for each in _slot(parts, "Model") if makes in each.takes]
    if change == "features":
        fitting = [
            each
            for each in _slot(parts, "Features")
            if each.title != old_features and each.makes == makes
        ]
        if fitting:
            made = desk.chosen("new features", fitting)
            written = desk.spoiled(made.written(desk.dice, "improve"), earlier)
            plan = f"Make {made.title} in place of {old_features}, and keep the model."
            return {**sections, "Features": written}, _explained(plan)
    if change == "options":
        same = [each for each in models if each.title == old_model and each.options]
        if same:
            written = desk.spoiled(same[0].written(desk.dice, "improve"), earlier)
            plan = f"Change the options of {old_model}, and keep everything else."
            return {**sections, "Model": written}, _explained(plan)
    others = [each for each in models if each.title != old_model]
    made = desk.chosen("new model", others, old_model)
    written = desk.spoiled(made.written(desk.dice, "improve"), earlier)
    if change == "blend" and not old_model.startswith("the mean of"):
        text = blended(_body(sections["Model"]), _body(written))
        title = f"the mean of {old_model} and {made.title}"
        plan = f"Predict {title}, whose mistakes should differ."
        return {**sections, "Model": f"# Model: {title}\n{text}"}, _explained(plan)
    plan = f"Fit {made.title} in place of {old_model}, on the same features."
    return {**sections, "Model": written}, _explained(plan)


def _explained(plan: str) -> str:
    return f"{plan} Nothing else changes. The validation stays, so that the effect can be measured."


def write_repair(desk: Desk, code: str, output: str) -> str:
    """Repair a program that failed: right, or not."""
    told, repaired = [], code
    habit = _culprit(desk.habits, code, output)
    if habit is not None:
        repair = _tried(desk, habit, output)
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
    return _reply(plan, _imported(repaired))


def _culprit(habits: Sequence[Habit], code: str, output: str) -> Habit | None:
    present = [habit for habit in habits if habit.occurs_in(code)]
    shown = [habit for habit in present if habit.shown_by(output)]
    retried = [habit for habit in present if habit.retried_in(code)]
    return next(iter((*shown, *retried)), None)


def _tried(desk: Desk, habit: Habit, output: str) -> Repair | None:
    said = desk.notes.known.get(habit.name)
    if said is not None:
        return said
    chance = SHOWN if _SHOWS.search(output) else RIGHT
    if desk.dice.lucky(f"repair/{habit.name}", chance):
        return habit.repair
    if not habit.others:
        return None
    return desk.dice.pick(f"other/{habit.name}", dict.fromkeys(habit.others, 1.0))


def _at_a_loss(desk: Desk, code: str) -> str:
    """Change something that does not matter, or write another program where that was done."""
    quiet = 'import warnings\n\nwarnings.filterwarnings("ignore")\n\n'
    if quiet in code or set(sections_of(code)) != set(SLOTS):
        return write_draft(desk, "")
    plan = (
        "Switch off the warnings, which hide what goes wrong. The rest seems to be as it should be."
        " The program is written again without a change otherwise."
    )
    return _reply(plan, f"{quiet}{code}")


def _imported(code: str) -> str:
    """Bring the imports up to what the program uses now."""
    sections = sections_of(code)
    if set(sections) != set(SLOTS):
        return code
    return assembled([sections[slot] for slot in SLOTS], imports_of(code))


def _slot(parts: Iterable[Part], slot: str) -> list[Part]:
    return [each for each in parts if each.slot == slot]


def _body(section: str) -> str:
    return section.partition("\n")[2]


def _reply(plan: str, code: str) -> str:
    return f"{plan}\n\n```python\n{code.rstrip()}\n```\n"
