"""Numbers of the study as fields of a CSV table; an empty field means that there is none."""

from langgraft.benchmarks.continual.csv_tables import Field
from langgraft.benchmarks.harness.statistics import Estimate
from langgraft.benchmarks.mle.behaviour.retrievals import Share
from langgraft.benchmarks.mle.relations import Correlation
from langgraft.benchmarks.mle.spreads import Spread

ESTIMATE = ("value", "low", "high", "low_orders", "high_orders", "se", "df", "method")
"""Columns of an estimate; what is an order in the study of training streams is a seed here."""


def estimate_fields(found: Estimate | None, scale: float) -> tuple[Field, ...]:
    """Return value, both intervals, standard error, degrees of freedom and method."""
    if found is None:
        return (None,) * len(ESTIMATE)
    numbers = (found.value, found.low, found.high, *found.these_orders, found.se)
    return (*(scale * each for each in numbers), found.df, found.method)


def p_field(found: Estimate | None) -> float | None:
    """Return the p value."""
    return None if found is None else found.p


def spread_fields(found: Spread | None, scale: float) -> tuple[Field, Field]:
    """Return mean and standard error."""
    if found is None:
        return None, None
    return scale * found.mean, None if found.sem is None else scale * found.sem


def counted_fields(found: Spread | None, scale: float) -> tuple[Field, ...]:
    """Return mean, standard error, and what they rest on."""
    return (*spread_fields(found, scale), 0 if found is None else found.n)


def correlation_fields(found: Correlation) -> tuple[Field, ...]:
    """Return r, its interval, and what it rests on."""
    return (found.r, found.low, found.high, found.n)


def share_fields(found: Share) -> tuple[Field, ...]:
    """Return a share in percent, what it counts, and of what."""
    return (None if found.value is None else 100 * found.value, found.count, found.of)
