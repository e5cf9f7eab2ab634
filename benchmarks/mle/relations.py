"""Do fewer bugs go with a better result? Tasks and modalities one by one (§4.3, §4.5)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from langgraft._core.extras import require
from langgraft.benchmarks.harness.statistics import CONFIDENCE
from langgraft.benchmarks.mle.contrasts import differences
from langgraft.benchmarks.mle.measures import measure_named
from langgraft.benchmarks.mle.searches import Searches
from langgraft.benchmarks.mle.spreads import Spread, mean_and_sem

SAME: Final = 1e-9
"""Changes of a task's mean below this are none."""

SHOWN: Final = ("bug_rate", "first_valid", "best_metric", "any_medal")
"""Measures that are shown task by task."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r with its interval."""

    r: float | None
    """`None` where fewer than three points vary in both."""
    low: float
    high: float
    n: int


def pearson(xs: Sequence[float], ys: Sequence[float]) -> Correlation:
    """Correlate two lists; the interval is Fisher's (1921), and needs four points."""
    n = len(xs)
    # Two points always lie on a line, and rounding of equal means is no spread.
    if n < 3 or min(np.ptp(xs), np.ptp(ys)) < SAME:  # noqa: PLR2004
        return Correlation(None, -1.0, 1.0, n)
    stats: Any = require("scipy.stats", extra="bench", purpose="The analysis")
    found = stats.pearsonr(xs, ys)
    if abs(found.statistic) > 1 - SAME:
        return Correlation(float(found.statistic), -1.0, 1.0, n)
    low, high = map(float, found.confidence_interval(CONFIDENCE))
    return Correlation(float(found.statistic), low, high, n)


@dataclass(frozen=True, slots=True)
class Relation:
    """Bug reduction and final metric of a condition against no memory."""

    condition: str
    by_task: Correlation
    """Over competitions, each the mean of its seeds: the paper's r = 0.21 over 22."""
    by_pair: Correlation
    """Over pairs of competition and seed, which are not independent within a competition."""
    up: int
    """Competitions whose final metric is better in the mean."""
    down: int
    same: int
    undefined: int
    """Competitions without a pair in which both searches have a valid program."""


def relations(searches: Searches) -> tuple[Relation, ...]:
    """Relate bug reduction to the change of the best validation metric, for every condition."""
    return tuple(_relation(searches, name) for name in searches.compared)


def _relation(searches: Searches, condition: str) -> Relation:
    bugs, final = (
        differences(searches, condition, measure_named(searches, name))
        for name in ("bug_rate", "best_metric")
    )
    both = [
        (competition, -less, change)
        for (competition, seed), less in sorted(bugs.items())
        if less is not None and (change := final[competition, seed]) is not None
    ]
    reduced = _means((name, less) for name, less, _ in both)
    changed = _means((name, change) for name, _, change in both)
    return Relation(
        condition=condition,
        by_task=pearson(list(reduced.values()), list(changed.values())),
        by_pair=pearson([less for _, less, _ in both], [change for *_, change in both]),
        up=sum(change > SAME for change in changed.values()),
        down=sum(change < -SAME for change in changed.values()),
        same=sum(abs(change) <= SAME for change in changed.values()),
        undefined=len({name for name, _ in bugs} - set(changed)),
    )


def _means(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for name, value in values:
        found.setdefault(name, []).append(value)
    return {name: math.fsum(each) / len(each) for name, each in found.items()}


@dataclass(frozen=True, slots=True)
class TaskDelta:
    """What a condition changed in one competition."""

    competition: str
    modality: str
    condition: str
    deltas: Mapping[str, Spread | None]
    """By measure of `SHOWN`: mean over seeds of condition less no memory."""
    searches: int
    planned: int


def task_deltas(searches: Searches) -> tuple[TaskDelta, ...]:
    """Return what every condition changed in every competition."""
    return tuple(
        _task_delta(searches, competition, condition)
        for competition in searches.competitions
        for condition in searches.compared
    )


def _task_delta(searches: Searches, competition: str, condition: str) -> TaskDelta:
    deltas: dict[str, Spread | None] = {}
    for name in SHOWN:
        pairs = differences(searches, condition, measure_named(searches, name))
        found = [
            v for (task, _), v in sorted(pairs.items()) if task == competition and v is not None
        ]
        deltas[name] = mean_and_sem(found) if found else None
    return TaskDelta(
        competition=competition,
        modality=modality_of(searches, competition),
        condition=condition,
        deltas=deltas,
        searches=len(searches.of(condition, competition)),
        planned=searches.n_planned(condition, competition),
    )


def modality_of(searches: Searches, competition: str) -> str:
    """Return the modality of a competition; empty while no run of it ended."""
    found = (each.modality for each in searches.done if each.competition == competition)
    return next(found, "")


@dataclass(frozen=True, slots=True)
class ModalityDelta:
    """What a condition changed in the competitions of one modality."""

    modality: str
    condition: str
    deltas: Mapping[str, Spread | None]
    """Mean over competitions of their means over seeds; the error is over competitions.

    With ddof = 1, other than the paper's Table 5 (see `published`).
    """


def modality_deltas(tasks: Sequence[TaskDelta]) -> tuple[ModalityDelta, ...]:
    """Average what changed over the competitions of a modality."""
    keys = dict.fromkeys((each.modality, each.condition) for each in tasks if each.modality)
    return tuple(
        ModalityDelta(
            modality, condition, {name: _over(tasks, modality, condition, name) for name in SHOWN}
        )
        for modality, condition in sorted(keys, key=lambda key: key[0])
    )


def _over(tasks: Sequence[TaskDelta], modality: str, condition: str, name: str) -> Spread | None:
    found = [
        delta.mean
        for each in tasks
        if (each.modality, each.condition) == (modality, condition)
        and (delta := each.deltas[name]) is not None
    ]
    return mean_and_sem(found) if found else None
