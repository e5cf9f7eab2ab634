"""A mean over runs with its range: for measures of which a run gives only one value."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean, with the least and the greatest value of a run."""

    mean: float
    low: float
    high: float
    runs: int


def spread_of(values: Iterable[float]) -> Spread | None:
    """Return the mean of one value a run, with its range; `None` of none."""
    known = list(values)
    if not known:
        return None
    return Spread(float(np.mean(known)), min(known), max(known), len(known))
