"""Means with their standard errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean with its standard error."""

    mean: float
    sem: float | None
    """Standard error of the mean; `None` of a single value."""
    n: int


def mean_and_sem(values: Sequence[float], *, ddof: int = 1) -> Spread:
    """Return mean and standard error: the standard deviation over the root of the count.

    Args:
        values: At least one.
        ddof: What is taken off the count within the standard deviation; 1 for a sample.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        msg = "the mean of no values does not exist"
        raise ValueError(msg)
    n, mean = len(values), math.fsum(values) / len(values)
    if n <= ddof:
        return Spread(mean, None, n)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return Spread(mean, math.sqrt(squares / (n - ddof) / n), n)
