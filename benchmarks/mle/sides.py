"""Rows as the paper's Tables 5, 7 and 9 have them: without memory, with it, and the difference."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langgraft.benchmarks.harness.statistics import Estimate
from langgraft.benchmarks.mle.contrasts import differences, values_of
from langgraft.benchmarks.mle.estimates import Pair, same_tasks_estimate
from langgraft.benchmarks.mle.measure import Measure
from langgraft.benchmarks.mle.measures import measure_named
from langgraft.benchmarks.mle.relations import modality_of
from langgraft.benchmarks.mle.searches import Searches
from langgraft.benchmarks.mle.spreads import Spread, mean_and_sem


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
    """Return medals by modality (Table 5), and by task recurrence (7) and late errors (9)."""
    tasks = {name: (name,) for name in searches.competitions}
    of = {name: modality_of(searches, name) for name in searches.competitions}
    modalities = {
        modality: tuple(name for name in searches.competitions if of[name] == modality)
        for modality in sorted(set(of.values()) - {""})
    }
    return (
        *_table(searches, "medals", "any_medal", modalities, by_task=True),
        *_table(searches, "recurrence", "error_recurrence", tasks, by_task=False),
        *_table(searches, "late_errors", "late_errors", tasks, by_task=False),
    )


def _table(
    searches: Searches,
    table: str,
    name: str,
    groups: Mapping[str, Sequence[str]],
    *,
    by_task: bool,
) -> list[Sides]:
    measure = measure_named(searches, name)
    return [
        _row(searches, (table, row, condition), measure, frozenset(tasks), by_task=by_task)
        for condition in searches.compared
        for row, tasks in groups.items()
    ]


def _row(
    searches: Searches,
    key: tuple[str, str, str],
    measure: Measure,
    tasks: frozenset[str],
    *,
    by_task: bool,
) -> Sides:
    table, row, condition = key
    baseline, treated, delta = (
        {pair: value for pair, value in found.items() if value is not None and pair[0] in tasks}
        for found in (
            values_of(searches, searches.baseline, measure),
            values_of(searches, condition, measure),
            differences(searches, condition, measure),
        )
    )
    return Sides(
        table=table,
        row=row,
        condition=condition,
        measure=measure,
        baseline=_spread(baseline, by_task=by_task),
        treated=_spread(treated, by_task=by_task),
        delta=_spread(delta, by_task=by_task),
        same_tasks=same_tasks_estimate(delta, measure.most(searches)),
        pairs=len(delta),
        runs=(len(baseline), len(treated)),
    )


def _spread(values: Mapping[Pair, float], *, by_task: bool) -> Spread | None:
    """Return mean and error over the values, or over the means of their tasks."""
    if not values:
        return None
    if not by_task:
        return mean_and_sem([value for _, value in sorted(values.items())])
    found: dict[str, list[float]] = {}
    for (task, _), value in sorted(values.items()):
        found.setdefault(task, []).append(value)
    return mean_and_sem([math.fsum(each) / len(each) for each in found.values()])
