"""Which differences a study detects: the *detectable* one after it, the *planned* one before."""

import math
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from langgraft._core.lazy import require
from langgraft.benchmarks.comparison.estimates import (
    ROUNDING,
    Estimate,
    Matrix,
    OrderEffects,
    quantile,
    quantiles,
    sign_test,
)
from langgraft.benchmarks.comparison.verdicts import FEWEST_RUNS, POWER, SIGNIFICANCE

_POWER_NODES = 8
"""Points at which the distribution of an order variance's estimate is averaged over."""
_LOGIT_NODES = 61
"""Points at which that of items is."""
_WIDEST = 6.0
"""Largest standard deviation of items' logits that is told from all items being settled."""


def detectable_difference(
    estimate: Estimate, *, contrasts: int = 1, rates: tuple[float, float] | None = None
) -> float:
    """Return the true difference that would have been found with a probability of `POWER`.

    Found means: by the first step of Holm's procedure, where the level is `SIGNIFICANCE / contrasts`.
    The differences that chance makes are those of the estimate. With the rates of outcomes in 0..1 they
    are those at the true difference, with normal logits of the items: the nearer to one half, the more
    outcomes and orders vary.

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
        hopeless = sign_test(estimate.n_items) > level
        return math.inf if hopeless or estimate.half_width > 1 else estimate.half_width
    orders = estimate.orders
    if orders is not None:
        # With few degrees of freedom a spread mostly comes out too small: its median is put right.
        special: Any = require("scipy.special", extra="bench", purpose="The analysis")
        half = orders.df / 2
        spread = orders.spread * half / float(special.gammaincinv(half, 0.5))
        estimate = replace(estimate, orders=replace(orders, spread=spread))
    return _difference(estimate, level, rates)


def _difference(
    estimate: Estimate, level: float, rates: tuple[float, float] | None = None
) -> float:
    """Return the difference that is found with a probability of `POWER`, if chance is as estimated."""
    optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")
    n, s = estimate.n_items, estimate.n_replicates
    least = 1 / (2 * n)
    baseline, treated = (min(max(rate, least), 1 - least) for rate in rates or (0.0, 0.0))
    up = baseline <= 0.5  # noqa: PLR2004  (towards the farther end)
    items = _LogitNormal.fitted(treated, estimate.within)
    within, effects = items.within(treated), items.effects(baseline, treated)

    always = None if rates else _Test(estimate, level, max(estimate.items_variance, ROUNDING), 1.0)

    def missing(difference: float) -> float:
        if always:
            return POWER - always.power(difference)
        rate = min(max(baseline + (difference if up else -difference), least), 1 - least)
        ratio = items.within(rate) / within
        variance = estimate.items_variance + (items.effects(baseline, rate) - effects) / n
        variance += (ratio - 1) * estimate.within / (n * s)
        return POWER - _Test(estimate, level, max(variance, ROUNDING), ratio).power(difference)

    room = 1 - baseline if up else baseline
    if missing(room) > 0:
        return math.inf
    return float(optimize.brentq(missing, 0.0, room, xtol=1e-5))


@dataclass(frozen=True, slots=True)
class _LogitNormal:
    """Items whose chances of success have normal logits.

    A difference shifts all logits alike. How much an item's outcome varies is then also the slope at
    which the success rate follows such a shift, and so the scale of order effects.
    """

    sd: float

    @classmethod
    def fitted(cls, rate: float, within: float) -> "_LogitNormal":
        """Return the items whose outcomes vary by `within` at that success rate."""
        optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")

        def beyond(sd: float) -> float:
            return cls(sd).within(rate) - within

        if beyond(0.0) <= 0:
            return cls(0.0)
        if beyond(_WIDEST) >= 0:
            return cls(_WIDEST)
        return cls(float(optimize.brentq(beyond, 0.0, _WIDEST, xtol=1e-3)))

    @lru_cache(maxsize=64)  # noqa: B019 - small, and asked for the same ones again and again
    def chances(self, rate: float) -> Matrix:
        """Return chances with that mean, at the nodes of `_normal`."""
        optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")
        special: Any = require("scipy.special", extra="bench", purpose="The analysis")
        nodes, weights = _normal()

        def chances(logit: float) -> Matrix:
            return np.asarray(special.expit(logit + self.sd * nodes))

        far = 30 + 10 * self.sd
        return chances(optimize.brentq(lambda logit: weights @ chances(logit) - rate, -far, far))

    def within(self, rate: float) -> float:
        """Return the mean variance of an item's outcome."""
        chances = self.chances(rate)
        return float(_normal()[1] @ (chances * (1 - chances)))

    def effects(self, baseline: float, rate: float) -> float:
        """Return the variance between items of what they gain from one success rate to the other."""
        gains = self.chances(rate) - self.chances(baseline)
        return float(_normal()[1] @ np.square(gains - (rate - baseline)))


@cache
def _normal() -> tuple[Matrix, Matrix]:
    """Return points and weights that average over the standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_LOGIT_NODES)
    return nodes, weights / weights.sum()


@cache
def _ranks() -> tuple[Matrix, Matrix]:
    """Return points and weights that average over (-1, 1)."""
    points, weights = np.polynomial.legendre.leggauss(_POWER_NODES)
    return points, weights


class _Test:
    """What a test needs to find a difference, and how far chance goes.

    Args:
        estimate: What chance does.
        level: The level of the test.
        variance: That of the mean at the true difference, without what orders do.
        ratio: How many times as much an item's outcome varies there as in the estimate.
    """

    def __init__(self, estimate: Estimate, level: float, variance: float, ratio: float) -> None:
        special: Any = require("scipy.special", extra="bench", purpose="The analysis")
        found = replace(estimate, items_variance=variance, se=math.sqrt(variance))
        if estimate.orders is None:
            self._needed, self._weights = np.array([quantile(found, level)]), np.ones(1)
            self._se = found.se
            return
        # What orders do is pooled over the family, whose other contrasts stay as they are.
        orders, half = estimate.orders, estimate.orders.df / 2
        others = orders.contrasts - 1
        pooled = orders.variance * (others + ratio**2) / orders.contrasts
        noise = orders.noise * (others + ratio) / orders.contrasts
        points, weights = _ranks()
        spreads = (pooled + noise) * special.gammaincinv(half, (points + 1) / 2) / half
        judged = replace(found, orders=replace(orders, noise=noise))
        self._needed = quantiles(judged, level, spreads)
        self._weights = weights / 2
        self._se = math.sqrt(variance + ratio**2 * orders.variance / estimate.n_replicates)

    def power(self, difference: float) -> float:
        """Return how probable it is that a true difference is found."""
        special: Any = require("scipy.special", extra="bench", purpose="The analysis")
        return float(self._weights @ special.ndtr((difference - self._needed) / self._se))


def planned_difference(
    items: int,
    runs: int,
    *,
    baseline_runs: int,
    contrasts: int = 1,
    noise_variance: float = 0.143,
    effect_variance: float | None = 0.02,
    order_sd: float = 0.05,
    alpha: float = SIGNIFICANCE,
    power: float = POWER,
) -> float:
    """Return what a plan will be able to detect, before anything is spent on it.

    Detected is what is found, and would be without any single run of the baseline: else the verdict is
    `unclear`.

    Args:
        items: Test items.
        runs: Repetitions of each condition.
        baseline_runs: Repetitions without memory.
        contrasts: Memories that are compared.
        noise_variance: Mean variance of an item's outcome between repetitions of the same
            condition; 0.143 is what the papers' own tables imply, 0 a deterministic model
            (evaluation §2.3).
        effect_variance: Variance of the true effect between items; `None`: as large as it can be where no
            item loses, because each gains all or nothing.
        order_sd: Standard deviation of the order effects. An assumption: 0.05 is a logit of about 0.3
            at middling rates.
        alpha: Level of the family.
        power: With which probability it is to be detected.

    Returns:
        A fraction in 0..1, or infinity where nothing can be detected, as with fewer runs than
        `FEWEST_RUNS`.
    """
    if items < 2 or runs < FEWEST_RUNS:  # noqa: PLR2004  (one item says nothing about others)
        return math.inf
    optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")
    noise = noise_variance / items
    freedom = float(contrasts * (runs - 1))
    orders = OrderEffects(order_sd**2 + noise, noise, freedom, contrasts)
    taken, left = math.sqrt(noise) * _overturning(baseline_runs), max(baseline_runs - 1, 1)

    def missing(difference: float) -> float:
        effects = difference * (1 - difference) if effect_variance is None else effect_variance
        variance = max(effects / items + noise / runs + noise / left, ROUNDING)
        estimate = Estimate(
            *(0.0, 0.0, 0.0, 1.0, math.sqrt(variance), freedom, items, runs, 0.0, "crossed"),
            within=noise_variance,
            items_variance=variance,
            orders=orders,
        )
        test = _Test(estimate, alpha / contrasts, variance, 1.0)
        return power - test.power(difference - taken)

    if missing(1.0) > 0:
        return math.inf
    return float(optimize.brentq(missing, 0.0, 1.0, xtol=1e-5))


def _overturning(runs: int) -> float:
    """Return how far a mean falls without the run that speaks most for it, in the runs' deviations.

    That run exceeds the mean by what the largest of so many normal numbers is on average (Blom 1958).
    """
    if runs < 2:  # noqa: PLR2004  (a single one is never left out)
        return 0.0
    return NormalDist().inv_cdf((runs - 0.375) / (runs + 0.25)) / (runs - 1)
