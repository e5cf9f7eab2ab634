"""The runs of a study as its log has them, each measured, those of each agent apart.

A tree's run is a search and has a journal; a step agent's has its steps. Agents meet the same
competitions with the same seeds: nothing here ever holds the runs of two of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, cast

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.benchmarks.comparison.measures import Roles
from langgraft.benchmarks.comparison.outcomes import Pair
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.benchmarks.mle.behaviour.runs import EARLY, RunBehavior
from langgraft.benchmarks.mle.behaviour.steps import StepBehavior, measure_steps
from langgraft.benchmarks.mle.behaviour.trees import TreeBehavior, measure
from langgraft.benchmarks.mle.conditions import BUILD
from langgraft.benchmarks.mle.plan import competition_of, condition_of, seed_of
from langgraft.nodes.search.journal import Journal, JournalNode
from langgraft.nodes.workbench.log import StepRecord

TREE: Final = "tree"

Kind: TypeAlias = Literal["tree", "chain", "mlab"]
"""What is measured of an agent: `tree` has journals, the others have steps, `chain` also issues
commands as code."""

RUNS: Final[Mapping[Kind, tuple[str, str]]] = {
    "tree": ("search", "searches"),
    "chain": ("run", "runs"),
    "mlab": ("run", "runs"),
}
"""What a run of an agent is called, and several."""

UNKNOWN: Final = "not stated"
"""Modality or metric group of a competition that states none."""

ROLES: Final = Roles()
"""Roles by the names that plans have ready."""


@dataclass(frozen=True)
class Search:
    """One run that ended."""

    spec: RunSpec
    condition: str
    competition: str
    seed: int
    modality: str
    metric_group: str
    metric: str
    """Name of the grader."""
    lower_is_better: bool
    validation: float | None
    """The validation metric of what was handed in, in the metric's own direction."""
    report: Mapping[str, JSON]
    """What the submission earned, by the fields that `mlebench grade` writes."""
    submission_sha256: str
    behavior: RunBehavior

    @property
    def pair(self) -> Pair:
        """What it is compared by: its competition and its seed."""
        return self.competition, self.seed


@dataclass(frozen=True)
class TreeSearch(Search):
    """One run of a tree agent."""

    behavior: TreeBehavior
    journal: Journal
    chosen: str
    """Id of the program whose submission was handed in; empty: none was."""


@dataclass(frozen=True)
class StepRun(Search):
    """One run of an agent that works step by step."""

    behavior: StepBehavior
    ended: str
    """Why it ended: `finished`, `steps`, `stuck: <rule>` …"""
    attempts: int


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
        return tuple(filter(self.roles.is_memory, self.conditions))

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

    def planned_pairs(self, condition: str, competition: str | None = None) -> frozenset[Pair]:
        """Return competition and seed of each search of a condition that the plan has."""
        return frozenset(
            (competition_of(spec), seed_of(spec))
            for spec in self.planned
            if condition_of(spec) == condition and competition in {None, competition_of(spec)}
        )

    @property
    def complete(self) -> bool:
        """Whether every run of the plan has its result."""
        return len(self.done) == len(self.planned) and self.builds_done == len(self.builds)

    def censored(self, condition: str) -> int:
        """Count the searches without any valid program: of the first one, a lower bound is known."""
        return sum(each.behavior.first_valid.censored for each in self.of(condition))


def agent_of(spec: RunSpec) -> str:
    """Return the agent of a run; plans of before had the tree alone."""
    return str(spec.factors.get("agent") or TREE)


def agents_of(log: PlanLogReader) -> tuple[str, ...]:
    """Return the agents of a study, in the plan's order."""
    return tuple(dict.fromkeys(map(agent_of, log.runs)))


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
    sizes = [
        ("journal" in result, _length(result))
        for spec in planned
        for result in log.results(spec.name)
    ]
    kind = _kind(name, [has_journal for has_journal, _ in sizes])
    longest = max((steps for _, steps in sizes), default=0)
    make = _tree_search if kind == TREE else _step_run
    elsewhere = {condition_of(spec) for spec in log.runs} - set(map(condition_of, planned))
    return Searches(
        agent=name,
        kind=kind,
        planned=planned,
        builds=builds,
        done=tuple(
            make(spec, result, longest) for spec in planned for result in log.results(spec.name)
        ),
        builds_done=_ended(builds, log),
        split=late_from(longest),
        roles=roles.without(elsewhere),
    )


def _only(agents: tuple[str, ...]) -> str:
    if len(agents) > 1:
        msg = f"the log has runs of {', '.join(agents)}; name the agent that is meant"
        raise InputError(msg)
    return agents[0] if agents else TREE


def _length(result: Mapping[str, JSON]) -> int:
    return len(cast("list[JSON]", result["journal"] if "journal" in result else result["steps"]))


def _kind(agent: str, journals: Sequence[bool]) -> Kind:
    """Return what is measured of an agent; what it left says more than what it is called."""
    if any(journals):
        return "tree"
    name = agent.partition("-")[0]
    if name == "mlab":
        return "mlab"
    return "tree" if name == TREE and not journals else "chain"


def _ended(specs: Iterable[RunSpec], log: PlanLogReader) -> int:
    return sum(len(log.results(spec.name)) >= spec.length for spec in specs)


def late_from(longest: int) -> int:
    """Return the first late step of searches of some length.

    It is 10, as in the paper's Tables 7 and 9, whose runs have 30 steps and more; searches of less
    than 20 steps are split in the middle, as they would hardly have a late phase.
    """
    return EARLY if longest >= 2 * EARLY else (longest + 1) // 2


def _tree_search(spec: RunSpec, result: Mapping[str, JSON], longest: int) -> TreeSearch:
    """Measure a run that has a journal; `longest` is the length of its agent's longest run."""
    nodes = tuple(map(JournalNode.model_validate, cast("list[JSON]", result["journal"])))
    journal = Journal(spec.name, competition_of(spec), nodes)
    lower = bool(result["lower_is_better"])
    return TreeSearch(
        **_common(spec, result),
        behavior=measure(journal, lower_is_better=lower, split=late_from(longest)),
        journal=journal,
        chosen=str(result.get("chosen") or ""),
    )


def _step_run(spec: RunSpec, result: Mapping[str, JSON], longest: int) -> StepRun:
    """Measure a run that has steps; `longest` is the length of its agent's longest run."""
    steps = tuple(map(StepRecord.model_validate, cast("list[JSON]", result["steps"])))
    return StepRun(
        **_common(spec, result),
        behavior=measure_steps(
            steps,
            lower_is_better=bool(result["lower_is_better"]),
            split=late_from(longest),
            longest=longest,
        ),
        ended=str(result.get("ended") or UNKNOWN),
        attempts=int(cast("int", result["attempts"])),
    )


def _common(spec: RunSpec, result: Mapping[str, JSON]) -> dict[str, Any]:
    return {
        "spec": spec,
        "condition": condition_of(spec),
        "competition": competition_of(spec),
        "seed": seed_of(spec),
        "modality": str(result.get("modality") or UNKNOWN),
        "metric_group": str(result.get("metric_group") or UNKNOWN),
        "metric": str(result["metric"]),
        "lower_is_better": bool(result["lower_is_better"]),
        "validation": result.get("validation"),
        "report": result["report"],
        "submission_sha256": str(result.get("submission_sha256") or ""),
    }
