"""Drafts, improvements and repairs: choices between parts, with habits, as far as notes do not tell better."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.benchmarks.simulated.data_scientist.notes import (
    SHOWS,
    Habit,
    Notes,
    Repair,
    habits_for,
    read_notes,
)
from langgraft.benchmarks.simulated.data_scientist.programs import (
    MEAN_OF,
    SLOTS,
    Part,
    assembled,
    blended,
    body_of,
    carried_on,
    imports_of,
    parts_for,
    reassembled,
    sections_of,
    title_of,
)
from langgraft.benchmarks.simulated.data_scientist.tasks import FilledPrompt, Task, read_task

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
CHANGES: Final = {"model": 3.0, "features": 2.0, "blend": 2.0, "options": 2.0}
"""What an improvement changes, and how readily."""
TRIES: Final = 4
"""How often other options are drawn, until they are others."""
RIGHT: Final = 0.65
"""Chance that one try at a repair is the right one."""
SHOWN: Final = 0.8
"""The same, where the output itself says what to write."""
QUIET: Final = 'import warnings\n\nwarnings.filterwarnings("ignore")\n\n'
"""What is tried where nothing else comes to mind."""
_PACKAGES: Final = re.compile(r"installed, among others: ([^\n]*)")


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and what is said of it."""

    plan: str
    code: str


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes programs by all that bears on them."""

    task: Task
    notes: Notes
    habits: tuple[Habit, ...]
    dice: Dice
    ignorance: float
    packages: frozenset[str]
    """Those that the prompt lists; empty where it lists none."""

    def draft(self, attempts: str) -> Program:
        """Write a new program, unlike the earlier ones."""
        parts = self.parts()
        features = self._chosen("features", parts["Features"], attempts)
        models = [each for each in parts["Model"] if each.sparse == features.sparse]
        model = self._chosen("model", models, attempts)
        # Folds of what takes long take too long where there are many features.
        quick = not model.heavy or self.task.form == "table"
        validation = self._chosen("validation", parts["Validation"][: 2 if quick else 1])
        chosen = {slot: each[0] for slot, each in parts.items()}
        chosen |= {"Features": features, "Model": model, "Validation": validation}
        plan = (
            f"Make {features.title} of the data, and fit {model.title}. "
            f"Validate with {validation.title} by {chosen['Metric'].title}. "
            "Nothing is tuned yet: this is to be a plain solution that runs."
        )
        sections = [self.spoiled(chosen[slot].written(self.dice, "draft")) for slot in SLOTS]
        return Program(plan, assembled(sections))

    def improve(self, code: str, attempts: str) -> Program:
        """Make one change to a program that runs; what it has right is carried on to the letter."""
        old = sections_of(code)
        if set(old) != set(SLOTS):
            return self.draft(attempts)
        writer = replace(self, task=carried_on(self.task, code))
        plan, section = writer._change(old, attempts)  # noqa: SLF001  (the same class)
        plan = f"{plan} Nothing else changes. The validation stays, so that the effect can be measured."
        slot = section[2 : section.index(":")]
        return Program(plan, reassembled(code, old | {slot: section}))

    def merge(self, first: str, second: str, attempts: str) -> Program:
        """Make one program of two that run, of sections that they have; to the letter, as they ran.

        Where the two have nothing to give each other, the first is improved.
        """
        ours, theirs = sections_of(first), sections_of(second)
        crossings = self._crossings(ours, theirs) if set(ours) == set(theirs) == set(SLOTS) else {}
        if not crossings:
            return self.improve(first, attempts)
        plan, changed = crossings[self.dice.pick("merge", dict.fromkeys(crossings, 1.0))]
        # Imports of both: a section may use a name as its own program brought it.
        sections = {**ours, **changed}
        code = assembled((sections[slot] for slot in SLOTS), imports_of(first, second))
        kept = "All else is as the first solution has it, the validation too."
        return Program(f"{plan} {kept}", code)

    def _crossings(
        self, ours: Mapping[str, str], theirs: Mapping[str, str]
    ) -> dict[str, tuple[str, dict[str, str]]]:
        """Return what can be taken from the second of two programs: plans, and sections."""
        parts = self.parts()
        sparse = {each.title: each.sparse for each in (*parts["Features"], *parts["Model"])}
        (features, model), (others, another) = (
            tuple(map(title_of, (each["Features"], each["Model"]))) for each in (ours, theirs)
        )

        def fit(made: str, taken: str) -> bool:
            """Say whether a model takes features; one that is no part says nothing of that."""
            known = {sparse.get(made, False), sparse.get(taken, sparse.get(made, False))}
            return len(known) == 1

        found: dict[str, tuple[str, dict[str, str]]] = {}
        if ours["Features"] != theirs["Features"] and fit(others, model):
            plan = f"Make {others} of the second solution in place of {features}, for {model}."
            found["features"] = (plan, {"Features": theirs["Features"]})
        if ours["Model"] != theirs["Model"] and fit(features, another):
            plan = f"Fit {another} of the second solution in place of {model}, on {features}."
            found["model"] = (plan, {"Model": theirs["Model"]})
            if not model.startswith(MEAN_OF) and not another.startswith(MEAN_OF):
                section = self.blend(ours["Model"], theirs["Model"])
                plan = f"Predict {title_of(section)}, the models of both solutions, on {features}."
                found["blend"] = (plan, {"Model": section})
        return found

    def repair(self, code: str, output: str) -> Program:
        """Repair a program that failed: right, or not."""
        habit = culprit(self.habits, code, output)
        made: list[Repair] = []
        repaired = code
        if habit is not None and (tried := self.try_at(habit, output, code)) is not None:
            repaired = habit.repaired(repaired, tried)
            made.append(tried)
        for other in self.habits:
            known = self.notes.known.get(other.name)
            if other is not habit and known is other.repair and other.occurs_in(repaired):
                repaired = other.repaired(repaired, known)
                made.append(known)
        if repaired != code:
            plans = (*(each.plan for each in made), "Everything else stays as it was.")
            return Program(" ".join(plans), reassembled(repaired))
        if QUIET in code or set(sections_of(code)) != set(SLOTS):
            return replace(self, task=carried_on(self.task, code)).draft("")
        plan = (
            "Switch off the warnings, which hide what goes wrong. The rest seems to be as it should"
            " be. The program is written again without a change otherwise."
        )
        return Program(plan, f"{QUIET}{code}")

    def try_at(self, habit: Habit, output: str, code: str = "") -> Repair | None:
        """Return what is tried to get rid of a habit: what notes say, else the right thing or not.

        What notes advise against is not tried. `None` is a try at nothing that matters.
        """
        said = self.notes.known.get(habit.name)
        if said is not None and (not code or habit.repaired(code, said) != code):
            return said
        right = SHOWN if SHOWS.search(output) else RIGHT
        if self.dice.coin(f"repair/{habit.name}", right) and self._open(habit, habit.repair):
            return habit.repair
        others = [each for each in habit.others if self._open(habit, each)]
        # What is left when all the rest was refuted is the right one, if notes leave that.
        if not others and habit.others and self._open(habit, habit.repair):
            return habit.repair
        return self.dice.pick(f"other/{habit.name}", dict.fromkeys(others, 1.0)) if others else None

    def parts(self) -> dict[str, list[Part]]:
        """Return the parts for the task whose package is there, by slot."""
        there = self.packages | {"sklearn"}
        return {
            slot: [each for each in parts if not self.packages or each.package in there]
            for slot, parts in parts_for(self.task).items()
        }

    def spoiled(self, section: str, earlier: str = "") -> str:
        """Write a section as habit has it, as far as no note and no earlier program tells better."""
        for habit in self.habits:
            if not habit.may_occur_in(section) or habit.may_occur_in(earlier):
                continue
            said = self.notes.known.get(habit.name)
            rate = habit.rate * self.ignorance
            rate *= WARNED if habit.name in self.notes.warned else 1.0
            if said is not None:
                section = section if said is habit.repair else habit.broken(section, said.text)
            elif self.dice.coin(f"habit/{habit.name}", min(rate, 1.0)):
                section = habit.broken(section)
        return section

    def blend(self, first: str, second: str) -> str:
        """Write the mean of two Model sections."""
        title = f"{MEAN_OF} {title_of(first)} and {title_of(second)}"
        return f"# Model: {title}\n{blended(body_of(first), body_of(second))}"

    def _open(self, habit: Habit, repair: Repair) -> bool:
        return (habit.name, repair.text) not in self.notes.refuted

    def _change(self, old: Mapping[str, str], attempts: str) -> tuple[str, str]:
        """Return a plan and the one section that is written anew."""
        parts, earlier = self.parts(), "\n\n".join(old.values())
        titles = {slot: title_of(section) for slot, section in old.items()}
        makers = {each.title: each.sparse for each in parts["Features"]}
        sparse = makers.get(titles["Features"], False)
        models = [each for each in parts["Model"] if each.sparse == sparse]
        change = self.dice.pick("change", CHANGES)

        def written(part: Part, at: int = 0) -> str:
            return self.spoiled(part.written(self.dice, f"improve/{at}"), earlier)

        features = [
            each
            for each in parts["Features"]
            if each.title != titles["Features"] and each.sparse == sparse
        ]
        if change == "features" and features:
            part = self._chosen("new features", features, attempts)
            plan = f"Make {part.title} in place of {titles['Features']}, and keep the model."
            return plan, written(part)
        same = [each for each in models if each.title == titles["Model"]]
        for section in (
            written(same[0], at) for at in range(TRIES) if change == "options" and same
        ):
            if section != old["Model"]:
                return (
                    f"Change the options of {titles['Model']}, and keep everything else.",
                    section,
                )
        others = [each for each in models if each.title != titles["Model"]]
        part = self._chosen("new model", others, attempts)
        if change == "blend" and not titles["Model"].startswith(MEAN_OF):
            section = self.blend(old["Model"], written(part))
            return f"Predict {title_of(section)}, whose mistakes should differ.", section
        plan = f"Fit {part.title} in place of {titles['Model']}, on the same features."
        return plan, written(part)

    def _chosen(self, question: str, parts: list[Part], tried: str = "") -> Part:
        """Choose a part, by its weight and by what notes and earlier attempts leave of it."""
        weights = {at: self._weight(each, tried) for at, each in enumerate(parts)}
        return parts[self.dice.pick(question, weights)]

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
        return float(weight ** (1 + NARROWER * min(self.notes.informing, MOST_NOTES)))


def culprit(habits: Iterable[Habit], code: str, output: str) -> Habit | None:
    """Return the habit of a program that an output shows, or else one that a repair left there."""
    present = [habit for habit in habits if habit.occurs_in(code)]
    shown = [habit for habit in present if habit.shown_by(output)]
    retried = [habit for habit in present if habit.retried_in(code)]
    return next(iter((*shown, *retried)), None)


def listed_packages(text: str) -> frozenset[str]:
    """Read a list of packages."""
    return frozenset(re.findall(r"[\w-]+", text.lower()))


def writer_for(asked: FilledPrompt, dice: Dice, ignorance: float) -> Writer:
    """Read a prompt of the tree."""
    task = carried_on(read_task(asked.part("task"), asked.part("data")), asked.part("code"))
    listed = _PACKAGES.search(asked.part("rules"))
    packages = listed_packages(listed[1] if listed else "")
    habits = habits_for(task)
    return Writer(task, read_notes(asked.notes, habits), habits, dice, ignorance, packages)
