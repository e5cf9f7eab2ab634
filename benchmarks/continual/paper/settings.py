"""Tables 7 and 8: who plays which condition, and the plan's hyperparameters beside the paper's."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.continual.csv_tables import Table
from langgraft.benchmarks.continual.paper.roles import departures, paper_condition, roles
from langgraft.benchmarks.continual.paper.tables import Cast
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.published import ROLES, Role, continual_memory
from langgraft.memory.providers import provider_settings

MEANINGS: Final[dict[Role, str]] = {
    "raw": "whole trajectories, one recalled at the start",
    "agg": "the lessons of an episode in one entry, one recalled at the start",
    "ind": "an entry for each lesson, three recalled at the start",
    "step": "as Cond-Ind, asked for again every four steps",
}
"""Table 7, in our words."""


@dataclass(frozen=True, slots=True)
class Played:
    """A condition of the paper, and what plays it."""

    role: str
    meaning: str
    condition: str
    provider: str
    differs: str
    """Settings that are not the paper's."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A hyperparameter: the paper's value, and the plan's."""

    name: str
    published: str
    ours: str

    @property
    def same(self) -> bool:
        """Whether both are one."""
        return self.published == self.ours


def table_7(plan: ContinualPlan) -> tuple[Played, ...]:
    """Return who plays what; a role that nobody plays has no condition."""
    cast = roles(plan)
    return tuple(_played(role, cast) for role in ROLES)


def _played(role: Role, cast: Cast) -> Played:
    condition = cast.get(role)
    if condition is None:
        return Played(ROLES[role], MEANINGS[role], "", "", "")
    found = departures(condition, paper_condition(role))
    told = "; ".join(f"{name}: {ours} for {wanted}" for name, (wanted, ours) in found.items())
    return Played(ROLES[role], MEANINGS[role], condition.name, condition.provider, told)


def table_8(plan: ContinualPlan) -> tuple[Setting, ...]:
    """Return the hyperparameters, in the paper's order; those it does not have come last."""
    return tuple(_settings(plan))


def _settings(plan: ContinualPlan) -> Iterator[Setting]:
    theirs = continual_memory().table_8
    yield Setting("model", theirs.model, plan.model)
    yield Setting("training instances a phase", str(theirs.train_items), str(plan.train_items))
    yield Setting("test instances a task", str(theirs.test_items), str(plan.test_items))
    yield Setting("runs", str(theirs.runs), str(plan.runs))
    yield Setting("seed", str(theirs.seed), str(plan.seed))
    yield Setting(
        "evaluation workers", str(theirs.workers), "any number: results do not depend on it"
    )
    yield Setting("milestones", str(theirs.milestones), str(plan.milestones))
    yield Setting("most tokens a reply", str(theirs.max_tokens), str(plan.max_tokens))
    yield Setting("temperature", str(theirs.temperature), f"{plan.temperature:g}")
    cast = roles(plan)
    for role in ROLES:
        top_k = str(paper_condition(role).settings["top_k"])
        yield Setting(f"top-k, {ROLES[role]}", top_k, _of(cast, role, "top_k"))
    every = str(theirs.requery_interval)
    yield Setting(
        "steps between retrievals, Cond-Step", every, _of(cast, "step", "requery_interval")
    )
    for role in ROLES:
        name = f"successful episodes only, {ROLES[role]}"
        yield Setting(
            name, str(theirs.success_only).lower(), _of(cast, role, "success_only").lower()
        )
    yield Setting("retrieval, Raw", theirs.retrieval, _of(cast, "raw", "ranker"))
    yield Setting("runs without memory", "not printed", str(plan.baseline_runs))
    yield Setting("re-run without memory", "none", "yes" if plan.rerun else "none")
    unlimited = "no limit" if plan.memory_tokens is None else str(plan.memory_tokens)
    yield Setting("tokens of recalled text", "not printed", unlimited)
    for part in plan.parts.values():
        tasks = f"{part.tasks.A}, {part.tasks.B}"
        yield Setting(f"rules of {tasks}", "not printed", part.semantics)


def _of(cast: Cast, role: Role, name: str) -> str:
    """Return a setting of the condition that plays a role, its defaults included."""
    condition = cast.get(role)
    if condition is None:
        return "not in this plan"
    value = getattr(provider_settings(condition.provider, condition.settings), name)
    return str(value) if isinstance(value, int | str) else type(value).__name__


def settings_tables(plan: ContinualPlan) -> tuple[Table, Table]:
    """Return both as CSV."""
    played = tuple(
        (row.role, row.condition, row.provider, row.differs, row.meaning) for row in table_7(plan)
    )
    settings = tuple((row.name, row.published, row.ours) for row in table_8(plan))
    return (
        Table("table_7", ("role", "condition", "provider", "differs", "meaning"), played),
        Table("table_8", ("setting", "published", "ours"), settings),
    )
