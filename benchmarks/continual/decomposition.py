"""Forward and backward transfer as a sum over easy and hard items (continual-memory Figure 3).

    FWT = (n_s / N) · ΔRR + (n_f / N) · ΔNL

The two weighted terms are in the units of FWT itself and can be stacked; ΔRR and ΔNL cannot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import Metric, differences_of
from langgraft.benchmarks.continual.cells import CellKey, StudyLog
from langgraft.benchmarks.continual.metrics import Partition, Transfer


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
    splits = [partitions[row.task] for row in transfers]
    pairs = [
        (
            study.cells[CellKey(row.condition, row.sequence, row.task)].scores,
            study.cells[CellKey(row.condition, row.task, row.task)].scores,
        )
        for row in transfers
    ]
    subsets = [[each.solved for each in splits], [each.failed for each in splits]]
    shares = (
        [
            _share(row.transfer, part, items)
            for row, part, items in zip(
                transfers, differences_of(pairs, subset), subset, strict=True
            )
        ]
        for subset in subsets
    )
    return tuple(map(Decomposition, transfers, *shares))


def _share(transfer: Metric, part: Estimate | None, items: frozenset[str]) -> Metric:
    counts = (transfer.done, transfer.planned, len(items))
    if transfer.estimate is None or part is None:
        return Metric(None, *counts)
    return Metric(scaled(part, part.n_items / transfer.estimate.n_items), *counts)


def scaled(estimate: Estimate, weight: float) -> Estimate:
    """Return an estimate of `weight` times what it estimates."""
    return replace(
        estimate,
        value=weight * estimate.value,
        low=weight * estimate.low,
        high=weight * estimate.high,
        se=weight * estimate.se,
        these_orders=(weight * estimate.these_orders[0], weight * estimate.these_orders[1]),
    )
