"""Each condition of an agent against no memory: pairs of one competition and one seed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from langgraft.benchmarks.comparison.contrasts import corrected, judge
from langgraft.benchmarks.comparison.estimates import (
    Estimate,
    OrderEffects,
    fixed_items_estimate,
    mean_estimate,
    order_effects,
)
from langgraft.benchmarks.comparison.outcomes import Pair, matrix_of, rows_of
from langgraft.benchmarks.mle.measure import Measure
from langgraft.benchmarks.mle.measures import measures_of
from langgraft.benchmarks.mle.run_set import Searches
from langgraft.benchmarks.mle.runs import competition_of, condition_of, seed_of

Verdict: TypeAlias = Literal[
    "better",
    "worse",
    "changed",
    "unclear",
    "no detectable difference",
    "too few runs",
    "incomplete",
]
"""`better`, `worse`, `changed` (where neither direction is good): also after correction;
`unclear`: the interval excludes 0, and the corrected p value does not hold; `too few runs`: fewer than
`FEWEST_RUNS` seeds, which say next to nothing of how seeds differ."""


@dataclass(frozen=True, slots=True)
class Level:
    """A measure under one condition."""

    condition: str
    measure: Measure
    estimate: Estimate | None
    """Over competitions and seeds; `None` where nothing was measured."""
    n: int
    """Searches it rests on."""
    undefined: int
    """Searches that have no such number."""
    planned: int
    censored: int
    """Searches without any valid program: of the first valid node, a lower bound is known."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference of a condition from no memory."""

    condition: str
    measure: Measure
    estimate: Estimate | None
    """Over other competitions and other seeds; `None` without a pair."""
    same_tasks: Estimate | None
    """Over other seeds of these competitions; `None` with fewer than two seeds of one of them."""
    pairs: int
    """Pairs it rests on."""
    undefined: int
    """Pairs left out because one of the two searches has no such number."""
    planned: int
    p_adjusted: float | None = None
    """Of `estimate`, by Holm over the declared family; `None` outside, and while incomplete."""
    p_same_tasks: float | None = None
    """The same of `same_tasks`, which answers another question and is a family of its own."""

    @property
    def complete(self) -> bool:
        """Whether both searches of every planned pair ended."""
        return self.pairs + self.undefined == self.planned

    @property
    def sharpest(self) -> Estimate | None:
        """The estimate for these competitions where there is one, else that for all."""
        return self.estimate if self.same_tasks is None else self.same_tasks

    @property
    def verdict(self) -> Verdict:
        """What may be said of other competitions and seeds."""
        return self._verdict(self.estimate, self.p_adjusted)

    @property
    def verdict_same_tasks(self) -> Verdict:
        """What may be said of these competitions with other seeds."""
        return self._verdict(self.same_tasks, self.p_same_tasks)

    @property
    def sharpest_verdict(self) -> Verdict:
        """What may be said of `sharpest`."""
        return self.verdict if self.same_tasks is None else self.verdict_same_tasks

    def _verdict(self, found: Estimate | None, p: float | None) -> Verdict:
        if not self.complete:
            return "incomplete"
        if found is None:
            return "no detectable difference"
        judged = judge(found, found.p if p is None else p, complete=True)
        if judged == "too few runs":
            return judged
        if not excludes_zero(found):
            return "no detectable difference"
        if p is not None and judged == "no detectable difference":
            return "unclear"
        if self.measure.better is None:
            return "changed"
        return "better" if improves(found, self.measure) else "worse"


def excludes_zero(found: Estimate) -> bool:
    """Say whether an interval lies on one side of 0."""
    return found.low > 0 or found.high < 0


def improves(found: Estimate, measure: Measure) -> bool:
    """Say whether a difference goes the way that is good."""
    return measure.better is not None and (found.value > 0) == (measure.better == "higher")


def levels(searches: Searches, measure: Measure) -> tuple[Level, ...]:
    """Return a measure under every condition."""
    return tuple(_level(searches, condition, measure) for condition in searches.conditions)


def _level(searches: Searches, condition: str, measure: Measure) -> Level:
    values = values_of(searches, condition, measure)
    known = {pair: value for pair, value in values.items() if value is not None}
    return Level(
        condition=condition,
        measure=measure,
        estimate=_estimate(known, _bounds(measure.most(searches))),
        n=len(known),
        undefined=len(values) - len(known),
        planned=searches.n_planned(condition),
        censored=sum(each.behavior.first_valid.censored for each in searches.of(condition)),
    )


def _estimate(
    values: Mapping[Pair, float], bounds: tuple[float, float], orders: OrderEffects | None = None
) -> Estimate | None:
    matrix = matrix_of(values)
    return None if matrix is None else mean_estimate(matrix, bounds=bounds, orders=orders)


def _bounds(most: float) -> tuple[float, float]:
    """Return the least and the largest value; what has no upper bound may be negative, too."""
    return (0.0, most) if math.isfinite(most) else (-math.inf, math.inf)


def contrasts(searches: Searches) -> tuple[Contrast, ...]:
    """Compare every condition with no memory by every measure; correct the declared family.

    The family is declared before anything is run, one for each agent: every memory by every
    confirmatory measure.
    Controls stand beside it. The two questions, of other competitions and of these, are two
    families. Contrasts that are incomplete have no corrected p value, and count in the correction
    of others as if theirs were 1.
    """
    measures = measures_of(searches)
    orders = {measure.name: _orders(searches, measure) for measure in measures}
    found = [
        _contrast(searches, condition, measure, orders[measure.name])
        for condition in searches.compared
        for measure in measures
    ]
    family = [each for each in found if in_family(each, searches)]
    general = _adjusted(family, [each.estimate for each in family])
    same = _adjusted(family, [each.same_tasks for each in family])
    return tuple(
        replace(each, p_adjusted=general.get(_key(each)), p_same_tasks=same.get(_key(each)))
        for each in found
    )


def _orders(searches: Searches, measure: Measure) -> OrderEffects | None:
    """Pool what whole seeds differ by over the memories."""
    found = (matrix_of(known_differences(searches, name, measure)) for name in searches.memories)
    return order_effects(each for each in found if each is not None)


def _adjusted(
    family: Sequence[Contrast], estimates: Sequence[Estimate | None]
) -> dict[tuple[str, str], float]:
    """Correct a family by Holm; what is incomplete or has no estimate counts as if p were 1."""
    pairs = list(zip(family, estimates, strict=True))
    adjusted = corrected([(found, each.complete) for each, found in pairs])
    return {
        _key(each): p
        for (each, found), p in zip(pairs, adjusted, strict=True)
        if found is not None and each.complete
    }


def in_family(contrast: Contrast, searches: Searches) -> bool:
    """Say whether a contrast belongs to the declared family."""
    return contrast.measure.confirmatory and contrast.condition in searches.memories


def _key(contrast: Contrast) -> tuple[str, str]:
    return contrast.condition, contrast.measure.name


def values_of(searches: Searches, condition: str, measure: Measure) -> dict[Pair, float | None]:
    """Return a measure of every search of a condition that ended."""
    return {(each.competition, each.seed): measure.value(each) for each in searches.of(condition)}


def _planned_pairs(searches: Searches, condition: str) -> set[Pair]:
    def pairs(name: str) -> set[Pair]:
        return {
            (competition_of(spec), seed_of(spec))
            for spec in searches.planned
            if condition_of(spec) == name
        }

    return pairs(condition) & pairs(searches.baseline)


def differences(searches: Searches, condition: str, measure: Measure) -> dict[Pair, float | None]:
    """Return condition less no memory, by pair of which both searches ended.

    No memory is the mean of the baseline and of its re-runs with that seed; of a re-run itself it is
    the baseline.
    """
    reruns = () if condition in searches.roles.reruns else searches.roles.reruns
    treated, baseline, *others = (
        values_of(searches, name, measure) for name in (condition, searches.baseline, *reruns)
    )
    found: dict[Pair, float | None] = {}
    for pair, value in treated.items():
        if pair in baseline:
            bare = [baseline[pair], *(each.get(pair) for each in others)]
            known = [each for each in bare if each is not None]
            less = None if value is None or not known else value - math.fsum(known) / len(known)
            found[pair] = less
    return found


def known_differences(searches: Searches, condition: str, measure: Measure) -> dict[Pair, float]:
    """Return the differences that are defined."""
    found = differences(searches, condition, measure)
    return {pair: value for pair, value in found.items() if value is not None}


def _contrast(
    searches: Searches, condition: str, measure: Measure, orders: OrderEffects | None
) -> Contrast:
    all_pairs = differences(searches, condition, measure)
    known = known_differences(searches, condition, measure)
    most = measure.most(searches)
    orders = orders if condition in searches.memories else None
    return Contrast(
        condition=condition,
        measure=measure,
        estimate=_estimate(known, (-most, most), orders),
        same_tasks=fixed_items_estimate([*rows_of(known).values()], most),
        pairs=len(known),
        undefined=len(all_pairs) - len(known),
        planned=len(_planned_pairs(searches, condition)),
    )
