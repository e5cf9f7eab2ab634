"""Outcomes by condition, run and item: what a comparison starts from, and means of them.

Outcomes are found by item, never by position: the order of items differs between runs.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final, TypeAlias, cast

import numpy as np

from langgraft._core.errors import InputError
from langgraft.benchmarks.comparison.estimates import (
    Estimate,
    Matrix,
    OrderEffects,
    mean_estimate,
    order_effects,
    paired_difference,
    proportion,
)

Scores: TypeAlias = Mapping[int, Mapping[str, float]]
"""Run → item → outcome in 0..1."""

Pair: TypeAlias = tuple[str, int]
"""Item and run, of which a study has one value."""

COLUMNS: Final = ("item", "run", "condition", "outcome")
"""Columns of outcomes that are given as a frame."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number with its interval and the outcomes it rests on.

    `planned` counts the outcomes that there should be.
    """

    estimate: Estimate | None
    """`None` where there is nothing to estimate, or too little to be worth printing."""
    done: int
    """Outcomes there are; of a study, episodes with a result."""
    planned: int
    n_items: int
    """Items it is about, told even where the estimate is not."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self.done == self.planned


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of one condition."""

    scores: Scores
    done: int
    """Outcomes there are."""
    planned: int
    """Outcomes there should be."""
    n_items: int
    """Items that are tested."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """Names of runs, where they are known by others than their numbers."""

    def label(self, run: int) -> str:
        """Return the name of a run."""
        return self.labels.get(run, str(run))


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean of one value a run, with what is known of how runs differ. `mean` is over all runs."""

    mean: float
    low: float
    """Least value of a run."""
    high: float
    """Greatest value of a run."""
    sem: float | None
    """Standard error of the mean; `None` of a single value."""
    n: int
    """Runs."""


def spread_of(values: Iterable[float], *, ddof: int = 1) -> Spread | None:
    """Return the mean of one value a run, with range and standard error; `None` of none.

    Args:
        values: One of each run.
        ddof: What is taken off the count within the standard deviation; 1 for a sample.
    """
    known = list(values)
    if not known:
        return None
    n, mean = len(known), math.fsum(known) / len(known)
    squares = math.fsum((value - mean) ** 2 for value in known)
    sem = math.sqrt(squares / (n - ddof) / n) if n > ddof else None
    return Spread(mean, min(known), max(known), sem, n)


def pooled_spread(runs: Iterable[Sequence[float]]) -> Spread | None:
    """Return the mean over all values of all runs, with the range of the runs' means; `None` of none.

    Runs that have more values weigh more; those that have none are passed over.
    """
    filled = [values for values in runs if values]
    of_runs = spread_of(float(np.mean(values)) for values in filled)
    if of_runs is None:
        return None
    mean = float(np.mean(np.concatenate(filled)))
    return Spread(mean, of_runs.low, of_runs.high, None, of_runs.n)


def rows_of(values: Mapping[Pair, float]) -> dict[str, list[float]]:
    """Return the values of each item, in the order of its runs."""
    found: dict[str, list[float]] = {}
    for (item, _), value in sorted(values.items()):
        found.setdefault(item, []).append(value)
    return found


def item_means(values: Mapping[Pair, float]) -> dict[str, float]:
    """Return the mean of each item over its runs."""
    return {item: math.fsum(row) / len(row) for item, row in rows_of(values).items()}


def matrix_of(values: Mapping[Pair, float]) -> Matrix | None:
    """Return values as items by runs; `None` of none.

    Where an item lacks runs that others have, each item gives its mean instead: the crossed analysis
    needs all values, and leaving items out would be a choice by result.
    """
    if not values:
        return None
    runs: dict[str, set[int]] = {}
    for item, run in values:
        runs.setdefault(item, set()).add(run)
    alike = all(found == next(iter(runs.values())) for found in runs.values())
    rows = rows_of(values).values() if alike else [[mean] for mean in item_means(values).values()]
    return np.array(list(rows), dtype=np.float64)


def in_common(scores: Sequence[Scores], items: frozenset[str] | None = None) -> tuple[Scores, ...]:
    """Return what all `scores` have in common: the same runs, the same items in each.

    Runs without any outcome are left out, and so are items that a run lacks; the scores are empty
    if nothing is left.
    """
    runs = sorted(r for r in scores[0] if all(each.get(r) for each in scores))
    found = [set(each[r]) for each in scores for r in runs]
    shared = set.intersection(*found) if found else set()
    rows = sorted(shared if items is None else shared & items)
    if not rows:
        return tuple({} for _ in scores)
    return tuple({r: {item: each[r][item] for item in rows} for r in runs} for each in scores)


def matrices(
    scores: Sequence[Scores], items: frozenset[str] | None = None
) -> tuple[Matrix, ...] | None:
    """Return what all `scores` have in common as items by runs; `None` if nothing."""
    common = in_common(scores, items)
    if not common[0]:
        return None
    columns = [[list(outcomes.values()) for outcomes in each.values()] for each in common]
    return tuple(np.array(each, dtype=np.float64).T.copy() for each in columns)


def mean_of(
    scores: Scores,
    items: frozenset[str] | None = None,
    *,
    shared_effects: bool = True,
    orders: OrderEffects | None = None,
) -> Estimate | None:
    """Estimate a success rate; by Wilson's interval where there is one run of 0s and 1s.

    Args:
        scores: The outcomes.
        items: Of which items; `None` takes all.
        shared_effects: As in `mean_estimate`.
        orders: What runs differ by in the family; `None` takes what they differ by here.
    """
    found = matrices([scores], items)
    if found is None:
        return None
    (values,) = found
    if values.shape[1] == 1 and set(np.unique(values)) <= {0.0, 1.0}:
        return proportion(int(values.sum()), values.shape[0])
    return mean_estimate(values, shared_effects=shared_effects, orders=orders)


def differences_of(
    pairs: Iterable[tuple[Scores, Scores]], items: Iterable[frozenset[str] | None] = repeat(None)
) -> list[Estimate | None]:
    """Estimate the paired differences of a family: of treated from baseline outcomes.

    What runs differ by is pooled over the family.
    """
    found = [matrices(pair, each) for pair, each in zip(pairs, items, strict=False)]
    orders = order_effects(each[0] - each[1] for each in found if each is not None)
    return [None if each is None else paired_difference(*each, orders=orders) for each in found]


def joined(parts: Mapping[str, Outcomes]) -> Outcomes:
    """Return the outcomes of parts of a study as one: each part has items of its own."""
    named = {f"{name}/" if name else "": each for name, each in parts.items()}
    scores: dict[int, dict[str, float]] = {}
    for prefix, part in named.items():
        for run, outcomes in part.scores.items():
            scores.setdefault(run, {}).update({f"{prefix}{i}": v for i, v in outcomes.items()})
    counts = [(each.done, each.planned, each.n_items) for each in parts.values()]
    return Outcomes(scores, *(sum(each) for each in zip(*counts, strict=True)))


def averaged(parts: Sequence[Outcomes]) -> Outcomes:
    """Return the mean of several outcomes, of the runs and items that all of them have."""
    if len(parts) == 1:
        return parts[0]
    common = in_common([each.scores for each in parts])
    scores = {
        run: {item: math.fsum(each[run][item] for each in common) / len(common) for item in row}
        for run, row in common[0].items()
    }
    done, planned = (sum(getattr(each, n) for each in parts) for n in ("done", "planned"))
    return Outcomes(scores, done, planned, max(each.n_items for each in parts))


def read_outcomes(given: Any) -> dict[str, Outcomes]:
    """Read outcomes in any of the forms that `compare` takes, and check them.

    Raises:
        InputError: They are not outcomes; the message says what is wrong, and where.
    """
    rows = list(_rows(given))
    if not rows:
        msg = "there are no outcomes to compare"
        raise InputError(msg)
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    for where, item, run, condition, value in rows:
        outcomes = found.setdefault(condition, {}).setdefault(run, {})
        if item in outcomes:
            msg = (
                f"{where}: there are two outcomes of item {item!r} in run {run!r} of {condition!r}"
            )
            raise InputError(msg)
        outcomes[item] = _outcome(value, where)
    items = {item for runs in found.values() for each in runs.values() for item in each}
    labels = dict(enumerate(sorted({run for runs in found.values() for run in runs})))
    return {name: _outcomes(runs, len(items), labels) for name, runs in found.items()}


def _outcomes(
    runs: Mapping[str, Mapping[str, float | None]], n_items: int, labels: Mapping[int, str]
) -> Outcomes:
    scores = {
        number: {item: value for item, value in runs[label].items() if value is not None}
        for number, label in labels.items()
        if label in runs
    }
    return Outcomes(scores, sum(map(len, scores.values())), len(runs) * n_items, n_items, labels)


_Row: TypeAlias = tuple[str, str, str, str, Any]
"""Where it stands; item, run, condition; the outcome."""


def _rows(given: Any) -> Iterator[_Row]:
    """Read any form as long rows."""
    if hasattr(given, "columns") or (isinstance(given, Mapping) and {*COLUMNS} <= {*given}):
        yield from _of_frame(given)
    elif isinstance(given, Mapping):
        for condition, runs in given.items():
            of = _of_scores if isinstance(runs, Mapping) else _of_array
            yield from of(_name(condition, "a condition's name"), runs)
        _check_alike(given)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        yield from _of_rows(given)
    else:
        msg = (
            f"outcomes are a frame with the columns {', '.join(COLUMNS)}, rows with these fields, or"
            f" an array of items by runs for each condition, got {type(given).__name__}"
        )
        raise InputError(msg)


def _of_frame(frame: Any) -> Iterator[_Row]:
    missing = [name for name in COLUMNS if name not in list(getattr(frame, "columns", frame))]
    if missing:
        msg = f"the outcomes have no column {missing[0]!r}; they need {', '.join(COLUMNS)}"
        raise InputError(msg)
    columns = [list(frame[name]) for name in COLUMNS]
    if len({*map(len, columns)}) > 1:
        sizes = ", ".join(f"{n} {len(each)}" for n, each in zip(COLUMNS, columns, strict=True))
        msg = f"the columns of the outcomes differ in length: {sizes}"
        raise InputError(msg)
    yield from _of_rows(dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True))


def _of_rows(rows: Iterable[Any]) -> Iterator[_Row]:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping) or (missing := [n for n in COLUMNS if n not in row]):
            lacks = f"has no {missing[0]!r}" if isinstance(row, Mapping) else f"is {row!r:.60}"
            msg = f"row {number} {lacks}; a row of outcomes needs {', '.join(COLUMNS)}"
            raise InputError(msg)
        item, run, condition = (_name(row[each], f"row {number}: {each}") for each in COLUMNS[:3])
        yield f"row {number}", item, run, condition, row["outcome"]


def _of_scores(condition: str, scores: Mapping[Any, Any]) -> Iterator[_Row]:
    for run, outcomes in scores.items():
        where = f"{condition}, run {run}"
        if not isinstance(outcomes, Mapping):
            msg = f"{where}: expected the outcomes by item, got {outcomes!r:.60}"
            raise InputError(msg)
        for item, value in outcomes.items():
            yield f"{where}, item {item}", _name(item, where), _name(run, where), condition, value


def _of_array(condition: str, given: Any) -> Iterator[_Row]:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{condition}: expected numbers, items in rows and runs in columns: {error}"
        raise InputError(msg) from error
    if values.ndim != 2 or not values.size:  # noqa: PLR2004  (items, runs)
        msg = (
            f"{condition}: expected items in rows and runs in columns, got the shape {values.shape}"
        )
        raise InputError(msg)
    for (item, run), value in np.ndenumerate(values):
        yield f"{condition}, item {item}, run {run}", str(item), str(run), condition, value


def _check_alike(given: Mapping[Any, Any]) -> None:
    """Refuse arrays of different items: nothing else says which rows belong together."""
    sizes = {name: len(each) for name, each in given.items() if not isinstance(each, Mapping)}
    if sizes and (len({*sizes.values()}) > 1 or len(sizes) < len(given)):
        told = ", ".join(f"{name!r} {size}" for name, size in sizes.items())
        msg = (
            f"arrays need the same items in their rows for every condition; rows there are: {told}"
        )
        raise InputError(msg)


def _name(value: Any, where: str) -> str:
    """Return a name; numbers are written out, so that 1 and `"1"` are the same item."""
    nothing = value is None or (isinstance(value, float) and math.isnan(value))
    if nothing or not isinstance(value, Hashable) or not str(value):
        msg = f"{where} is {value!r:.60}, which is no name"
        raise InputError(msg)
    whole = isinstance(value, float) and value.is_integer()
    return str(int(cast("float", value))) if whole else str(value)


def _outcome(value: Any, where: str) -> float | None:
    """Return an outcome; `None` where it is missing."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        msg = f"{where}: the outcome is {value!r:.60}, which is no number"
        raise InputError(msg) from error
    if math.isnan(number):
        return None
    if isinstance(value, str) or not 0 <= number <= 1:
        msg = f"{where}: the outcome is {value!r:.60}; outcomes are numbers from 0 to 1"
        raise InputError(msg)
    return number
