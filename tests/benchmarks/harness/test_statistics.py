"""Statistics: intervals cover what they claim to, and edge cases stay honest."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from langgraft.benchmarks.harness.statistics import (
    Matrix,
    holm,
    mean_estimate,
    minimum_detectable_effect,
    paired_difference,
    planned_effect,
    proportion,
)


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
    ("items", "replicates", "order"),
    [(100, 1, 0.0), (100, 3, 0.0), (100, 3, 0.3), (100, 5, 0.3), (50, 10, 0.15)],
)
def test_interval_when_nothing_differs_then_covers_zero_as_often_as_it_says(
    items: int, replicates: int, order: float
) -> None:
    """Between 92 and 98 % of nominal 95 % intervals hold the truth."""
    rng = np.random.default_rng(2026)
    hits = 0
    for _ in range(300):
        estimate = paired_difference(
            *simulated(rng, items=items, replicates=replicates, order=order)
        )
        hits += estimate.low <= 0 <= estimate.high
    assert 0.92 <= hits / 300 <= 0.98


def test_interval_when_replicates_shift_all_items_then_items_alone_would_mislead() -> None:
    """With order effects the items-only interval undercovers where the crossed one does not."""
    rng = np.random.default_rng(7)
    crossed = alone = 0
    for _ in range(200):
        treated, baseline = simulated(rng, items=500, replicates=3, order=0.3)
        one = paired_difference(treated, baseline)
        other = paired_difference(treated, baseline, shared_effects=False)
        crossed += one.low <= 0 <= one.high
        alone += other.low <= 0 <= other.high
    assert alone / 200 < 0.80
    assert crossed / 200 > 0.90


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


def test_crossed_variance_when_written_out_then_is_the_anova_formula() -> None:
    """Standard error and degrees of freedom follow from the three mean squares."""
    values = np.array([[0.0, 0.5, 1.0], [0.2, 0.4, 0.9], [0.1, 0.9, 0.8], [0.3, 0.2, 1.0]])
    n, s = values.shape
    grand, rows, columns = values.mean(), values.mean(axis=1), values.mean(axis=0)
    ms_item = s * ((rows - grand) ** 2).sum() / (n - 1)
    ms_seed = n * ((columns - grand) ** 2).sum() / (s - 1)
    rest = values - rows[:, None] - columns + grand
    ms_err = (rest**2).sum() / ((n - 1) * (s - 1))
    estimate = mean_estimate(values)
    assert ms_item < ms_err < ms_seed
    assert estimate.se == pytest.approx(np.sqrt(ms_seed / (n * s)))
    values[0] += 0.9
    values /= 2
    estimate = mean_estimate(values)
    grand, rows, columns = values.mean(), values.mean(axis=1), values.mean(axis=0)
    ms_item = s * ((rows - grand) ** 2).sum() / (n - 1)
    ms_seed = n * ((columns - grand) ** 2).sum() / (s - 1)
    rest = values - rows[:, None] - columns + grand
    ms_err = (rest**2).sum() / ((n - 1) * (s - 1))
    total = ms_item + ms_seed - ms_err
    df = total**2 / (ms_item**2 / (n - 1) + ms_seed**2 / (s - 1) + ms_err**2 / ((n - 1) * (s - 1)))
    assert ms_err < ms_item
    assert (estimate.se, estimate.df) == pytest.approx((np.sqrt(total / (n * s)), df))
    assert estimate.seed_share == pytest.approx((ms_seed - ms_err) / total)


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
    assert minimum_detectable_effect(estimate) == estimate.high


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


def test_minimum_detectable_effect_when_impossible_then_is_infinite() -> None:
    """Two runs that disagree, one item, or five equal ones can show no difference at all."""
    rng = np.random.default_rng(3)
    runs = rng.normal(0, 0.01, (30, 2)) + np.array([[0.4, -0.4]])
    two_runs = mean_estimate(runs, bounds=(-1, 1))
    assert two_runs.df == pytest.approx(1, abs=0.01)
    one_item = mean_estimate(np.array([[0.0, 1.0]]), bounds=(-1, 1))
    five = paired_difference(np.ones((5, 1)), np.ones((5, 1)))
    for estimate in (two_runs, one_item, five):
        assert minimum_detectable_effect(estimate) == np.inf
    six = paired_difference(np.ones((6, 1)), np.ones((6, 1)))
    assert 0 < minimum_detectable_effect(six) < 1


def test_planned_effect_when_plan_is_too_small_then_is_infinite() -> None:
    """One item can show nothing, and neither can two with one run."""
    assert planned_effect(1, 100) == planned_effect(2, 1) == np.inf


def test_mean_estimate_when_one_item_varies_then_claims_nothing() -> None:
    """One item says nothing about others: the interval is all there is."""
    estimate = mean_estimate(np.array([[0.0, 1.0]]))
    assert (estimate.method, estimate.low, estimate.high, estimate.p) == ("unknown", 0.0, 1.0, 1.0)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4,)])
def test_mean_estimate_when_there_are_no_values_then_raises(shape: tuple[int, ...]) -> None:
    """Nothing cannot be averaged."""
    with pytest.raises(ValueError, match="items by replicates"):
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


def test_planned_effect_when_sizes_are_the_papers_then_agrees_with_the_notes() -> None:
    """The figures of evaluation §2.3, in percentage points, within the t correction."""
    assert planned_effect(100, 3) == pytest.approx(0.095, abs=0.002)
    assert planned_effect(100, 3, noise_variance=0.05) == pytest.approx(0.065, abs=0.002)
    assert planned_effect(100, 3, noise_variance=0.0) == pytest.approx(0.040, abs=0.002)
    assert planned_effect(500, 3) == pytest.approx(0.043, abs=0.001)


def test_minimum_detectable_effect_when_effect_is_that_large_then_is_found_four_in_five() -> None:
    """The power at the stated effect is 80 %, within what 400 draws can tell."""
    rng = np.random.default_rng(11)
    found = 0
    effect = 0.4 * (stats.t.ppf(0.975, 99) + stats.t.ppf(0.8, 99)) / 10
    for _ in range(400):
        values = rng.normal(effect, 0.4, (100, 1)).clip(-1, 1)
        found += mean_estimate(values, bounds=(-1, 1)).p < 0.05
    assert 0.74 <= found / 400 <= 0.86
    estimate = mean_estimate(values, bounds=(-1, 1))
    assert minimum_detectable_effect(estimate) == pytest.approx(effect, rel=0.15)
