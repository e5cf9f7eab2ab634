"""One run that ended, as its result in the log has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.mle.behaviour.errors import EARLY
from langgraft.benchmarks.mle.behaviour.run import RunBehavior
from langgraft.benchmarks.mle.behaviour.step_summary import StepBehavior, measure_steps
from langgraft.benchmarks.mle.behaviour.summary import Behavior, measure
from langgraft.benchmarks.mle.runs import competition_of, condition_of, seed_of
from langgraft.nodes.search.journal import Journal, JournalNode
from langgraft.nodes.workbench.projection import StepRecord

UNKNOWN: Final = "not stated"
"""Modality or metric group of a competition that states none."""


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


@dataclass(frozen=True)
class TreeSearch(Search):
    """One run of a tree agent."""

    behavior: Behavior
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


def late_from(longest: int) -> int:
    """Return the first late step of searches of some length.

    It is 10, as in the paper's Tables 7 and 9, whose runs have 30 steps and more; searches of less
    than 20 steps are split in the middle, as they would hardly have a late phase.
    """
    return EARLY if longest >= 2 * EARLY else (longest + 1) // 2


def length_of(result: Mapping[str, JSON]) -> int:
    """Return how many steps a run's result has."""
    return len(cast("list[JSON]", result["journal"] if "journal" in result else result["steps"]))


def tree_search(spec: RunSpec, result: Mapping[str, JSON], longest: int) -> TreeSearch:
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


def step_run(spec: RunSpec, result: Mapping[str, JSON], longest: int) -> StepRun:
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
