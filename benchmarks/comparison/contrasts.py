"""Did it help? Each condition against a baseline, judged as one family; controls and re-run beside it.

What a condition is compared with is the mean of *all* runs of the baseline, those of its re-run
included. The family is declared before anything is run: every condition that is no control. Controls
and the re-run stand beside it; of them equivalence is asked. docs/statistics.md has the reasons.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from langgraft._core.errors import InputError
from langgraft.benchmarks.comparison.estimates import (
    Estimate,
    Matrix,
    OrderEffects,
    fixed_items_estimate,
    mean_estimate,
    order_effects,
)
from langgraft.benchmarks.comparison.outcomes import (
    Metric,
    Outcomes,
    Scores,
    in_common,
    matrices,
    mean_of,
    read_outcomes,
)
from langgraft.benchmarks.comparison.power import detectable_difference
from langgraft.benchmarks.comparison.verdicts import (
    FEWEST_RUNS,
    LARGEST,
    MARGIN,
    SIGNIFICANCE,
    Better,
    Hypothesis,
    Verdict,
    holm,
)


def judge(
    estimate: Estimate | None, p: float, *, complete: bool, detectable: float | None = None
) -> Verdict:
    """Return the verdict on a difference.

    Args:
        estimate: The difference from the baseline; `None` where there is nothing to compare.
        p: Its p value: in a family the corrected one.
        complete: Whether no outcome is missing on either side.
        detectable: The true difference that would have been found; `None`: it is not asked.
    """
    if estimate is None or not complete:
        return "incomplete"
    if estimate.n_replicates < FEWEST_RUNS:
        return "too few runs"
    if p >= SIGNIFICANCE:
        too_small = detectable is not None and detectable > LARGEST
        return "too small" if too_small else "no detectable difference"
    return "helped" if estimate.value > 0 else "hurt"


def equivalent(estimate: Estimate, margin: float) -> bool | None:
    """Return whether a difference is none within plus or minus `margin`; `None`: it cannot be told.

    It is where two one-sided tests place the difference inside the margin (each at 5 %), and is not
    where its interval excludes 0. That an interval holds 0 shows nothing by itself.
    """
    if estimate.p_beyond(margin) < SIGNIFICANCE:
        return True
    return False if estimate.excludes_zero else None


def corrected(
    family: Sequence[tuple[Estimate | None, bool]], *, families: int = 1
) -> tuple[float, ...]:
    """Correct the p values of a declared family.

    Args:
        family: Each difference, and whether it is complete. What is not counts in the size of the
            family as if its p value were 1.
        families: As in `holm`.
    """
    values = [found.p if found and complete else 1.0 for found, complete in family]
    return holm(values, families=families)


@dataclass(frozen=True, slots=True)
class Contrast:
    """One condition against the baseline. `condition` is its name, `verdict` what the difference came to."""

    condition: str
    success: Metric
    """Mean outcome, on what the difference rests on."""
    baseline: Metric
    """That of all runs of the baseline on the same items; of the re-run, without its own."""
    difference: Metric
    """`success` minus `baseline`; paired by item."""
    p_adjusted: float | None
    """By Holm; `None` outside the family, and while incomplete."""
    detectable: float | None
    """True difference that would have been found with a probability of 80 % at the first step of
    Holm's procedure; infinite where none would have been."""
    verdict: Verdict
    overturned_by: tuple[str, ...] = ()
    """Runs of the baseline without any of which the verdict would be another: it is `unclear`."""
    verdict_of_others: Verdict | None = None
    """What the verdict would be with the order effects of the others alone; `None` with fewer than
    three conditions. Another verdict puts in doubt that orders act alike on all of them."""
    order_sd: float | None = None
    """Standard deviation of its own order effects; `None` with fewer than two runs."""
    inert: bool = True
    """Whether nothing in it should make a difference, if it is a control."""

    @property
    def estimate(self) -> Estimate | None:
        """The difference."""
        return self.difference.estimate

    def equivalent(self, margin: float) -> bool | None:
        """Return whether it is the baseline's equal within `margin`; `None`: it cannot be told."""
        if self.estimate is None or self.verdict == "incomplete":
            return None
        return equivalent(self.estimate, margin)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of every condition, and how nearly nothing turned out to be nothing."""

    family: tuple[Contrast, ...]
    """The confirmatory contrasts, corrected as one family."""
    controls: tuple[Contrast, ...] = ()
    """Contrasts outside of it."""
    rerun: Contrast | None = None
    """The baseline once more with other samples, against the baseline (the A/A comparison)."""
    margin: float = MARGIN
    """Differences within plus or minus this count as none."""

    @property
    def beside(self) -> tuple[Contrast, ...]:
        """Contrasts outside the family: the re-run, then the controls."""
        return (*(() if self.rerun is None else (self.rerun,)), *self.controls)

    @property
    def quiet(self) -> bool | None:
        """Whether the re-run is equivalent to the baseline; `None` if that cannot be told."""
        return None if self.rerun is None else self.holds(self.rerun)

    def holds(self, control: Contrast) -> bool | None:
        """Return whether a control is equivalent to the baseline; `None` if that cannot be told."""
        return control.equivalent(self.margin)

    def __getitem__(self, condition: str) -> Contrast:
        """Return the contrast of a condition.

        Raises:
            KeyError: There is none of that name.
        """
        for each in (*self.family, *self.beside):
            if each.condition == condition:
                return each
        raise KeyError(condition)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of plain values for each contrast, as for a frame or a CSV file."""
        roles = [("condition", each) for each in self.family]
        roles += [("control" if each in self.controls else "rerun", each) for each in self.beside]
        return [{"role": role, **self._row(each)} for role, each in roles]

    def _row(self, found: Contrast) -> dict[str, Any]:
        success, baseline, estimate = (
            each.estimate for each in (found.success, found.baseline, found.difference)
        )
        told = ("low", "high", "these_orders", "p", "n_items", "n_replicates", "method")
        return {
            "condition": found.condition,
            "done": found.difference.done,
            "planned": found.difference.planned,
            "success": None if success is None else success.value,
            "baseline": None if baseline is None else baseline.value,
            "difference": None if estimate is None else estimate.value,
            **{name: None if estimate is None else getattr(estimate, name) for name in told},
            "p_adjusted": found.p_adjusted,
            "detectable": found.detectable,
            "verdict": found.verdict,
            "overturned_by": found.overturned_by,
            "verdict_of_others": found.verdict_of_others,
            "order_sd": found.order_sd,
            "equivalent": self.holds(found),
        }


def compare(
    outcomes: Any,
    *,
    baseline: str,
    controls: Sequence[str] = (),
    rerun: str | None = None,
    margin: float = MARGIN,
) -> Comparison:
    """Compare every condition with a baseline.

    Args:
        outcomes: Numbers from 0 to 1, such as success or failure. Either a frame (of pandas, polars,
            or a mapping of columns) or rows, with `item`, `run`, `condition` and `outcome`; or by
            condition an array, items in rows and runs in columns; or by condition the outcomes by
            run and item. What is missing may be left out, `None` or NaN.
        baseline: The condition that the others are compared with. Its runs, and those of `rerun`, are
            mere samples; a run of any other condition may shift all its items together.
        controls: Conditions that should make no difference.
        rerun: The baseline once more, with other samples.
        margin: Difference up to which a control counts as none.

    Raises:
        InputError: Something given is wrong; the message says what and where.
        MissingExtraError: The extra `bench` is not installed.
    """
    found = read_outcomes(outcomes)
    _check_roles(found, baseline, controls, rerun, margin)
    return compare_outcomes(found, baseline=baseline, controls=controls, rerun=rerun, margin=margin)


def _check_roles(
    found: Collection[str], baseline: str, controls: Sequence[str], rerun: str | None, margin: float
) -> None:
    if isinstance(controls, str):
        msg = f"`controls` is a list of conditions, got the text {controls!r}"
        raise InputError(msg)
    named = [("baseline", baseline), *(("control", each) for each in controls)]
    named += [] if rerun is None else [("re-run", rerun)]
    seen: dict[str, str] = {}
    for role, name in named:
        if name not in found:
            there = ", ".join(map(repr, found))
            msg = f"the {role} {name!r} has no outcomes; there are those of {there}"
            raise InputError(msg)
        if name in seen:
            msg = (
                f"condition {name!r} is named as {seen[name]} and as {role}: it can be one of them"
            )
            raise InputError(msg)
        seen[name] = role
    if not isinstance(margin, int | float) or not 0 < margin < 1:
        msg = f"`margin` is a difference between 0 and 1, such as 0.1, got {margin!r}"
        raise InputError(msg)


def compare_outcomes(
    outcomes: Mapping[str, Outcomes],
    *,
    baseline: str,
    controls: Sequence[str] = (),
    rerun: str | None = None,
    margin: float = MARGIN,
    active: Collection[str] = (),
    families: int = 1,
) -> Comparison:
    """Compare conditions whose outcomes a study has read already.

    Args:
        outcomes: By condition.
        baseline: As in `compare`.
        controls: As in `compare`.
        rerun: As in `compare`.
        margin: As in `compare`.
        active: Controls that may well make a difference: no equivalence is asked of them.
        families: Families that the study judges, this one included: as in `holm`.
    """
    untreated = {baseline, *(() if rerun is None else (rerun,))}
    beside = {*untreated, *controls}
    sides = _Sides(outcomes, untreated, families)
    again = sides.beside([] if rerun is None else [rerun])
    return Comparison(
        family=sides.family([name for name in outcomes if name not in beside]),
        controls=tuple(
            replace(each, inert=each.condition not in active) for each in sides.beside(controls)
        ),
        rerun=again[0] if again else None,
        margin=margin,
    )


class _Sides:
    """Conditions beside their baseline.

    Args:
        outcomes: By condition.
        untreated: Names of the baseline and of its re-run.
        families: Families that the study judges.
    """

    def __init__(
        self, outcomes: Mapping[str, Outcomes], untreated: Collection[str], families: int
    ) -> None:
        self._outcomes, self._families = outcomes, families
        self._untreated = {name: outcomes[name] for name in sorted(untreated)}
        self._runs = {
            (name, run): found
            for name, each in self._untreated.items()
            for run, found in each.scores.items()
            if found
        }

    def family(self, names: Sequence[str]) -> tuple[Contrast, ...]:
        """Compare a declared family.

        A condition with missing outcomes counts in the size of the family and is not tested.
        """
        sides = self._sides(names)
        estimates = _estimates(sides)
        size = len(sides) * self._families
        pairs = zip(sides, estimates, strict=True)
        contrasts = [side.contrast(estimate, size) for side, estimate in pairs]
        adjusted = self._adjusted(sides, estimates)
        reach = [each.detectable for each in contrasts]
        verdicts = self._verdicts(sides, estimates, reach)
        without = {
            run: self._verdicts(left, _estimates(left), reach)
            for run in (self._runs if len(self._runs) > 1 else ())
            for left in [self._sides(names, run)]
        }
        found = []
        for place, side in enumerate(sides):
            against = [run for run, each in without.items() if each[place] != verdicts[place]]
            own = None if side.values is None else order_effects([side.values])
            contrast = replace(
                contrasts[place],
                p_adjusted=adjusted[place] if side.complete else None,
                verdict="unclear" if against else verdicts[place],
                overturned_by=tuple(f"{n} {self._outcomes[n].label(run)}" for n, run in against),
                order_sd=None if own is None else math.sqrt(own.variance),
            )
            values = [each.values for each in sides if each is not side and each.values is not None]
            if own is not None and len(values) > 1:
                alone = [*estimates]
                alone[place] = side.estimate(order_effects(values))
                contrast = replace(
                    contrast, verdict_of_others=self._verdicts(sides, alone, reach)[place]
                )
            found.append(contrast)
        return tuple(found)

    def beside(self, names: Sequence[str]) -> tuple[Contrast, ...]:
        """Compare conditions outside the family, by their bare p values."""
        found = []
        sides = self._sides(names)
        for side, estimate in zip(sides, _estimates(sides), strict=True):
            contrast, p = side.contrast(estimate, 1), estimate.p if estimate else 1.0
            verdict = judge(estimate, p, complete=side.complete, detectable=contrast.detectable)
            found.append(replace(contrast, verdict=verdict))
        return tuple(found)

    def _adjusted(
        self, sides: Sequence["_Side"], estimates: Sequence[Estimate | None]
    ) -> tuple[float, ...]:
        pairs = zip(sides, estimates, strict=True)
        known = [(found, side.complete) for side, found in pairs]
        return corrected(known, families=self._families)

    def _verdicts(
        self,
        sides: Sequence["_Side"],
        estimates: Sequence[Estimate | None],
        reach: Sequence[float | None],
    ) -> list[Verdict]:
        """Judge contrasts as one family, by their corrected p values and what they could have found."""
        adjusted = self._adjusted(sides, estimates)
        return [
            judge(found, p, complete=side.complete, detectable=effect)
            for side, found, p, effect in zip(sides, estimates, adjusted, reach, strict=True)
        ]

    def _sides(
        self, names: Sequence[str], left_out: tuple[str, int] | None = None
    ) -> list["_Side"]:
        return [self._side(name, left_out) for name in names]

    def _side(self, name: str, left_out: tuple[str, int] | None) -> "_Side":
        return _Side(
            name,
            self._outcomes[name],
            [each for other, each in self._untreated.items() if other != name],
            [found for run, found in self._runs.items() if run != left_out and run[0] != name],
            shared_effects=name not in self._untreated,
        )


def _estimates(sides: Sequence["_Side"]) -> list[Estimate | None]:
    """Estimate differences as one family: what orders do is pooled over those that have any."""
    orders = order_effects(
        side.values for side in sides if side.shared_effects and side.values is not None
    )
    return [side.estimate(orders) for side in sides]


class _Side:
    """A condition beside the baseline: its outcomes less the mean of the baseline's runs.

    Args:
        condition: Its name.
        outcomes: Its outcomes.
        base: What it is compared with.
        runs: Runs of that which count.
        shared_effects: Whether its runs may shift all their items together.
    """

    def __init__(
        self,
        condition: str,
        outcomes: Outcomes,
        base: Sequence[Outcomes],
        runs: Sequence[Mapping[str, float]],
        *,
        shared_effects: bool,
    ) -> None:
        self._condition, self._outcomes, self._base = condition, outcomes, base
        self.shared_effects = shared_effects
        self.complete = all(each.done == each.planned for each in (outcomes, *base))
        untreated = dict(enumerate(runs))
        shared = frozenset.intersection(*map(frozenset, runs)) if runs else frozenset()
        self._treated: Scores = in_common([outcomes.scores], shared)[0]
        tested = frozenset(next(iter(self._treated.values()), {}))
        self._untreated: Scores = in_common([untreated], tested)[0]
        ours, theirs = matrices([self._treated]), matrices([self._untreated])
        self.values: Matrix | None = None
        if ours is not None and theirs is not None:
            self.values = ours[0] - theirs[0].mean(axis=1, keepdims=True)

    def estimate(self, orders: OrderEffects | None) -> Estimate | None:
        """Estimate the difference with these order effects."""
        if self.values is None:
            return None
        shared = self.shared_effects
        return mean_estimate(self.values, bounds=(-1.0, 1.0), shared_effects=shared, orders=orders)

    def contrast(self, estimate: Estimate | None, size: int) -> Contrast:
        """Return the contrast, one of `size` that share a level; not judged yet."""
        orders = None if estimate is None else estimate.orders
        success = mean_of(self._treated, shared_effects=self.shared_effects, orders=orders)
        baseline = mean_of(self._untreated, shared_effects=False)
        detectable = None
        if estimate is not None:
            assert success is not None
            assert baseline is not None
            rates = baseline.value, success.value
            detectable = detectable_difference(estimate, contrasts=size, rates=rates)
        ours, n = self._outcomes, self._outcomes.n_items
        done, planned = (sum(getattr(b, name) for b in self._base) for name in ("done", "planned"))
        return Contrast(
            self._condition,
            Metric(success, ours.done, ours.planned, n),
            Metric(baseline, done, planned, max((each.n_items for each in self._base), default=0)),
            Metric(estimate, ours.done + done, ours.planned + planned, n),
            p_adjusted=None,
            detectable=detectable,
            verdict="incomplete",
        )


# What a plan registers ---------------------------------------------------------------------------

Decision: TypeAlias = Literal["supported", "refuted", "undecided"]
"""`supported`: the interval lies where the hypothesis says, `refuted`: where it says not; else `undecided`."""


@dataclass(frozen=True)
class Difference:
    """What a hypothesis is judged by, made of the same values as a study's own contrasts."""

    values: Matrix | None
    """Treated less baseline, items by observations; `None`: there is nothing to compare."""
    complete: bool
    """Whether no outcome is missing on either side."""
    runs: int
    """Runs that were played; of those with the same prompts only one is an observation."""
    rows: Sequence[Sequence[float]] | None = None
    """The values of each item, where items differ in their runs; `None`: as in `values`."""
    without: tuple[Matrix | None, ...] = ()
    """The values without each single run of a baseline that is a mere sample."""
    shared_effects: bool = True
    """As in `mean_estimate`."""
    most: float = 1.0
    """The largest a difference can be, either way."""
    better: Better | None = "higher"
    scale: float = 100.0
    """What values are multiplied by when they are written: of shares, for points."""
    digits: int = 1
    why: str = ""
    """Why nothing can be tested, where there is more to say than that it is incomplete."""


def difference_of(
    treated: Outcomes, base: Sequence[Outcomes], *, paired: bool, shared_effects: bool = True
) -> Difference:
    """Return the difference of one condition from others, as a `Contrast` has it.

    Args:
        treated: The condition.
        base: What it is compared with.
        paired: Whether both were trained, in the same orders: then runs are paired too (one of `base`).
            Else the mean of all their runs is subtracted.
        shared_effects: As in `mean_estimate`.
    """
    runs = {(n, run): row for n, one in enumerate(base) for run, row in one.scores.items() if row}
    side = _Side("", treated, base, list(runs.values()), shared_effects=shared_effects)
    played = sum(map(bool, treated.scores.values()))
    if paired:
        found = matrices([treated.scores, base[0].scores])
        return Difference(None if found is None else found[0] - found[1], side.complete, played)
    without = [
        _Side(
            "",
            treated,
            base,
            [row for at, row in runs.items() if at != left],
            shared_effects=shared_effects,
        )
        for left in (runs if len(runs) > 1 else ())
    ]
    return Difference(
        side.values,
        side.complete,
        played,
        without=tuple(each.values for each in without),
        shared_effects=shared_effects,
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a hypothesis that a plan registers."""

    hypothesis: Hypothesis
    difference: Difference
    estimate: Estimate | None
    p_adjusted: float | None
    """The smaller of two: that it is so, and that it is not; by Holm over its family."""
    alpha: float
    """What the family's correction leaves of its level for this one."""
    interval: tuple[float, float] | None
    """The interval at `alpha`, which the verdict goes by."""
    verdict: Decision
    why: str = ""
    """Why it is undecided, where that is not the interval's doing."""


_Weighed: TypeAlias = tuple[Estimate | None, float, float, Decision]
"""Estimate, corrected p value, level that is left, decision."""


def judge_hypotheses(registered: Sequence[tuple[Hypothesis, Difference]]) -> tuple[Judged, ...]:
    """Judge what a plan registers: each family corrected by Holm, each interval held to its margin.

    What is incomplete counts in its family as if its p value were 1. What order effects do is pooled
    over the hypotheses of a family by one measure. A verdict that would be another without one of a
    baseline's runs is none.
    """
    families: dict[str, list[int]] = {}
    for place, (hypothesis, _) in enumerate(registered):
        families.setdefault(hypothesis.family, []).append(place)
    found: dict[int, Judged] = {}
    for places in families.values():
        family = [registered[place] for place in places]
        judged = _judged(family)
        lengths = [len(difference.without) for _, difference in family]
        others = [_judged(family, left) for left in range(max(lengths))]
        for n, place in enumerate(places):
            fickle = any(
                other[n][3] != judged[n][3]
                for left, other in enumerate(others)
                if left < lengths[n]
            )
            found[place] = _tested(*registered[place], judged[n], fickle=fickle)
    return tuple(found[place] for place in range(len(registered)))


def _tested(
    hypothesis: Hypothesis, difference: Difference, judged: _Weighed, *, fickle: bool
) -> Judged:
    estimate, p, alpha, verdict = judged
    why = difference.why
    if not why and not difference.complete:
        why = "incomplete"
    elif not why and estimate is None:
        why = "there is nothing to compare"
    elif not why and difference.runs < FEWEST_RUNS:
        why = f"fewer than {FEWEST_RUNS} runs"
    elif not why and fickle:
        why = "without one of the baseline's runs the verdict would be another"
    ends = None
    if estimate is not None:
        low, high = estimate.interval(alpha)
        ends = max(low, -difference.most), min(high, difference.most)
    return Judged(
        hypothesis,
        difference,
        estimate,
        p if estimate is not None and difference.complete else None,
        alpha,
        ends,
        "undecided" if why else verdict,
        why,
    )


def _judged(
    family: Sequence[tuple[Hypothesis, Difference]], left_out: int | None = None
) -> list[_Weighed]:
    """Judge a family, with one run of each baseline left out where it has so many."""
    values = [
        each.without[left_out]
        if left_out is not None and left_out < len(each.without)
        else each.values
        for _, each in family
    ]
    pools = {
        name: order_effects(
            matrix
            for (h, d), matrix in zip(family, values, strict=True)
            if h.measure == name and d.shared_effects and matrix is not None
        )
        for name in {h.measure for h, _ in family}
    }
    estimates = [
        None if matrix is None else _estimated(h, d, matrix, pools[h.measure])
        for (h, d), matrix in zip(family, values, strict=True)
    ]
    sides = [
        _p_values(h, each, d.better) if each is not None and d.complete else (1.0, 1.0)
        for (h, d), each in zip(family, estimates, strict=True)
    ]
    alpha, p_values = family[0][0].alpha, [min(1.0, *pair) for pair in sides]
    adjusted, left, stopped = holm(p_values), [alpha] * len(family), False
    step = alpha / len(family)
    for rank, place in enumerate(sorted(range(len(family)), key=p_values.__getitem__)):
        step = step if stopped else alpha / (len(family) - rank)
        stopped |= adjusted[place] >= alpha
        left[place] = step
    return [
        (
            estimates[n],
            adjusted[n],
            left[n],
            "undecided"
            if adjusted[n] >= alpha
            else "supported"
            if sides[n][0] < sides[n][1]
            else "refuted",
        )
        for n in range(len(family))
    ]


def _estimated(
    hypothesis: Hypothesis, difference: Difference, values: Matrix, orders: OrderEffects | None
) -> Estimate | None:
    most = difference.most
    if hypothesis.estimator == "these_items":
        rows = difference.rows or [list(row) for row in values]
        return fixed_items_estimate(rows, most)
    general = hypothesis.estimator == "general"
    shared = general and difference.shared_effects
    return mean_estimate(values, bounds=(-most, most), shared_effects=shared, orders=orders)


def _p_values(
    hypothesis: Hypothesis, found: Estimate, better: Better | None
) -> tuple[float, float]:
    """Return the p values of what a hypothesis says, and of the opposite: below alpha where the interval shows it."""
    m = hypothesis.margin
    match hypothesis.direction:
        case "greater":
            pair = found.p_above(m), found.p_below(m)
        case "less":
            pair = found.p_below(-m), found.p_above(-m)
        case "non_inferior" if better == "lower":
            pair = found.p_below(m), found.p_above(m)
        case "non_inferior":
            pair = found.p_above(-m), found.p_below(-m)
        case "different" | "equivalent":
            beyond = min(found.p_above(m), found.p_below(-m))
            within = max(found.p_above(-m), found.p_below(m)) if m else 1.0
            pair = (beyond, within) if hypothesis.direction == "different" else (within, beyond)
    return 2 * pair[0], 2 * pair[1]
