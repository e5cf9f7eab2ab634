"""`compare_measures`: numbers of any range, of which some are missing, one family over all measures."""

import numpy as np
import pytest

from langgraft.benchmarks.comparison import Measure, MeasureContrast, Measured, compare_measures
from langgraft.benchmarks.comparison.outcomes import Pair
from langgraft.benchmarks.comparison.verdicts import Better

ITEMS, RUNS = 12, 4
SHIFTS = {"off": 0.0, "rerun": 0.0, "warm": -6.0, "placebo": 0.0}


def measured(
    name: str = "steps",
    *,
    better: Better | None = "lower",
    confirmatory: bool = True,
    without: tuple[str, Pair] | None = None,
    undefined: tuple[str, Pair] | None = None,
) -> Measured:
    """Draw a count of steps under four conditions; one of a pair may be missing or undefined."""
    rng = np.random.default_rng(7)
    base = rng.uniform(10, 30, ITEMS)
    values: dict[str, dict[Pair, float | None]] = {
        condition: {
            (f"task {item}", run): float(base[item] + shift + rng.normal(0, 1))
            for item in range(ITEMS)
            for run in range(RUNS)
        }
        for condition, shift in SHIFTS.items()
    }
    planned = {condition: frozenset(found) for condition, found in values.items()}
    if without is not None:
        del values[without[0]][without[1]]
    if undefined is not None:
        values[undefined[0]][undefined[1]] = None
    measure = Measure(name, name, "steps", better, confirmatory)
    return Measured(measure, values, planned, most=40.0)


def contrasts(*of: Measured) -> dict[tuple[str, str], MeasureContrast]:
    """Compare, and find contrasts by condition and measure."""
    return {(each.condition, each.measure.name): each for each in compare_measures(of)}


@pytest.mark.parametrize(
    ("better", "verdict"), [("lower", "better"), ("higher", "worse"), (None, "changed")]
)
def test_verdict_when_a_difference_is_clear_goes_by_the_good_direction(
    better: Better | None, verdict: str
) -> None:
    """Fewer steps are better where less is good, and a change where neither is."""
    found = contrasts(measured(better=better))["warm", "steps"]
    assert found.verdict == found.verdict_same_items == verdict
    assert found.estimate is not None
    assert found.estimate.low <= -6 <= found.estimate.high


def test_family_when_there_are_controls_and_other_readings_leaves_them_out() -> None:
    """Every memory by every confirmatory measure; the rest has no corrected p value."""
    found = contrasts(measured(), measured("late"), measured("reading", confirmatory=False))
    family = {key for key, each in found.items() if each.in_family}
    assert family == {("warm", "steps"), ("warm", "late")}
    assert {key for key, each in found.items() if each.p_adjusted is not None} == family
    assert found["placebo", "steps"].verdict == "no detectable difference"


def test_family_when_it_grows_is_corrected_for_its_size() -> None:
    """Two equal differences: Holm doubles the p value of either question."""
    alone, both = contrasts(measured()), contrasts(measured(), measured("late"))
    one, other = alone["warm", "steps"], both["warm", "steps"]
    assert one.p_adjusted is not None
    assert other.p_adjusted == pytest.approx(2 * one.p_adjusted)
    assert one.p_same_items is not None
    assert other.p_same_items == pytest.approx(2 * one.p_same_items)


def test_contrast_when_a_run_is_missing_is_incomplete_and_still_counts() -> None:
    """It is shown without a verdict; the other of the family is corrected as if its p were 1."""
    gap = ("warm", ("task 0", 0))
    found = contrasts(measured(without=gap), measured("late"))
    missing, other = found["warm", "steps"], found["warm", "late"]
    assert (missing.verdict, missing.p_adjusted) == ("incomplete", None)
    assert (missing.pairs, missing.planned) == (ITEMS * RUNS - 1, ITEMS * RUNS)
    alone = contrasts(measured("late"))["warm", "late"].p_adjusted
    assert alone is not None
    assert other.p_adjusted == pytest.approx(2 * alone)


def test_contrast_when_a_number_is_undefined_leaves_the_pair_out() -> None:
    """The re-run has one, so that only the condition's own gaps count; levels count both."""
    gap = ("task 3", 1)
    found = contrasts(measured(undefined=("off", gap)))["warm", "steps"]
    assert (found.pairs, found.undefined, found.complete) == (ITEMS * RUNS, 0, True)
    of = measured(undefined=("warm", gap))
    found = contrasts(of)["warm", "steps"]
    assert (found.pairs, found.undefined, found.complete) == (ITEMS * RUNS - 1, 1, True)
    (level,) = (each for each in of.levels if each.condition == "warm")
    assert (level.n, level.undefined, level.planned) == (ITEMS * RUNS - 1, 1, ITEMS * RUNS)


def test_difference_when_there_is_a_rerun_is_from_the_mean_of_both() -> None:
    """The re-run itself is compared with the baseline alone."""
    of, pair = measured(), ("task 5", 2)
    off, rerun, warm = (of.values[name][pair] or 0.0 for name in ("off", "rerun", "warm"))
    assert of.differences("warm")[pair] == pytest.approx(warm - (off + rerun) / 2)
    assert of.differences("rerun")[pair] == pytest.approx(rerun - off)
