"""The runs of a study as its log has them, those of each agent apart.

A tree's run is a search and has a journal; a step agent's has its steps. Agents meet the same
competitions with the same seeds: nothing here ever holds the runs of two of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.benchmarks.comparison.verdicts import MARGIN
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.benchmarks.mle.conditions import BUILD
from langgraft.benchmarks.mle.run_record import (
    Search,
    StepRun,
    TreeSearch,
    late_from,
    length_of,
    step_run,
    tree_search,
)
from langgraft.benchmarks.mle.runs import competition_of, condition_of

TREE: Final = "tree"

Kind: TypeAlias = Literal["tree", "chain", "mlab"]
"""What is measured of an agent: `tree` has journals, the others have steps, `chain` also issues
commands as code."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What conditions are to a comparison; the rest are memories."""

    baseline: str = "off"
    """The condition without memory, which all others are compared with."""
    reruns: tuple[str, ...] = ("rerun",)
    """Without memory once more, with other samples: what chance alone does."""
    placebos: tuple[str, ...] = ("placebo",)
    """Memories that know nothing of use."""
    others: tuple[str, ...] = ("shuffled", "random")
    """Other controls: a true memory's entries, out of place."""
    margin: float = MARGIN
    """Difference in a rate up to which a control counts as equivalent to no memory."""

    @property
    def controls(self) -> frozenset[str]:
        """Conditions that are no memory: beside the family, never in it."""
        return frozenset((*self.reruns, *self.placebos, *self.others))

    def without(self, names: AbstractSet[str]) -> "Roles":
        """Return the roles without some controls: an agent may have some of a plan's conditions."""

        def kept(role: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for name in role if name not in names)

        return replace(
            self,
            reruns=kept(self.reruns),
            placebos=kept(self.placebos),
            others=kept(self.others),
        )


ROLES: Final = Roles()
"""Roles by the names that plans have ready."""


@dataclass(frozen=True)
class Searches:
    """All runs of one agent in a study, those that are still missing included."""

    agent: str
    kind: Kind
    planned: tuple[RunSpec, ...]
    """Runs that count: all but those that build banks."""
    builds: tuple[RunSpec, ...]
    done: tuple[Search, ...]
    builds_done: int
    split: int
    """The first late step."""
    roles: Roles = ROLES

    @property
    def trees(self) -> tuple[TreeSearch, ...]:
        """The runs that have a journal."""
        return tuple(each for each in self.done if isinstance(each, TreeSearch))

    @property
    def step_runs(self) -> tuple[StepRun, ...]:
        """The runs that have steps."""
        return tuple(each for each in self.done if isinstance(each, StepRun))

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The conditions, in the plan's order; without memory first, controls last."""
        found = list(dict.fromkeys(map(condition_of, self.planned)))
        controls = self.roles.controls
        return tuple(sorted(found, key=lambda name: (name != self.baseline, name in controls)))

    @property
    def baseline(self) -> str:
        """The condition that the others are compared with."""
        return self.roles.baseline

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """The conditions that are compared with the baseline."""
        return tuple(name for name in self.conditions if name != self.baseline)

    @cached_property
    def memories(self) -> tuple[str, ...]:
        """The conditions that are a memory."""
        return tuple(name for name in self.compared if name not in self.roles.controls)

    @cached_property
    def competitions(self) -> tuple[str, ...]:
        """The competitions, in the plan's order."""
        return tuple(dict.fromkeys(map(competition_of, self.planned)))

    @cached_property
    def metric_groups(self) -> tuple[str, ...]:
        """The metric groups of the searches that ended."""
        return tuple(sorted({search.metric_group for search in self.done}))

    @cached_property
    def longest(self) -> int:
        """Steps of the longest search."""
        return max((search.behavior.steps for search in self.done), default=0)

    def of(self, condition: str, competition: str | None = None) -> tuple[Search, ...]:
        """Return the searches of a condition, of one competition or of all."""
        return tuple(
            search
            for search in self.done
            if search.condition == condition and competition in {None, search.competition}
        )

    def n_planned(self, condition: str, competition: str | None = None) -> int:
        """Return how many searches of a condition the plan has."""
        return sum(
            condition_of(spec) == condition and competition in {None, competition_of(spec)}
            for spec in self.planned
        )

    @property
    def complete(self) -> bool:
        """Whether every run of the plan has its result."""
        return len(self.done) == len(self.planned) and self.builds_done == len(self.builds)


def agent_of(spec: RunSpec) -> str:
    """Return the agent of a run; plans of before had the tree alone."""
    return str(spec.factors.get("agent") or TREE)


def agents_of(log: PlanLogReader) -> tuple[str, ...]:
    """Return the agents of a study, in the plan's order."""
    return tuple(dict.fromkeys(map(agent_of, log.runs)))


def by_agent(log: PlanLogReader, roles: Roles = ROLES) -> dict[str, Searches]:
    """Read all runs that ended, those of each agent by themselves."""
    return {agent: read_searches(log, roles, agent=agent) for agent in agents_of(log)}


def read_searches(
    log: PlanLogReader, roles: Roles = ROLES, *, agent: str | None = None
) -> Searches:
    """Read the runs of one agent that ended.

    Args:
        log: What has been committed.
        roles: What conditions are to each other.
        agent: Whose runs; `None`: those of the only agent there is.

    Raises:
        InputError: No agent is named, and there are several.
    """
    name = agent if agent is not None else _only(agents_of(log))
    specs = [spec for spec in log.runs if agent_of(spec) == name]
    builds = tuple(spec for spec in specs if spec.factors.get("phase") == BUILD)
    planned = tuple(spec for spec in specs if spec.factors.get("phase") != BUILD)
    # Results are read twice, one at a time: all steps of all runs at once may be gigabytes.
    sizes = [_size(result) for spec in planned for result in log.results(spec.name)]
    kind = _kind(name, sizes)
    longest = max((size.steps for size in sizes), default=0)
    make = tree_search if kind == TREE else step_run
    done = tuple(
        make(spec, result, longest) for spec in planned for result in log.results(spec.name)
    )
    split = late_from(longest)
    elsewhere = {condition_of(spec) for spec in log.runs} - set(map(condition_of, planned))
    own = roles.without(elsewhere)
    return Searches(name, kind, planned, builds, done, _ended(builds, log), split, own)


class _Size(NamedTuple):
    has_journal: bool
    steps: int


def _size(result: Mapping[str, JSON]) -> _Size:
    return _Size("journal" in result, length_of(result))


def _only(agents: tuple[str, ...]) -> str:
    if len(agents) > 1:
        msg = f"the log has runs of {', '.join(agents)}; name the agent that is meant"
        raise InputError(msg)
    return agents[0] if agents else TREE


def _kind(agent: str, sizes: Sequence[_Size]) -> Kind:
    """Return what is measured of an agent; what it left says more than what it is called."""
    if any(size.has_journal for size in sizes):
        return "tree"
    if agent == "mlab":
        return "mlab"
    return "tree" if agent == TREE and not sizes else "chain"


def _ended(specs: Iterable[RunSpec], log: PlanLogReader) -> int:
    return sum(len(log.results(spec.name)) >= spec.length for spec in specs)
