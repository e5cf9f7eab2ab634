"""Conditions compared by several measures of any range: rates, counts, scores.

`contrasts` asks of success whether it changed. Here each pair of item and run has a number for each
measure, or has none, and two questions are answered: what other items and other runs would show, and
what other runs of these very items would. The family is declared before anything is run: every
condition that is no control, by every confirmatory measure; the two questions are a family each.
"""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from langgraft.benchmarks.comparison.verdicts import MARGIN, Better

Change: TypeAlias = Literal[
    "better",
    "worse",
    "changed",
    "unclear",
    "no detectable difference",
    "too few runs",
    "incomplete",
]
"""`better`, `worse`, `changed` (where neither direction is good): also after correction;
`unclear`: the interval excludes 0, and the corrected p value does not hold; `too few runs`: fewer
than `FEWEST_RUNS`, which say next to nothing of how runs differ."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a run. `name` in tables, `label` and `unit` on pages, printed with `digits` decimals."""

    name: str
    label: str
    unit: str
    better: Better | None = None
    """`None`: neither more nor less is good in itself."""
    confirmatory: bool = True
    """Whether it is in the declared family, whose p values are corrected together."""
    scale: float = 1.0
    """What values are multiplied by when they are written: 100 for percent."""
    digits: int = 2

    def improves(self, found: Estimate) -> bool:
        """Say whether a difference goes the way that is good."""
        return self.better is not None and (found.value > 0) == (self.better == "higher")


@dataclass(frozen=True, slots=True)
class Roles:
    """What conditions are to a comparison; the rest are memories."""

    baseline: str = "off"
    """The condition without memory, which all others are compared with."""
    reruns: tuple[str, ...] = ("rerun",)
    """Without memory once more, with other samples: what chance alone does."""
    placebos: tuple[str, ...] = ("placebo",)
    """Memories that know nothing of use."""
    others: tuple[str, ...] = ("shuffled", "random")
    """Other controls: a true memory's entries, out of place."""
    margin: float = MARGIN
    """Difference in a rate up to which a control counts as equivalent to no memory."""

    @property
    def controls(self) -> frozenset[str]:
        """Conditions that are no memory: beside the family, never in it."""
        return frozenset((*self.reruns, *self.placebos, *self.others))

    def is_memory(self, condition: str) -> bool:
        """Say whether a condition is in the family."""
        return condition != self.baseline and condition not in self.controls

    def without(self, names: AbstractSet[str]) -> "Roles":
        """Return the roles without some controls: a part of a study may have none of them."""

        def kept(role: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for name in role if name not in names)

        return replace(
            self,
            reruns=kept(self.reruns),
            placebos=kept(self.placebos),
            others=kept(self.others),
        )


@dataclass(frozen=True, slots=True)
class Level:
    """A measure under one condition."""

    condition: str
    measure: Measure
    estimate: Estimate | None
    """Over items and runs; `None` where nothing was measured."""
    n: int
    """Pairs of item and run it rests on."""
    undefined: int
    """Pairs that have no such number."""
    planned: int


@dataclass(frozen=True, slots=True)
class MeasureContrast:
    """The difference of a condition from the baseline, by one measure.

    Of a `condition` by a `measure`; so many outcomes were `planned`, and `in_family` says whether it is
    corrected with the others.
    """

    condition: str
    measure: Measure
    estimate: Estimate | None
    """Over other items and other runs; `None` without a pair."""
    same_items: Estimate | None
    """Over other runs of these items; `None` with fewer than two runs of one of them."""
    pairs: int
    """Pairs it rests on."""
    undefined: int
    """Pairs left out because one of the two sides has no such number."""
    planned: int
    in_family: bool
    p_adjusted: float | None = None
    """Of `estimate`, by Holm over the declared family; `None` outside, and while incomplete."""
    p_same_items: float | None = None
    """The same of `same_items`, which answers another question and is a family of its own."""

    @property
    def complete(self) -> bool:
        """Whether both sides of every planned pair have ended."""
        return self.pairs + self.undefined == self.planned

    @property
    def sharpest(self) -> Estimate | None:
        """The estimate for these items where there is one, else that for all."""
        return self.estimate if self.same_items is None else self.same_items

    @property
    def verdict(self) -> Change:
        """What may be said of other items and runs."""
        return self._verdict(self.estimate, self.p_adjusted)

    @property
    def verdict_same_items(self) -> Change:
        """What may be said of these items with other runs."""
        return self._verdict(self.same_items, self.p_same_items)

    @property
    def sharpest_verdict(self) -> Change:
        """What may be said of `sharpest`."""
        return self.verdict if self.same_items is None else self.verdict_same_items

    def _verdict(self, found: Estimate | None, p: float | None) -> Change:
        if not self.complete:
            return "incomplete"
        if found is None:
            return "no detectable difference"
        judged = judge(found, found.p if p is None else p, complete=True)
        if judged == "too few runs":
            return judged
        if not found.excludes_zero:
            return "no detectable difference"
        if p is not None and judged == "no detectable difference":
            return "unclear"
        if self.measure.better is None:
            return "changed"
        return "better" if self.measure.improves(found) else "worse"


@dataclass(frozen=True)
class Measured:
    """One measure under all conditions of a study. The `measure`, and the `roles` of the conditions."""

    measure: Measure
    values: Mapping[str, Mapping[Pair, float | None]]
    """Condition → pair of item and run → its number; `None` where it has no such number."""
    planned: Mapping[str, frozenset[Pair]]
    """Condition → pairs that there should be."""
    most: float
    """The largest value there can be. The least is 0, or there is none of either."""
    roles: Roles = field(default_factory=Roles)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The measure under every condition."""
        return tuple(map(self._level, self.values))

    def _level(self, condition: str) -> Level:
        values = self.values[condition]
        known = _known(values)
        # What has no upper bound may be negative, too.
        bounds = (0.0, self.most) if math.isfinite(self.most) else (-math.inf, math.inf)
        return Level(
            condition=condition,
            measure=self.measure,
            estimate=_estimate(known, bounds),
            n=len(known),
            undefined=len(values) - len(known),
            planned=len(self.planned[condition]),
        )

    def differences(self, condition: str) -> dict[Pair, float | None]:
        """Return condition less baseline, by pair of which both sides ended.

        The baseline's number is the mean of its own and that of its re-runs; of a re-run itself it
        is the baseline's own.
        """
        reruns = () if condition in self.roles.reruns else self.roles.reruns
        baseline, *others = (self.values.get(n, {}) for n in (self.roles.baseline, *reruns))
        found: dict[Pair, float | None] = {}
        for pair, value in self.values[condition].items():
            if pair in baseline:
                bare = [baseline[pair], *(each.get(pair) for each in others)]
                known = [each for each in bare if each is not None]
                less = None if value is None or not known else value - math.fsum(known) / len(known)
                found[pair] = less
        return found

    def contrast(self, condition: str) -> MeasureContrast:
        """Compare a condition with the baseline; no p value is corrected yet."""
        found = self.differences(condition)
        known, memory = _known(found), self.roles.is_memory(condition)
        orders = self._orders if memory else None
        planned = self.planned[condition] & self.planned.get(self.roles.baseline, frozenset())
        return MeasureContrast(
            condition=condition,
            measure=self.measure,
            estimate=_estimate(known, (-self.most, self.most), orders),
            same_items=fixed_items_estimate([*rows_of(known).values()], self.most),
            pairs=len(known),
            undefined=len(found) - len(known),
            planned=len(planned),
            in_family=memory and self.measure.confirmatory,
        )

    @cached_property
    def _orders(self) -> OrderEffects | None:
        """What whole runs differ by, pooled over the memories."""
        memories = filter(self.roles.is_memory, self.values)
        found = (matrix_of(_known(self.differences(name))) for name in memories)
        return order_effects(each for each in found if each is not None)


def _known(values: Mapping[Pair, float | None]) -> dict[Pair, float]:
    return {pair: value for pair, value in values.items() if value is not None}


def _estimate(
    values: Mapping[Pair, float], bounds: tuple[float, float], orders: OrderEffects | None = None
) -> Estimate | None:
    matrix = matrix_of(values)
    return None if matrix is None else mean_estimate(matrix, bounds=bounds, orders=orders)


def compare_measures(measured: Sequence[Measured]) -> tuple[MeasureContrast, ...]:
    """Compare every condition with the baseline by every measure, and correct the declared family.

    Controls stand beside the family. What is incomplete has no corrected p value, and counts in the
    correction of the others as if its own were 1.

    Args:
        measured: The measures, each under the same conditions.
    """
    names = dict.fromkeys(name for each in measured for name in each.values)
    compared = [name for name in names if name != measured[0].roles.baseline]
    found = [each.contrast(condition) for condition in compared for each in measured]
    family = [each for each in found if each.in_family]
    general = corrected([(each.estimate, each.complete) for each in family])
    same = corrected([(each.same_items, each.complete) for each in family])
    adjusted = zip(general, same, strict=True)
    return tuple(_adjusted(each, *next(adjusted)) if each.in_family else each for each in found)


def _adjusted(found: MeasureContrast, general: float, same: float) -> MeasureContrast:
    if not found.complete:
        return found
    return replace(
        found,
        p_adjusted=None if found.estimate is None else general,
        p_same_items=None if found.same_items is None else same,
    )
