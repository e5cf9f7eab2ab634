"""The mean of a number over competitions and seeds: for all competitions, and for these very ones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from langgraft._core.extras import require
from langgraft.benchmarks.harness.statistics import (
    CONFIDENCE,
    ROUNDING,
    Estimate,
    Matrix,
    OrderEffects,
    mean_estimate,
)

Pair: TypeAlias = tuple[str, int]
"""Competition and seed."""


def _by_competition(values: Mapping[Pair, float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for (competition, _), value in sorted(values.items()):
        found.setdefault(competition, []).append(value)
    return found


def all_tasks_estimate(
    values: Mapping[Pair, float], bounds: tuple[float, float], orders: OrderEffects | None = None
) -> Estimate | None:
    """Estimate a mean over competitions and seeds.

    `orders` is what seeds differ by in the family; `None` takes what they differ by here.
    """
    matrix = matrix_of(values)
    return None if matrix is None else mean_estimate(matrix, bounds=bounds, orders=orders)


def matrix_of(values: Mapping[Pair, float]) -> Matrix | None:
    """Return values as competitions by seeds.

    Where a competition lacks seeds that others have, each competition gives its mean instead: the
    crossed analysis needs all cells, and leaving competitions out would be a choice by result.
    """
    if not values:
        return None
    rows = _by_competition(values)
    seeds = {name: {seed for each, seed in values if each == name} for name in rows}
    if all(found == seeds[next(iter(seeds))] for found in seeds.values()):
        return np.array(list(rows.values()), dtype=np.float64)
    return np.array([[math.fsum(row) / len(row)] for row in rows.values()], dtype=np.float64)


def same_tasks_estimate(values: Mapping[Pair, float], most: float) -> Estimate | None:
    """Estimate the mean of these very competitions over other seeds.

    Competitions count alike and are not a sample; what varies are the seeds within each. The
    variance is the mean of their variances of means, its degrees of freedom are Satterthwaite's
    (1946). It says nothing of other competitions, nor of other banks: the seeds of a competition
    start from the same one.

    Returns:
        `None` where a competition has fewer than two seeds, or where no seed differs from another:
        then nothing is known of how seeds vary.
    """
    rows = list(_by_competition(values).values())
    if not rows or min(map(len, rows)) < 2:  # noqa: PLR2004  (a variance takes two)
        return None
    parts = [_variance(row) / len(row) / len(rows) ** 2 for row in rows]
    variance = math.fsum(parts)
    if variance < ROUNDING**2:
        return None
    mean = math.fsum(math.fsum(row) / len(row) for row in rows) / len(rows)
    spread = math.fsum(part**2 / (len(row) - 1) for part, row in zip(parts, rows, strict=True))
    df, se = variance**2 / spread, math.sqrt(variance)
    t: Any = require("scipy.stats", extra="bench", purpose="The analysis").t
    reach = float(t.ppf((1 + CONFIDENCE) / 2, df)) * se
    low, high = max(-most, mean - reach), min(most, mean + reach)
    p = float(2 * t.sf(abs(mean) / se, df))
    seeds = max(map(len, rows))
    found = Estimate(mean, low, high, p, se, df, len(rows), seeds, 1.0, "crossed", (low, high))
    return replace(found, items_variance=variance)


def _variance(row: Sequence[float]) -> float:
    mean = math.fsum(row) / len(row)
    return math.fsum((value - mean) ** 2 for value in row) / (len(row) - 1)
