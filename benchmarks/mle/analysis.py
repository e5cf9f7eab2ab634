"""From the log of a study to everything its report says, and nothing from anywhere else.

Each agent is analyzed by itself: whether memory helps a tree and whether it helps a chain are two
questions, each with its own family of tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison import verdicts
from langgraft.benchmarks.comparison.measures import (
    MeasureContrast,
    Measured,
    Roles,
    compare_measures,
)
from langgraft.benchmarks.comparison.verdicts import NAMED, SIGNIFICANCE, Gate
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.mle.behaviour.runs import Share
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
from langgraft.benchmarks.mle.searches import ROLES, RUNS, TREE, Searches, agents_of, read_searches
from langgraft.benchmarks.reporting.words import measured_change


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


# Checks that only this study can make --------------------------------------------------------


WATCHED: Final = ("bug_rate", "first_valid", "best_metric", "any_medal")
"""Measures by which a control must not look like a memory."""

RATES: Final = ("bug_rate", "any_medal")
"""Those of them of which equivalence is asked: rates, whose margin is the plan's."""


def gates(searches: Searches, found: Sequence[MeasureContrast]) -> tuple[Gate, ...]:
    """Make all checks of one agent.

    Whether lengths are equal is a question for trees: other agents end their runs themselves, and
    how long these were is one of their findings.
    """
    roles = searches.roles
    return (
        completeness(searches),
        *((equal_lengths(searches),) if searches.kind == TREE else ()),
        *(
            _control(f"{name} does not help", name, searches, found, wrong="better")
            for name in roles.placebos
        ),
        *(_control(f"A/A: {name}", name, searches, found, wrong="either") for name in roles.reruns),
    )


def completeness(searches: Searches) -> Gate:
    """Check that every planned search ended, and every bank is made."""
    done = {search.spec.name for search in searches.done}
    missing = [spec.name for spec in searches.planned if spec.name not in done]
    detail = (
        f"{len(searches.done)} of {len(searches.planned)} {RUNS[searches.kind][1]} ended;"
        f" {searches.builds_done} of {len(searches.builds)} banks are made."
    )
    return verdicts.completeness(detail, missing)


def equal_lengths(searches: Searches) -> Gate:
    """Check that paired searches have equally many steps, without which totals do not compare."""
    name = "Equal lengths"
    steps: dict[tuple[str, int], set[int]] = {}
    for each in searches.done:
        steps.setdefault(each.pair, set()).add(each.behavior.steps)
    if not steps:
        return Gate(name, "open", "No search ended yet.")
    unequal = [f"{task}, seed {seed}" for (task, seed), found in steps.items() if len(found) > 1]
    if not unequal:
        return Gate(name, "passed", f"Equally many steps within each of {len(steps)} pairings.")
    named = "; ".join(unequal[:NAMED])
    return Gate(name, "failed", f"Steps differ in {len(unequal)} of {len(steps)}: {named}.")


def _control(
    name: str,
    condition: str,
    searches: Searches,
    found: Sequence[MeasureContrast],
    *,
    wrong: Literal["better", "either"],
) -> Gate:
    """Check that a control is equivalent to no memory, or at least does not help.

    Each measure is tested on these competitions with other seeds where that is possible, which
    is the sharper test. A difference fails the gate, by Bonferroni, as one false alarm in the gate is one
    too many; it is passed where rates are equivalent within the plan's margin (two one-sided tests),
    or the same in every pair.
    """
    own = [each for each in found if each.condition == condition and each.measure.name in WATCHED]
    known = [(each, each.sharpest) for each in own if each.sharpest is not None]
    if not known:
        return Gate(
            name, "open", "The plan has no such condition, or nothing to pair it with ended yet."
        )
    told = "; ".join(
        f"{each.measure.label} {measured_change(estimate, each.measure, runs='seeds')}, n = {each.pairs}"
        for each, estimate in known
    )
    if not all(each.complete for each in own):
        return Gate(name, "open", f"{told}. Incomplete.")
    bad = [
        each.measure.label
        for each, estimate in known
        if estimate.p * len(known) < SIGNIFICANCE
        and (wrong == "either" or each.measure.improves(estimate))
    ]
    if bad:
        return Gate(name, "failed", f"{told}. Beyond chance: {', '.join(bad)}.")
    margin = searches.roles.margin
    loose = [
        each.measure.label
        for each, estimate in known
        if each.measure.name in RATES
        and not (estimate.method == "exact" and not estimate.value)
        and estimate.p_beyond(margin) >= SIGNIFICANCE
    ]
    if loose:
        words = f"Not shown to be equivalent within ±{100 * margin:.0f} points: {', '.join(loose)}."
        return Gate(name, "open", f"{told}. {words}")
    return Gate(name, "passed", f"{told}. Equivalent within ±{100 * margin:.0f} points.")
