"""From the log of a study to everything its report says, and nothing from anywhere else.

Each agent is analyzed by itself: whether memory helps a tree and whether it helps a chain are two
questions, each with its own family of tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.measures import (
    MeasureContrast,
    Measured,
    Roles,
    compare_measures,
)
from langgraft.benchmarks.comparison.verdicts import Gate
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.mle.behaviour.runs import Share
from langgraft.benchmarks.mle.gates import gates
from langgraft.benchmarks.mle.measures import measured
from langgraft.benchmarks.mle.memory_use import (
    MemoryUse,
    Used,
    memory_use,
    recurrences,
    used,
)
from langgraft.benchmarks.mle.outcomes import (
    Curve,
    Endings,
    Outcomes,
    curves,
    endings,
    outcomes,
)
from langgraft.benchmarks.mle.relations import (
    ModalityDelta,
    Relation,
    Sides,
    TaskDelta,
    modality_deltas,
    relations,
    sides,
    task_deltas,
)
from langgraft.benchmarks.mle.searches import ROLES, Searches, agents_of, read_searches


@dataclass(frozen=True)
class Analysis:
    """What the runs of one agent show."""

    searches: Searches
    manifest: Mapping[str, JSON]
    outcomes: tuple[Outcomes, ...]
    measured: Mapping[str, Measured]
    """Measures by name; those of the declared family first."""
    contrasts: tuple[MeasureContrast, ...]
    curves: tuple[Curve, ...]
    relations: tuple[Relation, ...]
    tasks: tuple[TaskDelta, ...]
    modalities: tuple[ModalityDelta, ...]
    sides: tuple[Sides, ...]
    memory: tuple[MemoryUse, ...]
    endings: tuple[Endings, ...]
    """Of a step agent; empty for others."""
    used: tuple[Used, ...]
    recurrences: Mapping[tuple[str, str], Share]
    gates: tuple[Gate, ...]

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.searches.agent

    def contrast(self, condition: str, measure: str) -> MeasureContrast:
        """Return one contrast."""
        return next(
            each
            for each in self.contrasts
            if (each.condition, each.measure.name) == (condition, measure)
        )


def analyze(log: PlanLogReader, roles: Roles = ROLES, *, agent: str | None = None) -> Analysis:
    """Analyze the runs of one agent in a log, finished or under way.

    Args:
        log: What has been committed.
        roles: Which condition is without memory, and which are controls.
        agent: Whose runs; `None`: those of the only agent there is.

    Raises:
        InputError: No agent is named, and there are several.
        MissingExtraError: The extra `bench` is not installed.
    """
    searches = read_searches(log, roles, agent=agent)
    by = measured(searches)
    compared = compare_measures(list(by.values()))
    return Analysis(
        searches=searches,
        manifest=log.manifest,
        outcomes=outcomes(searches),
        measured=by,
        contrasts=compared,
        curves=curves(searches),
        relations=relations(searches, by),
        tasks=task_deltas(searches, by),
        modalities=modality_deltas(searches, by),
        sides=sides(searches, by),
        memory=memory_use(searches, log),
        endings=endings(searches),
        used=used(searches),
        recurrences=recurrences(searches),
        gates=gates(searches, compared),
    )


def analyze_agents(log: PlanLogReader, roles: Roles = ROLES) -> tuple[Analysis, ...]:
    """Analyze every agent of a log by itself, in the plan's order.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    found = tuple(analyze(log, roles, agent=agent) for agent in agents_of(log))
    return found or (analyze(log, roles),)
