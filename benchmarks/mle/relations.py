"""What changed in tasks and modalities, and whether fewer bugs go with a better result (§4.3, §4.5)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from langgraft._core.lazy import require
from langgraft.benchmarks.comparison.estimates import Estimate, fixed_items_estimate
from langgraft.benchmarks.comparison.measures import Measure, Measured
from langgraft.benchmarks.comparison.outcomes import Pair, Spread, item_means, rows_of, spread_of
from langgraft.benchmarks.comparison.verdicts import CONFIDENCE
from langgraft.benchmarks.mle.searches import Searches
from langgraft.benchmarks.reporting.words import DASH, number

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

    def __str__(self) -> str:
        """Write it with its interval and what it rests on."""
        if self.r is None:
            return f"{DASH} (n = {self.n})"
        written = f"r = {number(self.r, 2, sign=True)}"
        if (self.low, self.high) == (-1.0, 1.0):
            return f"{written} (n = {self.n}; no interval)"
        ends = f"[{number(self.low, 2, sign=True)}, {number(self.high, 2, sign=True)}]"
        return f"{written} {ends} (n = {self.n})"


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


By = Mapping[str, Measured]
"""Measures of an agent's runs by name."""


def relations(searches: Searches, by: By) -> tuple[Relation, ...]:
    """Relate bug reduction to the change of the best validation metric, for every condition."""
    return tuple(_relation(by, name) for name in searches.compared)


def _relation(by: By, condition: str) -> Relation:
    bugs, final = (by[name].differences(condition) for name in ("bug_rate", "best_metric"))
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


def task_deltas(searches: Searches, by: By) -> tuple[TaskDelta, ...]:
    """Return what every condition changed in every competition."""
    return tuple(
        TaskDelta(
            competition=competition,
            modality=modality_of(searches, competition),
            condition=condition,
            deltas=_deltas(by, condition, {competition}, by_task=False),
            searches=len(searches.of(condition, competition)),
            planned=len(searches.planned_pairs(condition, competition)),
        )
        for competition in searches.competitions
        for condition in searches.compared
    )


def _deltas(
    by: By, condition: str, tasks: Collection[str], *, by_task: bool
) -> dict[str, Spread | None]:
    found = {name: by[name].differences(condition) for name in SHOWN}
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


def modality_deltas(searches: Searches, by: By) -> tuple[ModalityDelta, ...]:
    """Average what changed over the competitions of a modality."""
    return tuple(
        ModalityDelta(modality, condition, _deltas(by, condition, tasks, by_task=True))
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
    same_items: Estimate | None
    """The difference with other seeds of these tasks; `None` where no interval can be had."""
    pairs: int
    runs: tuple[int, int]
    """Runs behind the two sides."""


def sides(searches: Searches, by: By) -> tuple[Sides, ...]:
    """Return rows as in the paper's Tables 5 (medals by modality), 7 and 9 (errors by task)."""
    tasks = {name: (name,) for name in searches.competitions}
    tables: list[tuple[str, str, Mapping[str, Sequence[str]]]] = [
        ("medals", "any_medal", _modalities(searches)),
        ("recurrence", "error_recurrence", tasks),
        ("late_errors", "late_errors", tasks),
    ]
    return tuple(
        _sides(by[name], (table, row, condition), chosen)
        for table, name, groups in tables
        for condition in searches.compared
        for row, chosen in groups.items()
    )


def _sides(measured: Measured, key: tuple[str, str, str], tasks: Sequence[str]) -> Sides:
    table, row, condition = key
    values, bare = measured.values, measured.roles.baseline
    baseline, treated, delta = (
        _known(found, tasks)
        for found in (values.get(bare, {}), values[condition], measured.differences(condition))
    )
    by_task = table == "medals"
    return Sides(
        table=table,
        row=row,
        condition=condition,
        measure=measured.measure,
        baseline=_spread(baseline, by_task=by_task),
        treated=_spread(treated, by_task=by_task),
        delta=_spread(delta, by_task=by_task),
        same_items=fixed_items_estimate([*rows_of(delta).values()], measured.most),
        pairs=len(delta),
        runs=(len(baseline), len(treated)),
    )
