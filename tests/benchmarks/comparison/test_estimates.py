"""Statistics: intervals cover what they claim to, and edge cases stay honest."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from langgraft.benchmarks.comparison.estimates import (
    Estimate,
    Matrix,
    OrderEffects,
    fixed_items_estimate,
    mean_estimate,
    order_effects,
    paired_difference,
    proportion,
    quantile,
    quantiles,
)
from langgraft.benchmarks.comparison.power import detectable_difference, planned_difference
from langgraft.benchmarks.comparison.verdicts import holm


def simulated(
    rng: np.random.Generator, *, items: int, replicates: int, order: float
) -> tuple[Matrix, Matrix]:
    """Draw outcomes of two conditions that do not differ; `order` shifts whole replicates."""
    logits = rng.normal(0, 1.6, (items, 1))
    shifts = rng.normal(0, order, (1, replicates))
    treated = rng.random((items, replicates)) < 1 / (1 + np.exp(-logits - shifts))
    baseline = rng.random((items, replicates)) < 1 / (1 + np.exp(-logits))
    return treated.astype(np.float64), baseline.astype(np.float64)


@pytest.mark.parametrize(
    ("items", "runs", "order", "contrasts", "shared"),
    [
        (100, 3, 0.0, 4, False),
        (100, 3, 0.8, 1, False),
        (100, 5, 0.4, 1, False),
        (60, 2, 0.8, 4, False),
        (60, 3, 0.8, 4, True),
    ],
)
def test_interval_when_nothing_differs_then_covers_zero_as_often_as_it_says(
    items: int, runs: int, order: float, contrasts: int, shared: bool
) -> None:
    """Of a family's 95 % intervals 91 to 99.5 % hold the truth, also where contrasts share orders."""
    rng = np.random.default_rng(2026)
    hits, drawn = 0, 240 // contrasts
    for _ in range(drawn):
        logits = rng.normal(0, 1.6, (items, 1))
        same = rng.normal(0, order, (1, runs))
        differences = []
        for _ in range(contrasts):
            shifts = same if shared else rng.normal(0, order, (1, runs))
            treated = rng.random((items, runs)) < 1 / (1 + np.exp(-logits - shifts))
            baseline = rng.random((items, 5)) < 1 / (1 + np.exp(-logits))
            differences.append(treated - baseline.mean(axis=1, keepdims=True))
        orders = order_effects(differences)
        found = [mean_estimate(each, bounds=(-1, 1), orders=orders) for each in differences]
        hits += sum(each.low <= 0 <= each.high for each in found)
    assert 0.91 <= hits / (drawn * contrasts) <= 0.995


def test_interval_when_replicates_shift_all_items_then_these_orders_have_one_of_their_own() -> None:
    """The interval for these orders covers their mean; taken for all orders it would mislead."""
    rng = np.random.default_rng(7)
    crossed = alone = these = 0
    for _ in range(150):
        shifts = rng.normal(0, 0.06, (1, 4))
        values = rng.normal(0, 0.4, (300, 4)) + shifts
        found = mean_estimate(values.clip(-1, 1), bounds=(-1, 1))
        low, high = found.these_orders
        crossed += found.low <= 0 <= found.high
        alone += low <= 0 <= high
        these += low <= shifts.mean() <= high
    assert alone / 150 < 0.75
    assert crossed / 150 > 0.90
    assert these / 150 > 0.90


def test_interval_when_run_means_come_near_each_other_then_never_jumps() -> None:
    """Moving one run past the others changes the half-width smoothly: no pre-test picks a branch."""
    rng = np.random.default_rng(3)
    values = rng.normal(0, 0.3, (50, 3)).clip(-1, 1)
    shifts = np.linspace(-0.3, 0.3, 61)
    widths = [
        mean_estimate(values + np.array([0, 0, shift]), bounds=(-9, 9)).half_width
        for shift in shifts
    ]
    assert np.abs(np.diff(widths)).max() < 0.1 * np.ptp(widths)


def test_order_effects_when_contrasts_move_together_then_have_fewer_degrees_of_freedom() -> None:
    """Four contrasts with one and the same order effect are one; independent ones add up."""
    rng = np.random.default_rng(1)
    items = rng.normal(0, 0.2, (4, 80, 1))
    together = items + rng.normal(0, 0.3, (1, 1, 5))
    apart = items + rng.normal(0, 0.3, (4, 1, 5))
    one, many = order_effects(together), order_effects(apart)
    assert one is not None
    assert many is not None
    assert one.df == pytest.approx(4, abs=0.5)
    assert 8 < many.df <= 16
    assert order_effects([np.zeros((5, 1))]) is None


def test_paired_difference_when_one_replicate_then_is_the_paired_t_test() -> None:
    """Over items alone, p value and interval are those of scipy's paired t test."""
    rng = np.random.default_rng(1)
    treated, baseline = simulated(rng, items=40, replicates=1, order=0.0)
    expected = stats.ttest_rel(treated[:, 0], baseline[:, 0])
    bounds = expected.confidence_interval(0.95)
    estimate = paired_difference(treated, baseline)
    assert estimate.method == "items"
    assert estimate.p == pytest.approx(expected.pvalue)
    assert (estimate.low, estimate.high) == pytest.approx((bounds.low, bounds.high))


def test_standard_error_when_written_out_then_has_an_items_and_an_order_component() -> None:
    """Both variances follow from the three mean squares of the crossed design."""
    values = np.array([[0.0, 0.5, 1.0], [0.2, 0.4, 0.9], [0.1, 0.9, 0.8], [0.3, 0.2, 1.0]])
    n, s = values.shape
    grand, rows, columns = values.mean(), values.mean(axis=1), values.mean(axis=0)
    ms_item = s * ((rows - grand) ** 2).sum() / (n - 1)
    ms_seed = n * ((columns - grand) ** 2).sum() / (s - 1)
    rest = values - rows[:, None] - columns + grand
    ms_err = (rest**2).sum() / ((n - 1) * (s - 1))
    estimate = mean_estimate(values)
    variance = (ms_item + ms_seed - ms_err) / (n * s)
    assert ms_err < ms_seed
    assert (estimate.se, estimate.df) == pytest.approx((np.sqrt(variance), s - 1))
    assert estimate.seed_share == pytest.approx((ms_seed - ms_err) / (n * s) / variance)


def test_mean_estimate_when_mean_squares_tie_then_order_does_not_matter() -> None:
    """Two of three mean squares are 7/9: rounding, which depends on the order, must not decide."""
    values = np.array([[1.0, 0.0, -1.0], [0.0, 0.0, 0.0], [1.0, -1.0, 1.0]])
    orders = [list(order) for order in permutations(range(3))]
    ends = {
        round(mean_estimate(values[rows][:, columns], bounds=(-1.0, 1.0)).high, 9)
        for rows in orders
        for columns in orders
    }
    assert len(ends) == 1


@pytest.mark.parametrize("replicates", [1, 3])
def test_paired_difference_when_nothing_varies_then_interval_still_has_a_width(
    replicates: int,
) -> None:
    """Fifty equal items leave room for the share of other items they could have missed."""
    same = np.ones((50, replicates))
    estimate = paired_difference(same, same)
    assert (estimate.method, estimate.value, estimate.p) == ("exact", 0.0, 1.0)
    assert estimate.high == pytest.approx(1 - 0.025 ** (1 / 50))
    assert estimate.low == -estimate.high
    assert detectable_difference(estimate) == estimate.high


def test_paired_difference_when_every_item_gains_then_sign_test_decides() -> None:
    """Six items that all gain are just enough, five are not."""
    six = paired_difference(np.ones((6, 1)), np.zeros((6, 1)))
    five = paired_difference(np.ones((5, 1)), np.zeros((5, 1)))
    assert six.p < 0.05 < five.p
    assert six.low > 0 > five.low
    assert six.high == 1.0


def test_mean_estimate_when_replicates_cancel_in_every_item_then_is_exact() -> None:
    """A variance of zero is never taken for certainty."""
    estimate = mean_estimate(np.array([[0.0, 1.0], [1.0, 0.0]] * 10))
    assert estimate.method == "exact"
    assert estimate.low < 0.5 < estimate.high


def test_mean_estimate_when_only_rounding_varies_then_is_exact() -> None:
    """Pooled thirds that differ by float noise are no evidence, for or against anything."""
    thirds = np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2], [0.3, 0.3]])
    shifted = np.array([[1 / 3, 2 / 3, 0.0], [2 / 3, 0.0, 1 / 3], [0.0, 1 / 3, 2 / 3]] * 4)
    for values, together in ((thirds, True), (shifted, False)):
        assert np.ptp(values) > 0
        estimate = mean_estimate(values, bounds=(-1.0, 1.0), shared_effects=together)
        assert (estimate.method, estimate.se) == ("exact", 0.0)
        assert estimate.p == 2 * 0.5 ** len(values) or estimate.n_items < 6
        assert estimate.high - estimate.low > 0.3


def test_paired_difference_when_only_rounding_is_left_then_is_zero() -> None:
    """A difference of 1e-17 in every item is no gain of every item."""
    left = np.full((20, 2), 0.1 + 0.2)
    estimate = paired_difference(left, np.full((20, 2), 0.3))
    assert (estimate.value, estimate.p, estimate.method) == (0.0, 1.0, "exact")


def test_detectable_difference_when_impossible_then_is_infinite() -> None:
    """Two runs that disagree, one item, or five equal ones can show no difference at all."""
    rng = np.random.default_rng(3)
    runs = rng.normal(0, 0.01, (30, 2)) + np.array([[0.4, -0.4]])
    two_runs = mean_estimate(runs, bounds=(-1, 1))
    one_item = mean_estimate(np.array([[0.0, 1.0]]), bounds=(-1, 1))
    five = paired_difference(np.ones((5, 1)), np.ones((5, 1)))
    for estimate in (two_runs, one_item, five):
        assert detectable_difference(estimate) == np.inf
    six = paired_difference(np.ones((6, 1)), np.ones((6, 1)))
    assert 0 < detectable_difference(six) < 1
    assert detectable_difference(six, contrasts=2) == np.inf


def test_planned_difference_when_plan_is_too_small_then_is_infinite() -> None:
    """One item can show nothing, and neither can two runs."""
    assert planned_difference(1, 100, baseline_runs=5) == np.inf
    assert planned_difference(500, 2, baseline_runs=5) == np.inf


def test_equivalence_when_tested_then_is_two_t_tests() -> None:
    """The p value is the larger of the two one-sided ones; unchanged items are counted instead."""
    rng = np.random.default_rng(4)
    values = rng.normal(0.02, 0.2, (60, 1)).clip(-1, 1)
    estimate = mean_estimate(values, bounds=(-1, 1))
    above = stats.ttest_1samp(values[:, 0], -0.1, alternative="greater").pvalue
    below = stats.ttest_1samp(values[:, 0], 0.1, alternative="less").pvalue
    assert estimate.p_beyond(0.1) == pytest.approx(max(above, below))
    assert estimate.p_beyond(0.001) > 0.5
    unchanged = paired_difference(np.ones((40, 3)), np.ones((40, 3)))
    assert unchanged.p_beyond(0.1) == pytest.approx(0.9**40)


def test_estimate_of_these_items_when_items_differ_takes_no_error_from_that() -> None:
    """Only runs vary: effects of -0.9 and -0.1 with a spread of 0.1 each."""
    found = fixed_items_estimate([[-0.8, -1.0], [0.0, -0.2]], 1.0)
    assert found is not None
    assert found.value == pytest.approx(-0.5)
    assert found.se == pytest.approx(np.sqrt(2 * 0.02 / 2) / 2)
    assert found.df == pytest.approx(2)
    assert fixed_items_estimate([[1.0], [1.0]], 1.0) is None
    assert fixed_items_estimate([[0.2, 0.2]], 1.0) is None


@pytest.mark.parametrize("spreads", [(1, 1, 1), (3, 1, 1), (1, 0.02, 0.02)])
def test_interval_of_these_items_when_runs_are_few_covers_what_it_promises(
    spreads: tuple[float, ...],
) -> None:
    """Three items of three runs, alike or not in how far their runs spread."""
    drawn = np.random.default_rng(6).normal(size=(1500, 3, 3)) * np.array(spreads)[:, None]
    found = [fixed_items_estimate(draw.tolist(), np.inf) for draw in drawn]
    covered = sum(each is not None and each.low <= 0 <= each.high for each in found)
    assert 0.93 <= covered / len(drawn) <= 0.98


def test_mean_estimate_when_one_item_varies_then_claims_nothing() -> None:
    """One item says nothing about others: the interval is all there is."""
    estimate = mean_estimate(np.array([[0.0, 1.0]]))
    assert (estimate.method, estimate.low, estimate.high, estimate.p) == ("unknown", 0.0, 1.0, 1.0)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4,)])
def test_mean_estimate_when_there_are_no_values_then_raises(shape: tuple[int, ...]) -> None:
    """Nothing cannot be averaged."""
    with pytest.raises(ValueError, match="items by runs"):
        mean_estimate(np.zeros(shape))


def test_paired_difference_when_shapes_differ_then_raises() -> None:
    """Only outcomes of the same items and replicates are paired."""
    with pytest.raises(ValueError, match="shapes"):
        paired_difference(np.zeros((3, 2)), np.zeros((3, 1)))


@settings(max_examples=80, deadline=None)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 4)),
        elements=st.sampled_from([0.0, 1 / 3, 1.0]),
    )
)
def test_mean_estimate_when_values_are_any_then_interval_holds_the_mean(values: Matrix) -> None:
    """Every interval is finite, inside the bounds and around its value."""
    estimate = mean_estimate(values)
    assert 0.0 <= estimate.low <= estimate.value + 1e-12
    assert estimate.value - 1e-12 <= estimate.high <= 1.0
    assert 0.0 <= estimate.p <= 1.0
    assert 0.0 <= estimate.seed_share <= 1.0


def test_proportion_when_all_succeed_then_is_wilsons_interval() -> None:
    """Ten of ten are not certain: Wilson's lower end is 72.2 %."""
    estimate = proportion(10, 10)
    assert (estimate.low, estimate.high) == pytest.approx((0.7225, 1.0), abs=1e-4)
    with pytest.raises(ValueError, match="11 of 10"):
        proportion(11, 10)


def test_holm_when_given_a_family_then_steps_down() -> None:
    """The smallest p value is multiplied by the size of the family, and order is kept."""
    assert holm([0.04, 0.01, 0.03]) == pytest.approx((0.06, 0.03, 0.06))
    assert holm([]) == ()


def test_planned_difference_when_orders_and_memories_are_none_then_agrees_with_the_notes() -> None:
    """Without order effects and correction: evaluation §2.3, but for the price of not knowing that."""

    def effect(items: int, noise: float = 0.143) -> float:
        return planned_difference(items, 3, baseline_runs=3, noise_variance=noise, order_sd=0.0)

    assert 0.095 < effect(100) < 0.165
    assert 0.039 < effect(100, noise=0.0) < 0.05
    assert effect(500) < effect(100) / 1.9


def test_planned_difference_when_memories_or_order_effects_grow_then_grows() -> None:
    """Both the first step of Holm's procedure and the order component are in the figure."""
    alone = planned_difference(200, 5, baseline_runs=5)
    assert alone < planned_difference(200, 5, baseline_runs=5, order_sd=0.1)
    four = planned_difference(200, 5, baseline_runs=5, contrasts=4)
    assert four < planned_difference(200, 5, baseline_runs=5, contrasts=12)


@pytest.mark.parametrize("typical", [0.0, -3.0])
def test_detectable_difference_when_effect_is_that_large_then_is_found_four_in_five(
    typical: float,
) -> None:
    """The power at the stated effect is about 80 %, where all fail nearly always too."""
    rng = np.random.default_rng(11)
    rate = float(np.mean(1 / (1 + np.exp(-rng.normal(typical, 1.6, 20_000)))))

    def family(effect: float) -> Iterator[Estimate]:
        logits = rng.normal(typical, 1.6, (80, 1))
        values = []
        for number in range(3):
            shifts = rng.normal(0, 0.4, (1, 5)) + (effect if not number else 0.0)
            treated = rng.random((80, 5)) < 1 / (1 + np.exp(-logits - shifts))
            untreated = rng.random((80, 5)) < 1 / (1 + np.exp(-logits))
            values.append(treated - untreated.mean(axis=1, keepdims=True))
        orders = order_effects(values)
        return (mean_estimate(each, bounds=(-1, 1), orders=orders) for each in values)

    printed = [
        detectable_difference(each, contrasts=3, rates=(rate, rate + each.value))
        for _ in range(12)
        for each in family(0.0)
    ]
    logits = np.linspace(0.0, 3.0, 7)
    gained = [np.mean([next(family(logit)).value for _ in range(60)]) for logit in logits]
    shift = float(np.interp(np.median(printed), gained, logits))
    found = sum(next(family(shift)).p * 3 < 0.05 for _ in range(150))
    assert 0.68 <= found / 150 <= 0.92


def test_mean_estimate_when_one_item_never_varies_but_orders_differ_then_claims_nothing() -> None:
    """That its runs agree says nothing, where runs of the family are known to differ."""
    rng = np.random.default_rng(3)
    orders = order_effects([rng.normal(size=(12, 1)) + rng.normal(size=(1, 4)) for _ in range(3)])
    assert orders is not None
    assert orders.variance > 0
    estimate = mean_estimate(np.ones((1, 4)), orders=orders)
    assert (estimate.method, estimate.low, estimate.high, estimate.p) == ("unknown", 0.0, 1.0, 1.0)


@given(
    alpha=st.floats(1e-6, 0.2),
    spread=st.floats(0, 0.1),
    noise=st.floats(0, 0.02),
    items=st.integers(2, 300),
    df=st.floats(1, 30),
)
def test_quantiles_when_computed_at_once_are_exceeded_as_often_as_asked(
    alpha: float, spread: float, noise: float, items: int, df: float
) -> None:
    """Each is the quantile of an estimate whose runs are spread so, to the last digits."""
    estimate = mean_estimate(np.linspace(0, 1, 3 * items).reshape(items, 3))

    def of_runs(spread: float) -> Estimate:
        return replace(estimate, orders=OrderEffects(spread, noise, df, contrasts=1))

    spreads = np.array([0.0, spread, 0.04])
    for each, at_once in zip(spreads, quantiles(of_runs(0.01), alpha, spreads), strict=True):
        alone = quantile(of_runs(float(each)), alpha)
        assert at_once == pytest.approx(alone, rel=1e-8, abs=1e-11)
