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
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from langgraft._core.extras import require

Matrix: TypeAlias = npt.NDArray[np.float64]
"""Items in rows, runs in columns."""

Method: TypeAlias = Literal["crossed", "items", "exact", "wilson", "unknown"]
"""How an interval was found.

`crossed`: items and runs both vary; `items`: only items do; `exact`: nothing varies, so only the
number of items says how far off the value can be; `wilson`: a proportion; `unknown`: one item that
varies, about which nothing can be said.
"""

CONFIDENCE = 0.95
POWER = 0.80
SIGNIFICANCE = 0.05

FEWEST_RUNS = 3
"""Runs below which there is no verdict: two say next to nothing of how runs differ."""

ROUNDING = 1e-12
"""What float arithmetic adds to means of outcomes; a spread below it is none.

Thirds that are pooled and averaged differ by 1e-17, and taken at their word such a spread is
a standard error near zero: p values of 1e-113 from nothing.
"""

_NODES = 48
"""Points at which the chi-squared distribution of an order variance is averaged over."""
_RAREST = 0.02
"""Order variances that the runs make rarer than this are taken for the largest that is not: with
three runs of one memory they would widen intervals beyond 99 % coverage where orders do nothing."""
_SHARING = 0.8
"""Of the degrees of freedom of several contrasts, those that power is counted with: their estimate
varies, and with all of them power at what is printed came out at 60 to 75 % with three runs."""
_POWER_NODES = 8
"""Points at which that of an estimate of it is, where power is asked for."""
_HALVINGS = 40
"""Steps to a quantile, each of which halves what it lies in."""


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
    """A mean or a mean difference, with what is known about it."""

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
    if n == 1 and float(np.ptp(values)) >= ROUNDING:
        nan = math.nan
        return Estimate(mean, *bounds, 1.0, nan, 0.0, 1, s, 0.0, "unknown", bounds)
    of_items = 0.0 if alike else float(rows.var(ddof=1)) / n
    of_orders = 0.0 if orders is None else orders.variance / s
    constant = alike and (orders is None or of_orders < ROUNDING**2)
    found = Estimate(
        value=mean,
        low=mean,
        high=mean,
        p=(_sign_test(n) if mean else 1.0) if alike else 1.0,
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
        reach = _quantile(replace(found, orders=None, df=found.n_items - 1.0))
        these = max(least, mean - reach), min(most, mean + reach)
    if constant or found.orders is None:
        p = found.p if alike else _tail(found, abs(mean))
        return replace(found, low=these[0], high=these[1], p=p, these_orders=these)
    reach = _quantile(found)
    low = min(these[0], max(least, mean - reach))
    high = max(these[1], min(most, mean + reach))
    p = max(found.p if alike else 0.0, _tail(found, abs(mean)))
    return replace(found, low=low, high=high, p=p, these_orders=these)


@cache
def _nodes() -> tuple[Matrix, Matrix]:
    """Return probabilities in (0, 1) and their weights, close together near 0.

    There order variances are largest, and small p values are made.
    """
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    root = (points + 1) / 2
    return root**3, 1.5 * weights * root**2


def _tails(found: Estimate, spreads: Matrix | None = None) -> Callable[[Matrix], Matrix]:
    """Return how probable a deviation of at least `x`, either way, is from the true value.

    Given the order variance it is that of Student's t over items. The order variance is as uncertain
    as the family's runs leave it: their spread times `df / u`, with u chi-squared of `df` degrees of
    freedom, less the noise, at least 0. The probability is the average over u (a generalized
    p value, Weerahandi 1993); with a plain Satterthwaite approximation intervals of few runs cover
    less than they say (docs/statistics.md).

    Args:
        found: The estimate.
        spreads: Spreads to suppose in the place of the family's; the function takes an `x` for each.
    """
    special: Any = require("scipy.special", extra="bench", purpose="The analysis")
    orders = found.orders
    if orders is None:
        df, variances, weights = found.df, np.array([[found.items_variance]]), np.ones(1)
    else:
        df = found.n_items - 1.0
        probabilities, weights = _nodes()
        u = 2 * special.gammaincinv(orders.df / 2, np.maximum(probabilities, _RAREST))
        given = np.array([orders.spread]) if spreads is None else spreads
        order = np.maximum(np.outer(given, orders.df / u) - orders.noise, 0.0)
        variances = found.items_variance + order / found.n_replicates
    scale = np.sqrt(np.maximum(variances, ROUNDING**2))
    return lambda x: np.asarray(2 * special.stdtr(df, -x[:, None] / scale) @ weights)


def _tail(found: Estimate, x: float) -> float:
    return float(_tails(found)(np.array([x]))[0])


def _quantile(found: Estimate, alpha: float = 1 - CONFIDENCE) -> float:
    """Return the deviation that is exceeded, either way, with a probability of `alpha`."""
    if found.orders is None:
        special: Any = require("scipy.special", extra="bench", purpose="The analysis")
        return float(special.stdtrit(found.df, 1 - alpha / 2)) * math.sqrt(found.items_variance)
    return float(_quantiles(found, alpha, np.array([found.orders.spread]))[0])


def _quantiles(found: Estimate, alpha: float, spreads: Matrix) -> Matrix:
    """Do as `_quantile` does, for each of several spreads of runs."""
    tails = _tails(found, spreads)
    low, high = np.zeros(len(spreads)), np.full(len(spreads), max(found.se, ROUNDING))
    while (beyond := tails(high) > alpha).any():
        high = np.where(beyond, 2 * high, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = tails(middle) > alpha
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return high


def _sign_test(n_items: int) -> float:
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
    stats: Any = require("statsmodels.stats.proportion", extra="bench", purpose="The analysis")
    low, high = stats.proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
    share = successes / n
    se = float(np.sqrt(share * (1 - share) / n))
    ends = float(low), float(high)
    return Estimate(share, *ends, math.nan, se, n - 1.0, n, 1, 0.0, "wilson", ends)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust the p values of one declared family by Holm's (1979) step-down procedure.

    By hand: statsmodels' collects all garbage at every call, a third of a second each.
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - step) * p_values[place]))
        adjusted[place] = least
    return tuple(adjusted)


def detectable_difference(
    estimate: Estimate, *, contrasts: int = 1, rates: tuple[float, float] | None = None
) -> float:
    """Return the true difference that would have been found with a probability of `POWER`.

    Found means: by the first step of Holm's procedure, where the level is `SIGNIFICANCE / contrasts`.
    The differences that chance makes are those of the estimate. With the rates of outcomes in 0..1 they
    are those at the true difference: the nearer to one half, the more outcomes vary.

    Args:
        estimate: The difference from a baseline.
        contrasts: How many the family has.
        rates: Means of the baseline and of the treated outcomes.

    Returns:
        A fraction in 0..1, or infinity where not even the largest difference there can be would have
        been found: too few items or runs.
    """
    level = SIGNIFICANCE / contrasts
    if estimate.method == "unknown":
        return math.inf
    if estimate.method == "exact":
        hopeless = _sign_test(estimate.n_items) > level
        return math.inf if hopeless or estimate.half_width > 1 else estimate.half_width
    if estimate.orders is not None:
        # With few degrees of freedom a spread mostly comes out too small: its median is put right.
        special: Any = require("scipy.special", extra="bench", purpose="The analysis")
        orders = estimate.orders
        df = max(estimate.n_replicates - 1.0, _SHARING * orders.df)
        spread = orders.spread * df / 2 / float(special.gammaincinv(df / 2, 0.5))
        estimate = replace(estimate, orders=replace(orders, spread=spread, df=df))
    return _difference(estimate, level, rates)


def _difference(
    estimate: Estimate, level: float, rates: tuple[float, float] | None = None
) -> float:
    """Return the difference that is found with a probability of `POWER`, if chance is as estimated."""
    optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")
    baseline, treated = rates or (0.0, 0.0)
    least = 1 / (4 * estimate.n_items)
    up = baseline <= 0.5  # noqa: PLR2004  (towards the farther end)

    def missing(difference: float) -> float:
        rate = baseline + difference if up else baseline - difference
        there, here = (max(each * (1 - each), least) for each in (rate, treated))
        return POWER - _power(estimate, level, difference, there / here if rates else 1.0)

    room = 1 - baseline if up else baseline
    if missing(room) > 0:
        return math.inf
    return float(optimize.brentq(missing, 0.0, room, xtol=1e-5))


def _power(estimate: Estimate, level: float, difference: float, ratio: float) -> float:
    """Return how probable it is that a difference is found.

    Args:
        estimate: What chance does.
        level: The level of the test.
        difference: The true one.
        ratio: How many times as much outcomes vary there as those of the estimate.
    """
    special: Any = require("scipy.special", extra="bench", purpose="The analysis")
    noise = estimate.within / (estimate.n_items * estimate.n_replicates)
    items = max(estimate.items_variance + (ratio - 1) * noise, ROUNDING)
    found = replace(estimate, items_variance=items, se=math.sqrt(items))
    if estimate.orders is None:
        return float(special.ndtr((difference - _quantile(found, level)) / found.se))
    # The order variance goes with the slope of the logistic curve; it is pooled over the family.
    orders, half = estimate.orders, estimate.orders.df / 2
    variance, others = orders.variance, orders.contrasts - 1
    pooled = variance * (others + ratio**2) / orders.contrasts
    pooled_noise = orders.noise * (others + ratio) / orders.contrasts
    points, weights = np.polynomial.legendre.leggauss(_POWER_NODES)
    spreads = (pooled + pooled_noise) * special.gammaincinv(half, (points + 1) / 2) / half
    judged = replace(found, orders=replace(orders, noise=pooled_noise))
    se = math.sqrt(items + ratio**2 * variance / estimate.n_replicates)
    chances = special.ndtr((difference - _quantiles(judged, level, spreads)) / se)
    return float(weights @ chances / 2)


def planned_difference(
    items: int,
    runs: int,
    *,
    baseline_runs: int,
    contrasts: int = 1,
    noise_variance: float = 0.143,
    effect_variance: float = 0.02,
    order_sd: float = 0.05,
) -> float:
    """Return what a plan will be able to detect, before anything is spent on it.

    Args:
        items: Test items.
        runs: Repetitions of each condition.
        baseline_runs: Repetitions without memory.
        contrasts: Memories that are compared.
        noise_variance: Mean variance of an item's outcome between repetitions of the same
            condition; 0.143 is what the papers' own tables imply, 0 a deterministic model
            (evaluation §2.3).
        effect_variance: Variance of the true effect between items.
        order_sd: Standard deviation of the order effects. An assumption: 0.05 is a logit of about 0.3
            at middling rates.

    Returns:
        A fraction in 0..1, or infinity where nothing can be detected, as with fewer runs than
        `FEWEST_RUNS`.
    """
    if items < 2 or runs < FEWEST_RUNS:  # noqa: PLR2004  (one item says nothing about others)
        return math.inf
    noise = noise_variance / items
    variance = effect_variance / items + noise / runs + noise / baseline_runs
    freedom = float(contrasts * (runs - 1))
    orders = OrderEffects(order_sd**2 + noise, noise, freedom, contrasts)
    se = math.sqrt(variance + orders.variance / runs)
    estimate = Estimate(
        *(0.0, 0.0, 0.0, 1.0, se, freedom, items, runs, 0.0, "crossed"),
        within=noise_variance,
        items_variance=variance,
        orders=orders,
    )
    return _difference(estimate, SIGNIFICANCE / contrasts)
