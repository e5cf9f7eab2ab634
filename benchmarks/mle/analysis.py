"""From the log of a tree study to everything its report says, and nothing from anywhere else."""

from collections.abc import Mapping
from dataclasses import dataclass

from langgraft._core.canonical import JSON
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.mle.behaviour.retrievals import Share
from langgraft.benchmarks.mle.contrasts import Contrast, Level, contrasts, levels
from langgraft.benchmarks.mle.curves import Curve, curves
from langgraft.benchmarks.mle.gates import Gate, gates
from langgraft.benchmarks.mle.measures import MEASURES, Measure
from langgraft.benchmarks.mle.memory_use import MemoryUse, Used, memory_use, recurrences, used
from langgraft.benchmarks.mle.outcomes import Outcomes, outcomes
from langgraft.benchmarks.mle.relations import (
    ModalityDelta,
    Relation,
    TaskDelta,
    modality_deltas,
    relations,
    task_deltas,
)
from langgraft.benchmarks.mle.searches import ROLES, Roles, Searches, read_searches


@dataclass(frozen=True)
class Analysis:
    """What a tree study shows."""

    searches: Searches
    manifest: Mapping[str, JSON]
    outcomes: tuple[Outcomes, ...]
    levels: tuple[tuple[Measure, tuple[Level, ...]], ...]
    contrasts: tuple[Contrast, ...]
    curves: tuple[Curve, ...]
    relations: tuple[Relation, ...]
    tasks: tuple[TaskDelta, ...]
    modalities: tuple[ModalityDelta, ...]
    memory: tuple[MemoryUse, ...]
    used: tuple[Used, ...]
    recurrences: Mapping[tuple[str, str], Share]
    gates: tuple[Gate, ...]

    def contrast(self, condition: str, measure: str) -> Contrast:
        """Return one contrast."""
        return next(
            each
            for each in self.contrasts
            if (each.condition, each.measure.name) == (condition, measure)
        )

    def level(self, measure: str) -> tuple[Level, ...]:
        """Return a measure under every condition."""
        return next(found for each, found in self.levels if each.name == measure)


def analyze(log: PlanLogReader, roles: Roles = ROLES) -> Analysis:
    """Analyze a log, finished or under way.

    Args:
        log: What has been committed.
        roles: Which condition is without memory, and which are controls.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    searches = read_searches(log, roles)
    compared = contrasts(searches)
    tasks = task_deltas(searches)
    return Analysis(
        searches=searches,
        manifest=log.manifest,
        outcomes=outcomes(searches),
        levels=tuple((measure, levels(searches, measure)) for measure in MEASURES),
        contrasts=compared,
        curves=curves(searches),
        relations=relations(searches),
        tasks=tasks,
        modalities=modality_deltas(tasks),
        memory=memory_use(searches, log),
        used=used(searches),
        recurrences=recurrences(searches),
        gates=gates(searches, compared),
    )
