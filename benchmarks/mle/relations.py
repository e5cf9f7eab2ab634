"""What changed in tasks and modalities, and whether fewer bugs go with a better result (§4.3, §4.5)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from langgraft._core.extras import require
from langgraft.benchmarks.comparison.estimates import Estimate, fixed_items_estimate
from langgraft.benchmarks.comparison.outcomes import (
    Pair,
    Spread,
    item_means,
    rows_of,
    spread_of,
)
from langgraft.benchmarks.comparison.verdicts import CONFIDENCE
from langgraft.benchmarks.mle.contrasts import differences, values_of
from langgraft.benchmarks.mle.measure import Measure
from langgraft.benchmarks.mle.measures import measure_named
from langgraft.benchmarks.mle.run_set import Searches

SAME: Final = 1e-9
"""Changes of a task's mean below this are none."""

SHOWN: Final = ("bug_rate", "first_valid", "best_metric", "any_medal")
"""Measures that are shown task by task."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r with its interval."""

    r: float | None
    """`None` where fewer than three points vary in both."""
    low: float
    high: float
    n: int


def pearson(xs: Sequence[float], ys: Sequence[float]) -> Correlation:
    """Correlate two lists; the interval is Fisher's (1921), and needs four points."""
    n = len(xs)
    # Two points always lie on a line, and rounding of equal means is no spread.
    if n < 3 or min(np.ptp(xs), np.ptp(ys)) < SAME:  # noqa: PLR2004
        return Correlation(None, -1.0, 1.0, n)
    stats: Any = require("scipy.stats", extra="bench", purpose="The analysis")
    found = stats.pearsonr(xs, ys)
    if abs(found.statistic) > 1 - SAME:
        return Correlation(float(found.statistic), -1.0, 1.0, n)
    low, high = map(float, found.confidence_interval(CONFIDENCE))
    return Correlation(float(found.statistic), low, high, n)


@dataclass(frozen=True, slots=True)
class Relation:
    """Bug reduction and final metric of a condition against no memory."""

    condition: str
    by_task: Correlation
    """Over competitions, each the mean of its seeds: the paper's r = 0.21 over 22."""
    by_pair: Correlation
    """Over pairs of competition and seed, which are not independent within a competition."""
    up: int
    """Competitions whose final metric is better in the mean."""
    down: int
    same: int
    undefined: int
    """Competitions without a pair in which both searches have a valid program."""


def relations(searches: Searches) -> tuple[Relation, ...]:
    """Relate bug reduction to the change of the best validation metric, for every condition."""
    return tuple(_relation(searches, name) for name in searches.compared)


def _relation(searches: Searches, condition: str) -> Relation:
    bugs, final = (
        differences(searches, condition, measure_named(searches, name))
        for name in ("bug_rate", "best_metric")
    )
    both = [
        (pair, -less, change)
        for pair, less in sorted(bugs.items())
        if less is not None and (change := final[pair]) is not None
    ]
    reduced = item_means({pair: less for pair, less, _ in both})
    changed = item_means({pair: change for pair, _, change in both})
    return Relation(
        condition=condition,
        by_task=pearson(list(reduced.values()), list(changed.values())),
        by_pair=pearson([less for _, less, _ in both], [change for *_, change in both]),
        up=sum(change > SAME for change in changed.values()),
        down=sum(change < -SAME for change in changed.values()),
        same=sum(abs(change) <= SAME for change in changed.values()),
        undefined=len({name for name, _ in bugs} - set(changed)),
    )


@dataclass(frozen=True, slots=True)
class TaskDelta:
    """What a condition changed in one competition."""

    competition: str
    modality: str
    condition: str
    deltas: Mapping[str, Spread | None]
    """By measure of `SHOWN`: mean over seeds of condition less no memory."""
    searches: int
    planned: int


def task_deltas(searches: Searches) -> tuple[TaskDelta, ...]:
    """Return what every condition changed in every competition."""
    return tuple(
        TaskDelta(
            competition=competition,
            modality=modality_of(searches, competition),
            condition=condition,
            deltas=_deltas(searches, condition, {competition}, by_task=False),
            searches=len(searches.of(condition, competition)),
            planned=searches.n_planned(condition, competition),
        )
        for competition in searches.competitions
        for condition in searches.compared
    )


def _deltas(
    searches: Searches, condition: str, tasks: Collection[str], *, by_task: bool
) -> dict[str, Spread | None]:
    found = {
        name: differences(searches, condition, measure_named(searches, name)) for name in SHOWN
    }
    return {name: _spread(_known(each, tasks), by_task=by_task) for name, each in found.items()}


def _known(values: Mapping[Pair, float | None], tasks: Collection[str]) -> dict[Pair, float]:
    """Return the values of some tasks that are defined."""
    return {pair: value for pair, value in values.items() if value is not None and pair[0] in tasks}


def _spread(values: Mapping[Pair, float], *, by_task: bool) -> Spread | None:
    """Return mean and error over the values, or over the means of their tasks."""
    return spread_of(item_means(values).values() if by_task else values.values())


def modality_of(searches: Searches, competition: str) -> str:
    """Return the modality of a competition; empty while no run of it ended."""
    found = (each.modality for each in searches.done if each.competition == competition)
    return next(found, "")


def _modalities(searches: Searches) -> dict[str, tuple[str, ...]]:
    """Return the competitions of each modality."""
    of = {name: modality_of(searches, name) for name in searches.competitions}
    known = sorted(set(of.values()) - {""})
    return {
        each: tuple(name for name, modality in of.items() if modality == each) for each in known
    }


@dataclass(frozen=True, slots=True)
class ModalityDelta:
    """What a condition changed in the competitions of one modality."""

    modality: str
    condition: str
    deltas: Mapping[str, Spread | None]
    """Mean over competitions of their means over seeds; the error is over competitions.

    With ddof = 1, other than the paper's Table 5 (see `published`).
    """


def modality_deltas(searches: Searches) -> tuple[ModalityDelta, ...]:
    """Average what changed over the competitions of a modality."""
    return tuple(
        ModalityDelta(modality, condition, _deltas(searches, condition, tasks, by_task=True))
        for modality, tasks in _modalities(searches).items()
        for condition in searches.compared
    )


@dataclass(frozen=True, slots=True)
class Sides:
    """A measure without memory and under a condition, in one task or modality."""

    table: str
    row: str
    """The task, or the modality."""
    condition: str
    measure: Measure
    baseline: Spread | None
    """Of a task over its runs; of a modality over its tasks, each the mean of its runs."""
    treated: Spread | None
    delta: Spread | None
    """Over pairs of a task; over tasks, each the mean of its pairs, of a modality."""
    same_tasks: Estimate | None
    """The difference with other seeds of these tasks; `None` where no interval can be had."""
    pairs: int
    runs: tuple[int, int]
    """Runs behind the two sides."""


def sides(searches: Searches) -> tuple[Sides, ...]:
    """Return rows as in the paper's Tables 5 (medals by modality), 7 and 9 (errors by task)."""
    tasks = {name: (name,) for name in searches.competitions}
    tables: list[tuple[str, str, Mapping[str, Sequence[str]]]] = [
        ("medals", "any_medal", _modalities(searches)),
        ("recurrence", "error_recurrence", tasks),
        ("late_errors", "late_errors", tasks),
    ]
    return tuple(
        _sides(searches, (table, row, condition), measure_named(searches, name), chosen)
        for table, name, groups in tables
        for condition in searches.compared
        for row, chosen in groups.items()
    )


def _sides(
    searches: Searches, key: tuple[str, str, str], measure: Measure, tasks: Sequence[str]
) -> Sides:
    table, row, condition = key
    baseline, treated, delta = (
        _known(found, tasks)
        for found in (
            values_of(searches, searches.baseline, measure),
            values_of(searches, condition, measure),
            differences(searches, condition, measure),
        )
    )
    by_task = table == "medals"
    return Sides(
        table=table,
        row=row,
        condition=condition,
        measure=measure,
        baseline=_spread(baseline, by_task=by_task),
        treated=_spread(treated, by_task=by_task),
        delta=_spread(delta, by_task=by_task),
        same_tasks=fixed_items_estimate([*rows_of(delta).values()], measure.most(searches)),
        pairs=len(delta),
        runs=(len(baseline), len(treated)),
    )
