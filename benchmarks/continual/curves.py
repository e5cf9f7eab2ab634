"""How learning goes: cumulative success while training, and accuracy at milestones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.continual.cells import Cell, CellKey, RunResults, StudyLog
from langgraft.benchmarks.continual.metrics import Partition, accuracy, subsets_of, unless_small


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Cumulative success rate over the training items (continual-memory Appendix E)."""

    condition: str
    sequence: str
    task: str
    replicates: tuple[int, ...]
    curves: tuple[tuple[float, ...], ...]
    """Per replicate: the share of successes among the first 1, 2, … items."""
    planned: int
    """Items of each stream."""

    @property
    def length(self) -> int:
        """Items that every replicate has come to."""
        return min((len(curve) for curve in self.curves), default=0)

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean over replicates."""
        return self._over_replicates("mean")

    @property
    def low(self) -> tuple[float, ...]:
        """Least of the replicates."""
        return self._over_replicates("min")

    @property
    def high(self) -> tuple[float, ...]:
        """Greatest of the replicates."""
        return self._over_replicates("max")

    def _over_replicates(self, reduction: str) -> tuple[float, ...]:
        if not self.length:
            return ()
        table = np.array([curve[: self.length] for curve in self.curves])
        return tuple(float(value) for value in getattr(table, reduction)(axis=0))


@dataclass(frozen=True, slots=True)
class Milestone:
    """Accuracy on a frozen bank after some of the training items of the last phase."""

    key: CellKey
    at: int
    accuracy: Metric
    rr: Metric
    nl: Metric


def learning_curves(study: StudyLog) -> tuple[LearningCurve, ...]:
    """Return a curve per condition and sequence."""
    streams: dict[tuple[str, str, str], list[RunResults]] = {}
    for run in study.training:
        factors = run.spec.factors
        key = (str(factors["condition"]), str(factors["sequence"]), str(factors["task"]))
        streams.setdefault(key, []).append(run)
    return tuple(
        LearningCurve(
            *key,
            replicates=tuple(run.replicate for run in runs),
            curves=tuple(_cumulative(run) for run in runs),
            planned=max(run.planned for run in runs),
        )
        for key, runs in streams.items()
    )


def _cumulative(run: RunResults) -> tuple[float, ...]:
    outcomes = np.array([float(bool(result["success"])) for result in run.results])
    if not outcomes.size:
        return ()
    rates = np.cumsum(outcomes) / np.arange(1, outcomes.size + 1)
    return tuple(float(rate) for rate in rates)


def milestones(study: StudyLog, partitions: Mapping[str, Partition]) -> tuple[Milestone, ...]:
    """Return accuracies along training, ends included, where a plan has milestones at all."""
    return tuple(_milestones(study, partitions))


def _milestones(study: StudyLog, partitions: Mapping[str, Partition]) -> Iterator[Milestone]:
    along = {_track(cell) for cell in study.cells.values() if cell.key.at is not None}
    easy, hard = subsets_of(partitions)
    rr_orders, nl_orders = study.orders(easy), study.orders(hard)
    for key, cell in study.cells.items():
        if _track(cell) in along:
            at = _phase_length(study, key) if key.at is None else key.at
            yield Milestone(
                key,
                at,
                accuracy(cell, orders=study.accuracy_orders),
                rr=unless_small(accuracy(cell, easy[key.task], rr_orders)),
                nl=unless_small(accuracy(cell, hard[key.task], nl_orders)),
            )


def _track(cell: Cell) -> tuple[str, str, str]:
    return cell.key.condition, cell.key.sequence, cell.key.task


def _phase_length(study: StudyLog, key: CellKey) -> int:
    lengths = [
        run.planned
        for run in study.training
        if (run.spec.factors["condition"], run.spec.factors["sequence"])
        == (key.condition, key.sequence)
    ]
    return max(lengths, default=0)
