"""Help and harm apart: what a net difference is made of.

A difference of nothing may be many items that are solved with a treatment and as many that no longer are.
Outcomes that differ from sample to sample turn over by themselves, too; so beside what was seen stands what
chance alone does, and what lies beyond it.
"""

from dataclasses import dataclass

import numpy as np

from langgraft.benchmarks.comparison.estimates import Estimate, Matrix, mean_estimate

_FEWEST: int = 2
"""Runs below which nothing tells an effect from chance."""


@dataclass(frozen=True, slots=True)
class Transitions:
    """How paired outcomes changed."""

    gained: Estimate
    """Share of pairs that failed under the baseline and succeeded."""
    lost: Estimate
    """Share of pairs that succeeded under the baseline and failed."""
    chance: float | None
    """Share of pairs that would go either way between two samples of the baseline; `None` with one run."""
    helped: Estimate | None
    """Mean gain of the items that gain, beyond chance: which they are is told by the other runs, so that
    it is 0 on average where nothing changes. It is too small where runs are few and outcomes vary. `None`
    with one run."""
    harmed: Estimate | None
    """Mean loss of the items that lose, in the same way."""


def transitions(treated: Matrix, baseline: Matrix, *, shared_effects: bool = True) -> Transitions:
    """Take a paired difference apart.

    Args:
        treated: Outcomes in 0..1, items by runs.
        baseline: The same items and runs under the baseline.
        shared_effects: As in `mean_estimate`.

    Raises:
        ValueError: The shapes differ, or there is nothing to compare.
    """
    if treated.shape != baseline.shape:
        msg = f"paired outcomes have the shapes {treated.shape} and {baseline.shape}"
        raise ValueError(msg)
    differences = treated - baseline

    def mean(values: Matrix) -> Estimate:
        return mean_estimate(values, bounds=(-1.0, 1.0), shared_effects=shared_effects)

    runs = differences.shape[1]
    gained, lost = mean(np.maximum(differences, 0.0)), mean(np.maximum(-differences, 0.0))
    if runs < _FEWEST:
        return Transitions(gained, lost, None, None, None)
    others = differences.sum(axis=1, keepdims=True) - differences
    return Transitions(
        gained,
        lost,
        _turnover(baseline),
        mean(np.where(others > 0, differences, 0.0)),
        mean(np.where(others < 0, -differences, 0.0)),
    )


def _turnover(values: Matrix) -> float:
    """Return the mean rise from one run to another, over all ordered pairs of runs."""
    runs = values.shape[1]
    rises = [
        float(np.maximum(values[:, a] - values[:, b], 0.0).mean())
        for a in range(runs)
        for b in range(runs)
        if a != b
    ]
    return float(np.mean(rises))
