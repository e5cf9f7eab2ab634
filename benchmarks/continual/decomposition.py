"""Forward and backward transfer as a sum over easy and hard items (continual-memory Figure 3).

    FWT = (n_s / N) · ΔRR + (n_f / N) · ΔNL

The two weighted terms are in the units of FWT itself and can be stacked; ΔRR and ΔNL cannot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from langgraft.benchmarks.continual.cells import CellKey, StudyLog, difference_of
from langgraft.benchmarks.continual.metrics import Metric, Partition, Transfer
from langgraft.benchmarks.harness.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Where a transfer comes from."""

    transfer: Transfer
    easy: Metric
    """`(n_s / N) · ΔRR`: what items solved without memory add."""
    hard: Metric
    """`(n_f / N) · ΔNL`: what items failed without memory add."""


def decompositions(
    study: StudyLog, partitions: Mapping[str, Partition], transfers: tuple[Transfer, ...]
) -> tuple[Decomposition, ...]:
    """Decompose each transfer. Subsets too small for ΔRR or ΔNL have a share like any other."""
    return tuple(_decompose(study, partitions[row.task], row) for row in transfers)


def _decompose(study: StudyLog, split: Partition, row: Transfer) -> Decomposition:
    after = study.cells[CellKey(row.condition, row.sequence, row.task)]
    before = study.cells[CellKey(row.condition, row.task, row.task)]
    everything = split.solved | split.failed
    whole = difference_of(after.scores, before.scores, everything)

    def share(items: frozenset[str]) -> Metric:
        part = difference_of(after.scores, before.scores, items)
        counts = (row.transfer.done, row.transfer.planned, len(items))
        if whole is None or part is None:
            return Metric(None, *counts)
        return Metric(scaled(part, part.n_items / whole.n_items), *counts)

    return Decomposition(row, share(split.solved), share(split.failed))


def scaled(estimate: Estimate, weight: float) -> Estimate:
    """Return an estimate of `weight` times what it estimates."""
    return replace(
        estimate,
        value=weight * estimate.value,
        low=weight * estimate.low,
        high=weight * estimate.high,
        se=weight * estimate.se,
    )
