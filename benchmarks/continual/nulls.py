"""What RR and NL would be if memory did nothing.

The split into solved and failed items rests on a few noisy runs. Items that were lucky in them
count as solved and are less lucky the next time, so that without any memory RR is below 100 %
and NL above 0 % (regression to the mean, evaluation §2.2). Two values say by how much:

measured   RR and NL of the re-run of the baseline, on the same split
expected   from the baseline alone: what a fresh run would score, if the chances of success are
           spread over items as the beta-binomial distribution says that fits the runs best
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from langgraft._core.lazy import require
from langgraft.benchmarks.comparison.estimates import Matrix
from langgraft.benchmarks.comparison.outcomes import Metric, Scores, differences_of
from langgraft.benchmarks.continual.cells import BASELINE, RERUN, Cell, CellKey, StudyLog
from langgraft.benchmarks.continual.metrics import (
    SMALLEST_SUBSET,
    Partition,
    Retention,
    accuracy,
    metric_of,
    subsets_of,
    unless_small,
)


@dataclass(frozen=True, slots=True)
class Null:
    """RR and NL of one task without any memory."""

    task: str
    measured_rr: Metric | None
    """Of the re-run; `None` where the plan has none."""
    measured_nl: Metric | None
    expected_rr: float | None
    """By the beta-binomial fit: no interval."""
    expected_nl: float | None


@dataclass(frozen=True, slots=True)
class BeyondNull:
    """RR and NL of one cell, less what they are without memory."""

    retention: Retention
    null: Null
    rr: Metric | None
    """Less that of the re-run, paired by item and replicate; `None` without a re-run."""
    nl: Metric | None

    @property
    def rr_expected(self) -> float | None:
        """RR less the expected one: no interval, for the expected one has none."""
        return _less(self.retention.rr, self.null.expected_rr)

    @property
    def nl_expected(self) -> float | None:
        """NL less the expected one."""
        return _less(self.retention.nl, self.null.expected_nl)


def _less(measured: Metric, expected: float | None) -> float | None:
    if measured.estimate is None or expected is None:
        return None
    return measured.estimate.value - expected


def null_values(study: StudyLog, partitions: Mapping[str, Partition]) -> tuple[Null, ...]:
    """Return RR and NL of each task without any memory."""
    return tuple(_null(study, split) for split in partitions.values())


def _null(study: StudyLog, split: Partition) -> Null:
    rerun = study.cells.get(CellKey(RERUN, "", split.task))
    scores = study.cells[CellKey(BASELINE, "", split.task)].scores
    rr, nl = (expected(scores, subset) for subset in (split.solved, split.failed))
    return Null(
        task=split.task,
        measured_rr=None if rerun is None else unless_small(accuracy(rerun, split.solved)),
        measured_nl=None if rerun is None else unless_small(accuracy(rerun, split.failed)),
        expected_rr=rr if len(split.solved) >= SMALLEST_SUBSET else None,
        expected_nl=nl if len(split.failed) >= SMALLEST_SUBSET else None,
    )


def expected(baseline: Scores, subset: frozenset[str]) -> float | None:
    """Return what a fresh run without memory would score on a subset of the split.

    Chances of success are taken to follow a beta distribution; its two parameters are those under
    which the successes of all items are likeliest. An item with `x` successes in `r` runs then has a
    chance of `(a + x) / (a + b + r)`, whatever subset it is in. With three to five runs this is within
    three points of the truth where scoring each run on the split of the others is off by up to ten
    (docs/statistics.md).

    Returns:
        `None` without two runs, or without an item of the subset.
    """
    outcomes: dict[str, list[float]] = {}
    for run in baseline.values():
        for item, outcome in run.items():
            outcomes.setdefault(item, []).append(outcome)
    rows = {item: (sum(each), len(each)) for item, each in sorted(outcomes.items())}
    wanted = [rows[item] for item in sorted(subset & rows.keys())]
    if not wanted or max(runs for _, runs in rows.values()) < 2:  # noqa: PLR2004  (nothing to fit)
        return None
    a, b = _beta(np.array(list(rows.values())))
    return float(np.mean([(a + x) / (a + b + runs) for x, runs in wanted]))


def _beta(rows: Matrix) -> tuple[float, float]:
    """Fit the parameters of the beta distribution to successes and runs of items."""
    optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")
    betabinom: Any = require("scipy.stats", extra="bench", purpose="The analysis").betabinom

    def unlikely(logs: Matrix) -> float:
        return -float(betabinom.logpmf(rows[:, 0], rows[:, 1], *np.exp(logs)).sum())

    # From e^-5, where items always or never succeed, to e^5, where all have one chance.
    found = optimize.minimize(unlikely, (0.0, 0.0), method="L-BFGS-B", bounds=((-5, 5), (-5, 5)))
    a, b = np.exp(found.x)
    return float(a), float(b)


def beyond_null(
    study: StudyLog,
    partitions: Mapping[str, Partition],
    nulls: Sequence[Null],
    retentions: Sequence[Retention],
) -> tuple[BeyondNull, ...]:
    """Put RR and NL of every cell beside what they are without memory."""
    by_task = {null.task: null for null in nulls}
    reruns = {task: study.cells.get(CellKey(RERUN, "", task)) for task in partitions}
    less = [dict(_beyond(study, reruns, subsets, retentions)) for subsets in subsets_of(partitions)]
    return tuple(
        BeyondNull(each, by_task[each.key.task], *(found.get(each.key) for found in less))
        for each in retentions
    )


def _beyond(
    study: StudyLog,
    reruns: Mapping[str, Cell | None],
    subsets: Mapping[str, frozenset[str]],
    retentions: Sequence[Retention],
) -> Iterator[tuple[CellKey, Metric]]:
    """Compare every cell with the re-run on a subset of its task, as one family."""
    keys = [each.key for each in retentions if each.key.condition != RERUN]
    pairs = [(study.cells[key], rerun) for key in keys if (rerun := reruns[key.task]) is not None]
    items = [subsets[cell.key.task] for cell, _ in pairs]
    found = differences_of([(cell.scores, rerun.scores) for cell, rerun in pairs], items)
    for pair, subset, estimate in zip(pairs, items, found, strict=True):
        yield pair[0].key, unless_small(metric_of(estimate, pair, len(subset)))
