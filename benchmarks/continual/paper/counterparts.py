"""What of a study answers to what in the paper: conditions to its conditions, pairs to its pairs.

A condition plays one of the paper's by what it is, never by its name. Raw keeps trajectories;
Insight, which is Cond-Agg too, bundles of lessons; Cond-Ind single lessons; Cond-Step single
lessons, asked for again while an episode goes on (Table 7).

Conditions of one role that differ in nothing but what is compared with what, and how it is scored, are
*readings* of it: the paper fixes neither (§A.1.3 to §A.1.5, §B).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.metrics import Direction, Transfer
from langgraft.benchmarks.continual.plan import Condition, ContinualPlan, paper_conditions
from langgraft.benchmarks.harness.plans import provider_place
from langgraft.benchmarks.published import (
    ROLES,
    Backward,
    Family,
    Forward,
    Place,
    Role,
    World,
    continual_memory,
)
from langgraft.memory.providers import provider_settings
from langgraft.memory.rankers.lexical import BM25

Cast: TypeAlias = Mapping[Role, Condition]
"""Which condition plays each role."""

_OPEN: Final = frozenset({"top_k", "requery_interval", "success_only", "ranker"})
_FIELDS: Final = frozenset({"key_fields", "query_fields", "requery_fields"})
"""Settings that may differ: those of Table 8, and what the paper leaves open."""


def roles(plan: ContinualPlan) -> dict[Role, Condition]:
    """Return the condition that plays each role, where there is one.

    A remedy, and one that distills by outcome, plays none. Of several, the one with the paper's
    own settings does, else the first.
    """
    found: dict[Role, Condition] = {}
    for role, ideal in _ideals().items():
        fits = [each for each in plan.conditions if _plays(each, ideal)]
        exact = [each for each in fits if departures(each, ideal) == {}]
        if fits:
            found[role] = (exact or fits)[0]
    return found


def paper_condition(role: Role) -> Condition:
    """Return a role with the settings of Table 8."""
    return _ideals()[role]


def _ideals() -> dict[Role, Condition]:
    return dict(zip(ROLES, paper_conditions(), strict=True))


def departures(condition: Condition, ideal: Condition) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which a condition differs from the paper's: its value, and ours."""
    wanted, there = _settings(ideal), _settings(condition)
    names = [name for name in there if there[name] != wanted.get(name)]
    return {name: (wanted.get(name), there[name]) for name in names}


def _plays(condition: Condition, ideal: Condition) -> bool:
    if condition.mends is not None or condition.distillation != "plain":
        return False
    if provider_place(condition.provider) != provider_place(ideal.provider):
        return False
    found = departures(condition, ideal)
    asks = found.get("requery_interval", (1, 1))
    return found.keys() <= _OPEN | _FIELDS and None not in asks


def _settings(condition: Condition) -> Mapping[str, Any]:
    settings = provider_settings(condition.provider, condition.settings)
    return {name: getattr(settings, name) for name in type(settings).model_fields}


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of one of the paper's conditions that a plan has: two or more."""

    role: Role
    first: Condition
    """The one that plays the role: the others are compared with it."""
    others: tuple[Condition, ...]

    @property
    def all(self) -> tuple[Condition, ...]:
        """All of them, in the plan's order but for the first."""
        return (self.first, *self.others)


def readings(plan: ContinualPlan) -> tuple[Readings, ...]:
    """Return the conditions of a plan that have several readings."""
    found = []
    for role, first in roles(plan).items():
        beside = tuple(
            each
            for each in plan.conditions
            if each is not first
            and _plays(each, first)
            and departures(each, first).keys() <= _FIELDS | {"ranker"}
        )
        if beside:
            found.append(Readings(role, first, beside))
    return tuple(found)


_WORDS: Final = {"task": "instruction", "observation": "observation"}


def reading_words(condition: Condition) -> str:
    """Say what a condition compares with what, and how it is scored."""
    settings = _settings(condition)
    asked, kept = (
        " and ".join(_WORDS[field] for field in settings[name])
        for name in ("query_fields", "key_fields")
    )
    if settings.get("granularity", "aggregate") != "aggregate":
        kept = "situation"
    told = settings["ranker"].describe()
    how = [
        *(["each word of the query once"] if told.get("query_counts") is False else []),
        *(["Okapi's idf"] if told.get("idf") == "okapi" else []),
    ]
    scored = "" if told == BM25(ties=told.get("ties", "oldest")).describe() else told["ranker"]
    return f"{asked} against {kept}" + "".join(f"; {each}" for each in how or [scored] if each)


def others(plan: ContinualPlan) -> Sequence[tuple[str, str]]:
    """List what plays no role, with what it is: further conditions, then controls."""
    playing = {condition.name for condition in roles(plan).values()}
    found = [(each.name, _kind(each)) for each in plan.conditions if each.name not in playing]
    return [*found, *((each.name, f"control of {each.of}") for each in plan.controls)]


def _kind(condition: Condition) -> str:
    words = []
    if condition.mends is not None:
        words.append(f"to improve on {condition.mends}")
    if condition.distillation != "plain":
        words.append("distills by outcome")
    return ", ".join(words) or "another memory"


# Pairs ---------------------------------------------------------------------------------------

_WORLDS: Mapping[str, World] = {
    "alfworld": "ALFWorld",
    "alfworld-generated": "ALFWorld",
    "babyai": "BabyAI",
}


@dataclass(frozen=True)
class Side:
    """A pair of the study."""

    name: str
    """Folder of its own report."""
    analysis: Analysis
    world: World | None
    """The paper's world, where the paper has the same pair."""
    swapped: bool
    """Whether the paper's A is our B."""

    @property
    def generated(self) -> bool:
        """Whether its games were made here, and are not the paper's."""
        return self.analysis.generated

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return all(run.done == run.planned for run in self.analysis.study.runs)

    @property
    def sequences(self) -> tuple[str, ...]:
        """Its sequences of two tasks: the paper has no longer ones, nor has this page."""
        found = self.analysis.study.sequences
        return tuple(sequence for sequence in found if sequence.count(">") == 1)

    def theirs(self, letters: str) -> str:
        """Return a task or a sequence as the paper calls it."""
        return letters.translate(str.maketrans("AB", "BA")) if self.swapped else letters

    def row(self, direction: Direction, sequence: str, condition: str) -> Transfer | None:
        """Return a transfer of ours."""
        rows = self.analysis.rows(direction, sequence)
        return next((row for row in rows if row.condition == condition), None)

    def family(self, task: str) -> Family | None:
        """Return what Table 2 prints of a task."""
        if self.world is None:
            return None
        return continual_memory().table_2[self.world, "A" if self.theirs(task) == "A" else "B"]

    def forward(self, sequence: str, role: Role) -> Forward | None:
        """Return what Tables 3 and 5 print."""
        place, paper = self._place(sequence, role), continual_memory()
        return None if place is None else paper.table_3.get(place) or paper.table_5.get(place)

    def backward(self, sequence: str, role: Role, study: int) -> Backward | None:
        """Return what Table 4 prints for Study 1, and Table 6 for Study 2."""
        place, paper = self._place(sequence, role), continual_memory()
        table = paper.table_4 if study == 1 else paper.table_6
        return None if place is None else table.get(place)

    def _place(self, sequence: str, role: Role) -> Place | None:
        if self.world is None:
            return None
        return "A>B" if self.theirs(sequence) == "A>B" else "B>A", self.world, role


def side_of(name: str, analysis: Analysis) -> Side:
    """Set a pair beside the paper's."""
    worlds = {domain.partition("/")[0] for domain in analysis.domains.values()}
    families = {task: domain.partition("/")[2] for task, domain in analysis.domains.items()}
    world = _WORLDS.get(worlds.pop()) if len(worlds) == 1 else None
    if world is None:
        return Side(name, analysis, None, swapped=False)
    table = continual_memory().table_2
    printed: dict[str, str] = {task: table[world, task].domain for task in ("A", "B")}
    turned = {"A": printed["B"], "B": printed["A"]}
    if families not in (printed, turned):
        return Side(name, analysis, None, swapped=False)
    return Side(name, analysis, world, swapped=families == turned)
