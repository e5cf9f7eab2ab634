"""Curves over the steps, by metric group: bugs so far and the best metric so far (Figure 3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from langgraft.benchmarks.comparison.outcomes import Spread, spread_of
from langgraft.benchmarks.mle.run_record import Search
from langgraft.benchmarks.mle.run_set import Searches

What: TypeAlias = Literal["bugs", "best"]


@dataclass(frozen=True, slots=True)
class Curve:
    """A mean over searches at each step."""

    what: What
    metric_group: str
    condition: str
    points: tuple[Spread | None, ...]
    """By step; `n` is the number of searches in it, `None` where no search has a number yet."""
    searches: int


def curves(searches: Searches) -> tuple[Curve, ...]:
    """Return both curves of every metric group and condition that has a search.

    Bugs of a search that ended early stay as they were, and so does its best metric. A search
    without a valid program so far has no best metric and is left out of that step's mean, so that
    early means are over fewer searches; `n` says over how many.
    """
    found = []
    for group in searches.metric_groups:
        for condition in searches.conditions:
            runs = [each for each in searches.of(condition) if each.metric_group == group]
            if runs:
                bugs = [_bugs(run, searches.longest) for run in runs]
                best = [_best(run, searches.longest) for run in runs]
                found.append(Curve("bugs", group, condition, _points(bugs), len(runs)))
                found.append(Curve("best", group, condition, _points(best), len(runs)))
    return tuple(found)


def _bugs(search: Search, steps: int) -> tuple[float, ...]:
    return _carried(tuple(map(float, search.behavior.cumulative_bugs)), steps, before=0.0)


def _best(search: Search, steps: int) -> tuple[float, ...]:
    return _carried(search.behavior.best_so_far, steps, before=math.nan)


def _carried(values: tuple[float, ...], steps: int, *, before: float) -> tuple[float, ...]:
    """Go on with the last value of a run that ended; one without steps stays as it began."""
    last = values[-1] if values else before
    return values + (last,) * (steps - len(values))


def _points(rows: Sequence[Sequence[float]]) -> tuple[Spread | None, ...]:
    columns = (
        [value for value in step if not math.isnan(value)] for step in zip(*rows, strict=True)
    )
    return tuple(spread_of(values) for values in columns)
