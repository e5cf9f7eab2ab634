"""Differences that can be trusted: over items *and* runs, corrected, with power (docs/statistics.md).

Outcomes are matrices of items by runs. Two things vary: items are a sample of those there could be, and
a run may shift all its items together, as another order of training does (an *order effect*). What orders
do is estimated once for a family of contrasts, from all of them, and is never tested away: the interval
averages over the order variances that the family's runs are compatible with. A second interval, *for these
orders*, asks only how other items would have come out.

Outcomes are fractions; nothing here knows percentage points. Everything but numpy belongs to the extra
`bench` and is imported where it is used.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from langgraft._core.lazy import require
from langgraft.benchmarks.comparison.verdicts import CONFIDENCE, FEWEST_RUNS

Matrix: TypeAlias = npt.NDArray[np.float64]
"""Items in rows, runs in columns."""

Method: TypeAlias = Literal["crossed", "items", "exact", "wilson", "unknown"]
"""How an interval was found.

`crossed`: items and runs both vary; `items`: only items do; `exact`: nothing varies, so only the
number of items says how far off the value can be; `wilson`: a proportion; `unknown`: one item that
varies, about which nothing can be said.
"""

ROUNDING = 1e-12
"""What float arithmetic adds to means of outcomes; a spread below it is none.

Thirds that are pooled and averaged differ by 1e-17, and taken at their word such a spread is
a standard error near zero: p values of 1e-113 from nothing.
"""

_NODES = 48
"""Points at which the chi-squared distribution of an order variance is averaged over."""
_RAREST = 0.05
"""Order variances that the runs make rarer than this are taken for the largest that is not: with
three runs of one memory they would widen intervals beyond 99 % coverage where orders do nothing."""


@dataclass(frozen=True, slots=True)
class OrderEffects:
    """How much whole runs differ, pooled over the contrasts of a family.

    That their orders vary alike is an assumption; `order_effects` of the other contrasts shows what
    comes of it without one's own.
    """

    spread: float
    """Variance of the means of runs."""
    noise: float
    """What of `spread` there would be if runs differed in single outcomes only."""
    df: float
    """Degrees of freedom of `spread`."""
    contrasts: int
    """Contrasts it is pooled over."""

    @property
    def variance(self) -> float:
        """Variance of the order effects, 0 where runs differ no more than their outcomes do."""
        return max(self.spread - self.noise, 0.0)


def order_effects(matrices: Iterable[Matrix]) -> OrderEffects | None:
    """Pool what whole runs differ by over the contrasts of a family.

    Contrasts of one study share their training orders, and with them part of the order effects: the
    degrees of freedom are those of as many *independent* contrasts as the runs show, at least those
    of one and at most those of all (the sphericity of Box 1954, by unbiased estimates of the traces).

    Args:
        matrices: Items by runs of each contrast, runs in the same order; those with fewer than two
            items or runs are passed over.

    Returns:
        `None` where no contrast has two runs.
    """
    known = [each for each in matrices if each.shape[0] > 1 and each.shape[1] > 1]
    if not known:
        return None
    freedom = [each.shape[1] - 1 for each in known]
    means = [each.mean(axis=0) for each in known]
    spread = [float(mean.var(ddof=1)) for mean in means]
    noise = [_within(each) / each.shape[0] for each in known]
    df = float(sum(freedom))
    if len(known) > 1 and min(freedom) == max(freedom) >= FEWEST_RUNS - 1:
        df = freedom[0] * _independent(np.array(means))
    return OrderEffects(
        float(np.average(spread, weights=freedom)),
        float(np.average(noise, weights=freedom)),
        df,
        len(known),
    )


def _independent(means: Matrix) -> float:
    """Return how many independent contrasts vary as these do: `tr(C)² / tr(C²)`, unbiased."""
    nu = means.shape[1] - 1
    covariance = np.cov(means)
    total, squares = float(np.trace(covariance)), float(np.square(covariance).sum())
    squared = nu**2 / ((nu - 1) * (nu + 2)) * (squares - total**2 / nu)
    most = float(len(means))
    if squared <= ROUNDING**2:
        return most
    return float(min(max((total**2 - 2 * squared / nu) / squared, 1.0), most))


def _within(values: Matrix) -> float:
    """Return the variance of outcomes within items between runs, without what whole runs share."""
    n, s = values.shape
    rest = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    return float(np.square(rest).sum() / ((n - 1) * (s - 1)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or a mean difference, with what is known about it.

    `value` rests on `n_items` and `n_replicates` (runs); `method` is how its interval came about.
    """

    value: float
    low: float
    """Lower end of the interval: other items and other orders."""
    high: float
    """Upper end of the interval."""
    p: float
    """Two-sided p value against zero."""
    se: float
    """Standard error; 0 where nothing varies."""
    df: float
    """Degrees of freedom: of the order variance, or of `se` where orders play no part."""
    n_items: int
    n_replicates: int
    seed_share: float
    """Share of the variance that is due to whole runs differing."""
    method: Method
    these_orders: tuple[float, float] = (math.nan, math.nan)
    """The interval for these orders: other items, the same runs."""
    within: float = 0.0
    """Variance of an item's outcome between runs."""
    items_variance: float = 0.0
    """Variance of the mean without what orders do: of items and their outcomes."""
    orders: OrderEffects | None = None
    """What runs differ by; `None` where runs are mere samples, or there is one."""

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.low > 0 or self.high < 0

    def p_beyond(self, margin: float) -> float:
        """Return the p value of the two one-sided tests (Schuirmann 1987) against ±`margin`.

        A small one says that the true value lies between them: the two are equivalent.
        """
        if self.method == "unknown":
            return 1.0
        if self.method == "exact" and not self.value:
            return (1 - min(margin, 1.0)) ** self.n_items
        inside = margin - abs(self.value)
        tail = _tail(self, abs(inside)) / 2
        return tail if inside > 0 else 1 - tail

    def p_above(self, bound: float) -> float:
        """Return the one-sided p value against the true value being at most `bound`.

        It is below `alpha / 2` where the interval at `alpha` lies above the bound.
        """
        return _one_sided(self, self.value - bound, self.value - self._reached[0])

    def p_below(self, bound: float) -> float:
        """Return the one-sided p value against the true value being at least `bound`."""
        return _one_sided(self, bound - self.value, self._reached[1] - self.value)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval that misses the true value in `alpha` of all cases, half on either side."""
        if self.method == "unknown":
            return self.low, self.high
        least, most = self._reached
        low = high = self.value
        if self.items_variance < ROUNDING**2:  # as in `_with_intervals`
            unseen = 1 - (alpha / 2) ** (1 / self.n_items)
            low, high = low - unseen * (low - least), high + unseen * (most - high)
        if self.method != "exact":
            reach = quantile(self, alpha)
            low, high = min(low, self.value - reach), max(high, self.value + reach)
        return low, high

    @property
    def _reached(self) -> tuple[float, float]:
        """The least and the greatest a value can be, of values that all agree: from their interval."""
        if self.items_variance >= ROUNDING**2 or self.method == "unknown":
            return -math.inf, math.inf
        unseen = 1 - ((1 - CONFIDENCE) / 2) ** (1 / self.n_items)
        low, high = self.these_orders
        return self.value - (self.value - low) / unseen, self.value + (high - self.value) / unseen


def _one_sided(found: Estimate, beyond: float, farthest: float) -> float:
    """Return how probable it is to be `beyond` a bound by chance.

    Args:
        found: The estimate.
        beyond: By how much it exceeds the bound; negative: it does not.
        farthest: How far on the bound's side values can be, where all agree.
    """
    if found.method == "unknown":
        return 1.0
    p = 0.0
    if found.items_variance < ROUNDING**2:
        p = max(0.0, 1 - beyond / farthest) ** found.n_items if beyond > 0 else 1.0
    if found.method == "exact":
        return p
    tail = _tail(found, abs(beyond)) / 2
    return max(p, tail if beyond > 0 else 1 - tail)


def paired_difference(
    treated: Matrix,
    baseline: Matrix,
    *,
    shared_effects: bool = True,
    orders: OrderEffects | None = None,
) -> Estimate:
    """Estimate the mean difference of two conditions over the same items and runs.

    Pairing by item removes the variance between easy and hard items (Miller 2024,
    arXiv 2411.00640, §4).

    Args:
        treated: Outcomes in 0..1, items by runs.
        baseline: The same items and runs under the other condition.
        shared_effects: As in `mean_estimate`.
        orders: As in `mean_estimate`.

    Raises:
        ValueError: The shapes differ, or there is nothing to compare.
    """
    if treated.shape != baseline.shape:
        msg = f"paired outcomes have the shapes {treated.shape} and {baseline.shape}"
        raise ValueError(msg)
    return mean_estimate(
        treated - baseline, bounds=(-1.0, 1.0), shared_effects=shared_effects, orders=orders
    )


def mean_estimate(
    values: Matrix,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    shared_effects: bool = True,
    orders: OrderEffects | None = None,
) -> Estimate:
    """Estimate the mean over a population of items and one of runs.

    Args:
        values: Items by runs. To compare with runs of another number, subtract their mean from
            each row.
        bounds: The least and the greatest a value can be.
        shared_effects: Whether a run may shift all its items together, as another training order
            does. Runs without training are mere samples and cannot.
        orders: What runs differ by in the family; `None` takes what these differ by.

    Raises:
        ValueError: There are no values.
    """
    if values.ndim != 2 or not values.size:  # noqa: PLR2004  (items, runs)
        msg = f"expected values of items by runs, got the shape {values.shape}"
        raise ValueError(msg)
    n, s = values.shape
    mean = float(values.mean())
    mean = 0.0 if abs(mean) < ROUNDING else mean
    if not shared_effects or s == 1:
        orders = None
    elif orders is None:
        orders = order_effects([values])
    rows = values.mean(axis=1)
    alike = float(np.ptp(rows)) < ROUNDING
    of_items = 0.0 if alike else float(rows.var(ddof=1)) / n
    of_orders = 0.0 if orders is None else orders.variance / s
    constant = alike and (orders is None or of_orders < ROUNDING**2)
    if n == 1 and (not constant or float(np.ptp(values)) >= ROUNDING):
        nan = math.nan
        return Estimate(mean, *bounds, 1.0, nan, 0.0, 1, s, 0.0, "unknown", bounds)
    found = Estimate(
        value=mean,
        low=mean,
        high=mean,
        p=(sign_test(n) if mean else 1.0) if alike else 1.0,
        se=math.sqrt(of_items + of_orders),
        df=n - 1.0 if orders is None else orders.df,
        n_items=n,
        n_replicates=s,
        seed_share=0.0 if constant else of_orders / (of_items + of_orders),
        method="exact" if constant else "items" if orders is None else "crossed",
        within=_within(values) if n > 1 and s > 1 else 0.0,
        items_variance=of_items,
        orders=orders,
    )
    return _with_intervals(found, bounds, alike=alike, constant=constant)


def _with_intervals(
    found: Estimate, bounds: tuple[float, float], *, alike: bool, constant: bool
) -> Estimate:
    """Add the intervals and the p value.

    Where all items agree, a share of items above `1 - (alpha/2)^(1/n)` that behave otherwise would
    have shown itself (Clopper & Pearson 1934 with no event in `n`); at worst these lie at the bounds.
    """
    mean, (least, most) = found.value, bounds
    if alike:
        unseen = 1 - ((1 - CONFIDENCE) / 2) ** (1 / found.n_items)
        these = mean - unseen * (mean - least), mean + unseen * (most - mean)
    else:
        reach = quantile(replace(found, orders=None, df=found.n_items - 1.0))
        these = max(least, mean - reach), min(most, mean + reach)
    if constant or found.orders is None:
        p = found.p if alike else _tail(found, abs(mean))
        return replace(found, low=these[0], high=these[1], p=p, these_orders=these)
    reach = quantile(found)
    low = min(these[0], max(least, mean - reach))
    high = max(these[1], min(most, mean + reach))
    p = max(found.p if alike else 0.0, _tail(found, abs(mean)))
    return replace(found, low=low, high=high, p=p, these_orders=these)


def fixed_items_estimate(rows: Sequence[Sequence[float]], most: float) -> Estimate | None:
    """Estimate the mean of these very items over other runs.

    Items count alike and are not a sample; what varies are the runs within each. The variance is the
    mean of their variances of means, its degrees of freedom are Satterthwaite's (1946). It says
    nothing of other items, nor of anything that the runs of an item share.

    Args:
        rows: The values of each item, one of each of its runs.
        most: The largest a value can be, either way.

    Returns:
        `None` where an item has fewer than two runs, or where no run differs from another: then nothing
        is known of how runs vary.
    """
    if not rows or min(map(len, rows)) < 2:  # noqa: PLR2004  (a variance takes two)
        return None
    parts = [float(np.var(row, ddof=1)) / len(row) / len(rows) ** 2 for row in rows]
    variance = math.fsum(parts)
    if variance < ROUNDING**2:
        return None
    mean = math.fsum(math.fsum(row) / len(row) for row in rows) / len(rows)
    spread = math.fsum(part**2 / (len(row) - 1) for part, row in zip(parts, rows, strict=True))
    df, se = variance**2 / spread, math.sqrt(variance)
    t: Any = require("scipy.stats", extra="bench", purpose="The analysis").t
    reach = float(t.ppf((1 + CONFIDENCE) / 2, df)) * se
    low, high = max(-most, mean - reach), min(most, mean + reach)
    p = float(2 * t.sf(abs(mean) / se, df))
    runs = max(map(len, rows))
    found = Estimate(mean, low, high, p, se, df, len(rows), runs, 1.0, "crossed", (low, high))
    return replace(found, items_variance=variance)


@cache
def _nodes() -> tuple[Matrix, Matrix]:
    """Return probabilities in (0, 1) and their weights, close together near 0.

    There order variances are largest, and small p values are made. Those up to `_RAREST` are one.
    """
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    root = (points + 1) / 2
    probabilities, weights = root**3, 1.5 * weights * root**2
    rare = probabilities <= _RAREST
    return (
        np.append(_RAREST, probabilities[~rare]),
        np.append(weights[rare].sum(), weights[~rare]),
    )


def _scales(found: Estimate, spreads: Matrix) -> tuple[float, Matrix, Matrix]:
    """Return what a deviation from the true value is measured by: degrees of freedom, scales, weights.

    Given the order variance it is that of Student's t over items. The order variance is as uncertain
    as the family's runs leave it: `spread` times `df / u`, with u chi-squared of `df` degrees of
    freedom, less the noise, at least 0. The probability is the average over u (a generalized
    p value, Weerahandi 1993); with a plain Satterthwaite approximation intervals of few runs cover
    less than they say (docs/statistics.md). There is a row of scales for each spread.
    """
    special: Any = require("scipy.special", extra="bench", purpose="The analysis")
    orders = found.orders
    if orders is None:
        df, weights = found.df, np.ones(1)
        variances = np.full((len(spreads), 1), found.items_variance)
    else:
        df = found.n_items - 1.0
        probabilities, weights = _nodes()
        u = 2 * special.gammaincinv(orders.df / 2, probabilities)
        order = np.maximum(np.outer(spreads, orders.df / u) - orders.noise, 0.0)
        variances = found.items_variance + order / found.n_replicates
    return df, np.sqrt(np.maximum(variances, ROUNDING**2)), weights


def _tails(found: Estimate, spread: float) -> Callable[[float], float]:
    """Return how probable a deviation of at least `x`, either way, is from the true value."""
    special: Any = require("scipy.special", extra="bench", purpose="The analysis")
    df, (scale,), weights = _scales(found, np.array([spread]))
    return lambda x: float(2 * special.stdtr(df, -x / scale) @ weights)


def _tail(found: Estimate, x: float) -> float:
    return _tails(found, found.orders.spread if found.orders else 0.0)(x)


def quantile(found: Estimate, alpha: float = 1 - CONFIDENCE) -> float:
    """Return the deviation that is exceeded, either way, with a probability of `alpha`."""
    if found.orders is None:
        special: Any = require("scipy.special", extra="bench", purpose="The analysis")
        return float(special.stdtrit(found.df, 1 - alpha / 2)) * math.sqrt(found.items_variance)
    optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")
    tails = _tails(found, found.orders.spread)
    most = max(found.se, ROUNDING)
    while tails(most) > alpha:
        most *= 2
    return float(optimize.brentq(lambda x: tails(x) - alpha, 0.0, most))


def quantiles(found: Estimate, alpha: float, spreads: Matrix) -> Matrix:
    """Return the quantile of an estimate that knows of orders, for each of several spreads of runs.

    Newton's method on the logarithm of the tail, kept between bounds: power asks for thousands.
    """
    special: Any = require("scipy.special", extra="bench", purpose="The analysis")
    df, scales, weights = _scales(found, spreads)
    height = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    found_at = -special.stdtrit(df, alpha / 2) * np.sqrt(np.square(scales) @ weights)
    low, high = np.zeros_like(found_at), np.full_like(found_at, np.inf)
    for _ in range(_MOST_STEPS):
        t = found_at[:, np.newaxis] / scales
        tail = 2 * special.stdtr(df, -t) @ weights
        density = 2 * height * ((1 + t**2 / df) ** (-(df + 1) / 2) / scales) @ weights
        low, high = (
            np.where(tail > alpha, found_at, low),
            np.where(tail > alpha, high, found_at),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            closer = found_at + tail * np.log(tail / alpha) / density
        between = np.where(np.isinf(high), 2 * found_at, (low + high) / 2)
        closer = np.where((closer >= low) & (closer <= high), closer, between)
        done = np.abs(closer - found_at) <= ROUNDING * np.abs(closer)
        found_at = closer
        if done.all():
            break
    return np.asarray(found_at)


_MOST_STEPS: Final = 100
"""Of Newton's method, which takes half a dozen."""


def sign_test(n_items: int) -> float:
    """Return the two-sided p value when all of `n_items` differ in the same direction."""
    return min(1.0, 2 * 0.5**n_items)


def proportion(successes: int, n: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """Estimate a proportion with Wilson's interval (1927), which holds for small `n` too.

    Bowyer et al. 2025 (arXiv 2503.01747) show why not the normal one below a few hundred.

    Raises:
        ValueError: `n` is not positive or less than `successes`.
    """
    if n < 1 or not 0 <= successes <= n:
        msg = f"no proportion: {successes} of {n}"
        raise ValueError(msg)
    stats: Any = require("scipy.stats", extra="bench", purpose="The analysis")
    low, high = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    share = successes / n
    se = float(np.sqrt(share * (1 - share) / n))
    ends = float(low), float(high)
    return Estimate(share, *ends, math.nan, se, n - 1.0, n, 1, 0.0, "wilson", ends)


# Help and harm apart ---------------------------------------------------------------------

_FEWEST: int = 2
"""Runs below which nothing tells an effect from chance."""


@dataclass(frozen=True, slots=True)
class Transitions:
    """How paired outcomes changed."""

    gained: Estimate
    """Share of pairs that failed under the baseline and succeeded."""
    lost: Estimate
    """Share of pairs that succeeded under the baseline and failed."""
    chance: float | None
    """Share of pairs that would go either way between two samples of the baseline; `None` with one run."""
    helped: Estimate | None
    """Mean gain of the items that gain, beyond chance: which they are is told by the other runs, so that
    it is 0 on average where nothing changes. It is too small where runs are few and outcomes vary. `None`
    with one run."""
    harmed: Estimate | None
    """Mean loss of the items that lose, in the same way."""


def transitions(treated: Matrix, baseline: Matrix, *, shared_effects: bool = True) -> Transitions:
    """Take a paired difference apart.

    Args:
        treated: Outcomes in 0..1, items by runs.
        baseline: The same items and runs under the baseline.
        shared_effects: As in `mean_estimate`.

    Raises:
        ValueError: The shapes differ, or there is nothing to compare.
    """
    if treated.shape != baseline.shape:
        msg = f"paired outcomes have the shapes {treated.shape} and {baseline.shape}"
        raise ValueError(msg)
    differences = treated - baseline

    def mean(values: Matrix) -> Estimate:
        return mean_estimate(values, bounds=(-1.0, 1.0), shared_effects=shared_effects)

    runs = differences.shape[1]
    gained, lost = mean(np.maximum(differences, 0.0)), mean(np.maximum(-differences, 0.0))
    if runs < _FEWEST:
        return Transitions(gained, lost, None, None, None)
    others = differences.sum(axis=1, keepdims=True) - differences
    return Transitions(
        gained,
        lost,
        _turnover(baseline),
        mean(np.where(others > 0, differences, 0.0)),
        mean(np.where(others < 0, -differences, 0.0)),
    )


def _turnover(values: Matrix) -> float:
    """Return the mean rise from one run to another, over all ordered pairs of runs."""
    runs = values.shape[1]
    rises = [
        float(np.maximum(values[:, a] - values[:, b], 0.0).mean())
        for a in range(runs)
        for b in range(runs)
        if a != b
    ]
    return float(np.mean(rises))
