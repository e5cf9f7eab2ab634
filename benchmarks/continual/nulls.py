"""What RR and NL would be if memory did nothing.

The split into solved and failed items rests on a few noisy runs. Items that were lucky in them
count as solved and are less lucky the next time, so that without any memory RR is below 100 %
and NL above 0 % (regression to the mean, evaluation §2.2). Two values say by how much:

measured   RR and NL of the re-run of the baseline, on the same split
expected   from the baseline alone: each run is scored on the split that the *other* runs make
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langgraft.benchmarks.continual.cells import (
    BASELINE,
    RERUN,
    Cell,
    CellKey,
    Scores,
    StudyLog,
    difference_of,
)
from langgraft.benchmarks.continual.metrics import (
    SMALLEST_SUBSET,
    Metric,
    Partition,
    Retention,
    accuracy,
    metric_of,
    unless_small,
)
from langgraft.benchmarks.continual.spreads import Spread, spread_of


@dataclass(frozen=True, slots=True)
class Null:
    """RR and NL of one task without any memory."""

    task: str
    measured_rr: Metric | None
    """Of the re-run; `None` where the plan has none."""
    measured_nl: Metric | None
    expected_rr: Spread | None
    """Leaving one run out: mean of the runs, with their range."""
    expected_nl: Spread | None


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
        """RR less the expected one: no interval, for the expected one has only a range."""
        return _less(self.retention.rr, self.null.expected_rr)

    @property
    def nl_expected(self) -> float | None:
        """NL less the expected one."""
        return _less(self.retention.nl, self.null.expected_nl)


def _less(measured: Metric, expected: Spread | None) -> float | None:
    if measured.estimate is None or expected is None:
        return None
    return measured.estimate.value - expected.mean


def null_values(study: StudyLog, partitions: Mapping[str, Partition]) -> tuple[Null, ...]:
    """Return RR and NL of each task without any memory."""
    return tuple(_null(study, split) for split in partitions.values())


def _null(study: StudyLog, split: Partition) -> Null:
    rerun = study.cells.get(CellKey(RERUN, "", split.task))
    rr, nl = expected(study.cells[CellKey(BASELINE, "", split.task)].scores)
    return Null(
        task=split.task,
        measured_rr=None if rerun is None else unless_small(accuracy(rerun, split.solved)),
        measured_nl=None if rerun is None else unless_small(accuracy(rerun, split.failed)),
        expected_rr=rr if len(split.solved) >= SMALLEST_SUBSET else None,
        expected_nl=nl if len(split.failed) >= SMALLEST_SUBSET else None,
    )


def expected(baseline: Scores) -> tuple[Spread | None, Spread | None]:
    """Score each baseline run on the split that the other runs make; return RR and NL.

    An item that exactly half of the others solve counts half in each subset: the full split has
    one run more, which would decide. For the same reason what is expected lies a little nearer
    to the mean than a fresh run on the full split does.
    """
    rates: tuple[list[float], list[float]] = ([], [])
    for left_out, outcomes in baseline.items():
        others = [each for run, each in baseline.items() if run != left_out]
        solved = _solved(others)
        scored = [
            (outcomes[item], solved[item]) for item in sorted(outcomes.keys() & solved.keys())
        ]
        for found, subset in zip(rates, (scored, [(v, 1 - s) for v, s in scored]), strict=True):
            weight = sum(share for _, share in subset)
            if weight:
                found.append(sum(value * share for value, share in subset) / weight)
    return spread_of(rates[0]), spread_of(rates[1])


def _solved(runs: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """Return 1 for items that more than half of the runs solve, 1/2 for half, 0 for fewer."""
    counts: dict[str, list[float]] = {}
    for outcomes in runs:
        for item, outcome in outcomes.items():
            counts.setdefault(item, []).append(outcome)
    excess = {item: 2 * sum(each) - len(each) for item, each in counts.items()}
    return {item: 0.5 if not more else float(more > 0) for item, more in excess.items()}


def beyond_null(
    study: StudyLog,
    partitions: Mapping[str, Partition],
    nulls: Sequence[Null],
    retentions: Sequence[Retention],
) -> tuple[BeyondNull, ...]:
    """Put RR and NL of every cell beside what they are without memory."""
    by_task = {null.task: null for null in nulls}
    found = []
    for retention in retentions:
        key = retention.key
        split, rerun = partitions[key.task], study.cells.get(CellKey(RERUN, "", key.task))
        pair = None if rerun is None or key.condition == RERUN else (study.cells[key], rerun)
        rr, nl = (_beyond(pair, subset) for subset in (split.solved, split.failed))
        found.append(BeyondNull(retention, by_task[key.task], rr, nl))
    return tuple(found)


def _beyond(pair: tuple[Cell, Cell] | None, subset: frozenset[str]) -> Metric | None:
    if pair is None:
        return None
    cell, rerun = pair
    estimate = difference_of(cell.scores, rerun.scores, subset)
    return unless_small(metric_of(estimate, pair, len(subset)))
