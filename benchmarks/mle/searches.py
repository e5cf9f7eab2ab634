"""The searches of a study as its log has them: one run, one search, one journal."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.benchmarks.mle.behaviour.errors import EARLY
from langgraft.benchmarks.mle.behaviour.summary import Behavior, measure
from langgraft.benchmarks.mle.conditions import BUILD
from langgraft.benchmarks.mle.runs import competition_of, condition_of, seed_of
from langgraft.nodes.search.journal import Journal, JournalNode


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

    @property
    def controls(self) -> frozenset[str]:
        """Conditions that are no memory: beside the family, never in it."""
        return frozenset((*self.reruns, *self.placebos, *self.others))


ROLES: Final = Roles()
"""Roles by the names that plans have ready."""

UNKNOWN: Final = "not stated"
"""Modality or metric group of a competition that states none."""


@dataclass(frozen=True)
class Search:
    """One search that ended."""

    spec: RunSpec
    condition: str
    competition: str
    seed: int
    modality: str
    metric_group: str
    metric: str
    """Name of the grader."""
    lower_is_better: bool
    journal: Journal
    chosen: str
    """Id of the program whose submission was handed in; empty: none was."""
    validation: float | None
    """Its validation metric, in the metric's own direction."""
    report: Mapping[str, JSON]
    """What the submission earned, by the fields that `mlebench grade` writes."""
    submission_sha256: str
    behavior: Behavior


@dataclass(frozen=True)
class Searches:
    """All searches of a study, those that are still missing included."""

    planned: tuple[RunSpec, ...]
    """Runs that count: all but those that build banks."""
    builds: tuple[RunSpec, ...]
    done: tuple[Search, ...]
    builds_done: int
    split: int
    """The first late step."""
    roles: Roles = ROLES

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


def late_from(longest: int) -> int:
    """Return the first late step of searches of some length.

    It is 10, as in the paper's Tables 7 and 9, whose runs have 30 steps and more; searches of less
    than 20 steps are split in the middle, as they would hardly have a late phase.
    """
    return EARLY if longest >= 2 * EARLY else (longest + 1) // 2


def read_searches(log: PlanLogReader, roles: Roles = ROLES) -> Searches:
    """Read all searches that ended."""
    builds = tuple(spec for spec in log.runs if spec.factors.get("phase") == BUILD)
    planned = tuple(spec for spec in log.runs if spec.factors.get("phase") != BUILD)
    found = [(spec, result) for spec in planned for result in log.results(spec.name)]
    journals = {spec.name: _journal(spec, result) for spec, result in found}
    split = late_from(max((len(each.nodes) for each in journals.values()), default=0))
    done = tuple(_search(spec, result, journals[spec.name], split) for spec, result in found)
    return Searches(planned, builds, done, _ended(builds, log), split, roles)


def _ended(specs: Iterable[RunSpec], log: PlanLogReader) -> int:
    return sum(len(log.results(spec.name)) >= spec.length for spec in specs)


def _journal(spec: RunSpec, result: Mapping[str, JSON]) -> Journal:
    nodes = cast("list[JSON]", result["journal"])
    return Journal(spec.name, competition_of(spec), tuple(map(JournalNode.model_validate, nodes)))


def _search(spec: RunSpec, result: Mapping[str, JSON], journal: Journal, split: int) -> Search:
    lower = bool(result["lower_is_better"])
    return Search(
        spec=spec,
        condition=condition_of(spec),
        competition=competition_of(spec),
        seed=seed_of(spec),
        modality=str(result.get("modality") or UNKNOWN),
        metric_group=str(result.get("metric_group") or UNKNOWN),
        metric=str(result["metric"]),
        lower_is_better=lower,
        journal=journal,
        chosen=str(result.get("chosen") or ""),
        validation=cast("float | None", result.get("validation")),
        report=cast("Mapping[str, JSON]", result["report"]),
        submission_sha256=str(result.get("submission_sha256") or ""),
        behavior=measure(journal, lower_is_better=lower, split=split),
    )
