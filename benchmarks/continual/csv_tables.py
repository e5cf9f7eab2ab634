"""A table as CSV: what a field, a row and a number with its interval look like."""

import csv
import io
import math
from dataclasses import dataclass
from typing import TypeAlias

from langgraft.benchmarks.continual.metrics import Metric
from langgraft.benchmarks.continual.spreads import Spread

Field: TypeAlias = str | int | float | None

_DIGITS = 6
"""Digits after the point: more than any interval is worth, and no float noise."""

METRIC = (
    *("value", "low", "high", "low_orders", "high_orders"),
    *("n_items", "n_replicates", "n_done", "n_planned"),
)
"""Columns of a number: the number, its two 95 % intervals, and what it rests on."""

SPREAD = ("mean", "run_min", "run_max")
"""Columns of a mean over runs: the mean, and the least and the greatest value of a run."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that becomes one CSV file."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]

    def to_csv(self) -> str:
        """Return the table as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_field(value) for value in row] for row in self.rows)
        return text.getvalue()


def _field(value: Field) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, float):
        rounded = round(value, _DIGITS)
        return repr(rounded or 0.0)
    return str(value)


def metric_fields(metric: Metric) -> tuple[Field, ...]:
    """Return the fields of `METRIC`, the numbers in percent."""
    counts = (metric.done, metric.planned)
    estimate = metric.estimate
    if estimate is None:
        return (*(None,) * 5, metric.n_items, None, *counts)
    numbers = (estimate.value, estimate.low, estimate.high, *estimate.these_orders)
    return (*(100 * each for each in numbers), estimate.n_items, estimate.n_replicates, *counts)


def metric_columns(*prefixes: str) -> tuple[str, ...]:
    """Return the columns of `METRIC` for several numbers in a row."""
    return tuple(f"{prefix}_{column}" for prefix in prefixes for column in METRIC)


def spread_columns(*prefixes: str) -> tuple[str, ...]:
    """Return the columns of several means with the range of their runs."""
    return tuple(f"{prefix}_{part}" for prefix in prefixes for part in SPREAD)


def spread_fields(spread: Spread | None, scale: float = 1.0) -> tuple[Field, ...]:
    """Return mean, least and greatest value of a run, times `scale`: 100 for percent."""
    if spread is None:
        return (None,) * len(SPREAD)
    return (scale * spread.mean, scale * spread.low, scale * spread.high)
