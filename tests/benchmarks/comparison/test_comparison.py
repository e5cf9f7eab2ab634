"""`compare`: outcomes in, verdicts out, without a plan or a study."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraft._core.errors import InputError
from langgraft.benchmarks.comparison import Comparison, compare, holm
from langgraft.benchmarks.comparison.contrasts import compare_outcomes, corrected
from langgraft.benchmarks.comparison.estimates import Matrix
from langgraft.benchmarks.comparison.outcomes import read_outcomes

ROLES: dict[str, Any] = {"baseline": "none", "controls": ["placebo"], "rerun": "again"}


def drawn(
    seed: int = 0, *, items: int = 60, runs: int = 4, gains: dict[str, float] | None = None
) -> dict[str, Matrix]:
    """Draw outcomes of a baseline, its re-run, a control and conditions that gain something."""
    rng = np.random.default_rng(seed)
    chance = rng.uniform(0.1, 0.6, (items, 1))
    gained = {"none": 0.0, "again": 0.0, "placebo": 0.0, **(gains or {"a": 0.3, "b": 0.0})}
    return {
        name: (rng.random((items, runs)) < chance + gain).astype(float)
        for name, gain in gained.items()
    }


def rows(outcomes: dict[str, Matrix]) -> list[dict[str, Any]]:
    """Write outcomes as long rows."""
    return [
        {"item": f"task {item}", "run": run, "condition": name, "outcome": value}
        for name, values in outcomes.items()
        for (item, run), value in np.ndenumerate(values)
    ]


def numbers(found: Comparison) -> dict[str, list[Any]]:
    """Return what a comparison says of each condition, rounded."""
    return {
        row["condition"]: [
            tuple(round(e, 9) for e in v)
            if isinstance(v, tuple) and name != "overturned_by"
            else round(v, 9)
            if isinstance(v, float)
            else v
            for name, v in row.items()
        ]
        for row in found.rows()
    }


def test_compare_when_effects_are_known_then_names_them() -> None:
    """What helps helped, what does nothing made no detectable difference, and controls hold."""
    found = compare(drawn(items=200, runs=6, gains={"a": 0.3, "b": 0.0, "c": -0.1}), **ROLES)
    assert {each.condition: each.verdict for each in found.family} == {
        "a": "helped",
        "b": "no detectable difference",
        "c": "hurt",
    }
    assert found.quiet is True
    assert found.holds(found["placebo"]) is True
    assert found["placebo"].p_adjusted is None
    assert found["a"].baseline.estimate is not None
    assert found["a"].baseline.estimate.n_replicates == 12
    assert {row["role"] for row in found.rows()} == {"condition", "control", "rerun"}
    with pytest.raises(KeyError, match="nobody"):
        found["nobody"]


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_compare_when_items_runs_and_conditions_are_permuted_then_says_the_same(
    seed: int, random: Any
) -> None:
    """Neither the order of rows nor names of items decide anything; nor does the form."""
    outcomes = drawn(seed, items=12, runs=3)
    long = rows(outcomes)
    expected = numbers(compare(outcomes, **ROLES))
    random.shuffle(long)
    assert numbers(compare(long, **ROLES)) == expected
    columns = {name: [row[name] for row in long] for name in long[0]}
    assert numbers(compare(columns, **ROLES)) == expected
    scores: dict[str, dict[Any, dict[Any, float]]] = {}
    for row in long:
        by_run = scores.setdefault(row["condition"], {}).setdefault(row["run"], {})
        by_run[row["item"]] = row["outcome"]
    assert numbers(compare(scores, **ROLES)) == expected


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_compare_when_outcomes_are_turned_around_then_help_is_harm(seed: int) -> None:
    """Failure instead of success changes the sign of every difference, and no p value."""
    outcomes = drawn(seed, items=15, runs=3)
    found = compare(outcomes, **ROLES)
    turned = compare({name: 1 - values for name, values in outcomes.items()}, **ROLES)
    opposite = {"helped": "hurt", "hurt": "helped"}
    for one, other in zip(found.family, turned.family, strict=True):
        assert one.estimate is not None
        assert other.estimate is not None
        assert other.estimate.value == pytest.approx(-one.estimate.value, abs=1e-12)
        assert other.p_adjusted == pytest.approx(one.p_adjusted)
        assert other.verdict == opposite.get(one.verdict, one.verdict)


def test_compare_when_given_a_frame_of_pandas_then_reads_its_columns() -> None:
    """A frame needs no more than its four columns, and may have others."""
    pandas = pytest.importorskip("pandas")
    outcomes = drawn(3, items=20)
    frame = pandas.DataFrame(rows(outcomes)).assign(seconds=1.5)
    assert numbers(compare(frame, **ROLES)) == numbers(compare(outcomes, **ROLES))


def test_verdict_when_only_the_bare_p_value_is_small_then_finds_nothing() -> None:
    """What counts is the p value corrected over the family, and its size is that of the family."""
    rng = np.random.default_rng(5)
    gains = {"a": 0.14, **{f"null-{number}": 0.0 for number in range(7)}}
    between = [
        each
        for seed in rng.integers(0, 10**6, 12)
        for each in compare(drawn(int(seed), items=40, gains=gains), **ROLES).family
        if each.estimate and each.p_adjusted and each.estimate.p < 0.05 < each.p_adjusted
    ]
    assert len(between) > 3
    assert {each.verdict for each in between} <= {"no detectable difference", "unclear"}
    alone = compare(drawn(1, gains={"a": 0.3}), **ROLES)["a"]
    assert alone.estimate is not None
    assert alone.p_adjusted == alone.estimate.p


def test_verdict_when_one_run_of_the_baseline_decides_it_then_is_unclear_and_names_the_run() -> (
    None
):
    """One run of the baseline that went wrong makes a condition look good."""
    outcomes = drawn(2, gains={"a": 0.0}, runs=3)
    del outcomes["again"], outcomes["placebo"]
    outcomes["none"] = outcomes["none"][:, :2].copy()
    outcomes["none"][:, 1] = 0.0
    found = compare(outcomes, baseline="none")["a"]
    assert found.p_adjusted is not None
    assert found.p_adjusted < 0.05
    assert (found.verdict, found.overturned_by) == ("unclear", ("none 1",))


def test_verdict_when_there_are_two_runs_then_there_is_none() -> None:
    """However large the difference."""
    found = compare(drawn(runs=2, gains={"a": 0.4}), **ROLES)["a"]
    assert found.verdict == "too few runs"


@pytest.mark.parametrize(("items", "gain"), [(2, 1.0), (5, 1.0), (2, 0.0), (5, 0.0)])
def test_verdict_when_so_few_items_find_nothing_then_is_too_small(items: int, gain: float) -> None:
    """A study that cannot find a difference of half of all items does not say that there is none."""
    same = np.zeros((items, 5))
    found = compare({"none": same, "a": same + gain}, baseline="none")["a"]
    assert found.verdict == "too small"
    assert found.detectable == math.inf


def test_verdict_when_half_of_all_items_would_be_found_then_there_is_one() -> None:
    """Six items that never change are enough to say that most do not, and no run overturns it."""
    same = np.zeros((6, 5))
    found = compare({"none": same, "a": same, "b": same + 1.0}, baseline="none")
    assert found["a"].verdict == "too small"  # two memories share the level
    alone = compare({"none": same, "a": same}, baseline="none")["a"]
    assert alone.verdict == "no detectable difference"
    assert alone.detectable is not None
    assert alone.detectable <= 0.5
    assert compare({"none": same, "b": same + 1.0}, baseline="none")["b"].verdict == "helped"


@pytest.mark.parametrize("missing", [math.nan, None, ...])
def test_verdict_when_an_outcome_is_missing_then_is_incomplete_and_counts_in_the_family(
    missing: Any,
) -> None:
    """NaN, `None` and a row that is not there are the same; others are corrected as before."""
    long = rows(drawn(gains={"a": 0.3, "b": 0.2}))
    place = next(n for n, row in enumerate(long) if row["condition"] == "a")
    if missing is ...:
        del long[place]
    else:
        long[place]["outcome"] = missing
    found = compare(long, **ROLES)
    assert (found["a"].verdict, found["a"].p_adjusted) == ("incomplete", None)
    assert found["a"].success.done == found["a"].success.planned - 1
    other = found["b"]
    assert other.estimate is not None
    assert other.p_adjusted == pytest.approx(min(1.0, 2 * other.estimate.p))


def test_controls_when_judged_then_equivalence_has_to_be_shown() -> None:
    """A control that differs fails, one that is hardly looked at can show nothing."""
    found = compare(drawn(items=150, gains={"placebo": 0.3}), **ROLES)
    assert found.holds(found["placebo"]) is False
    few = compare(drawn(items=6), **ROLES)
    assert few.holds(few["placebo"]) is None
    strict = compare(drawn(items=150), **ROLES, margin=0.001)
    assert strict.quiet is not True


def test_order_effects_when_runs_shift_then_the_interval_for_these_orders_is_narrower() -> None:
    """Both intervals and the spread of whole runs are there to be read."""
    rng = np.random.default_rng(8)
    shift = np.array([[-0.2, 0.0, 0.2, 0.1]])
    outcomes = drawn(4, items=120)
    outcomes["a"] = (rng.random((120, 4)) < 0.5 + shift).astype(float)
    found = compare(outcomes, **ROLES)["a"]
    assert found.estimate is not None
    assert found.order_sd is not None
    assert found.order_sd > 0.05
    low, high = found.estimate.these_orders
    assert found.estimate.low < low < high < found.estimate.high


def test_detectable_when_the_family_grows_then_grows() -> None:
    """It is that of the first step of Holm's procedure."""
    outcomes = drawn(6, items=80, gains={"a": 0.0})
    one = compare(outcomes, **ROLES)["a"].detectable
    copies = {f"copy {number}": outcomes["a"] for number in range(5)}
    many = compare({**outcomes, **copies}, **ROLES)["a"].detectable
    assert one is not None
    assert many is not None
    assert one < many < 1


def test_families_when_a_study_has_several_then_share_one_level() -> None:
    """Their number multiplies p values, verdicts follow, and it takes more to be detected."""
    raw = read_outcomes(drawn(6, items=80, gains={"a": 0.15}))
    one, many = (
        compare_outcomes(raw, baseline="none", controls=["placebo", "again"], families=families)[
            "a"
        ]
        for families in (1, 40)
    )
    assert one.p_adjusted is not None
    assert one.p_adjusted * 40 == pytest.approx(many.p_adjusted)
    assert (one.verdict, many.verdict) == ("helped", "no detectable difference")
    assert one.detectable is not None
    assert many.detectable is not None
    assert one.detectable < many.detectable
    assert holm([0.001, 0.2], families=10) == (0.02, 1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_holm_when_given_any_family_then_keeps_order_and_follows_its_definition(
    p_values: list[float], random: Any
) -> None:
    """The k-th smallest is multiplied by what is left, never below one before it, at most 1."""
    adjusted = holm(p_values)
    ranked = sorted(p_values)
    for p, found in zip(p_values, adjusted, strict=True):
        before = [min(1.0, (len(ranked) - k) * q) for k, q in enumerate(ranked) if q <= p]
        assert found == max(before)
    places = list(range(len(p_values)))
    random.shuffle(places)
    assert holm([p_values[place] for place in places]) == tuple(adjusted[place] for place in places)


def test_corrected_when_one_is_incomplete_then_counts_it_as_one() -> None:
    """The size of a family is declared, and does not shrink with what failed."""
    estimate = compare(drawn(), **ROLES)["a"].estimate
    assert estimate is not None
    assert corrected([(estimate, True), (estimate, False), (None, True)]) == (
        min(1.0, 3 * estimate.p),
        1.0,
        1.0,
    )


@pytest.mark.parametrize(
    ("outcomes", "roles", "words"),
    [
        ({}, {}, "no outcomes"),
        (7, {}, "got int"),
        ([1.0], {}, r"row 0 is 1\.0"),
        ([{"item": 1, "run": 1, "condition": "none"}], {}, "row 0 has no 'outcome'"),
        ({"item": [1], "run": [1], "condition": ["a"], "outcome": []}, {}, "length: item 1"),
        ({"none": [[1, 0], [1]]}, {}, "none: expected numbers"),
        ({"none": [1, 0]}, {}, r"none: .* the shape \(2,\)"),
        ({"none": [[1], [0]], "a": [[1]]}, {}, "same items .* 'none' 2, 'a' 1"),
        ({"none": [[1], [0]], "a": [[1], [2]]}, {}, "a, item 1, run 0: the outcome is .*2"),
        ({"none": {0: [1]}}, {}, "none, run 0: expected the outcomes by item"),
        ({"none": [[1]], "a": [[1]]}, {"baseline": "off"}, "baseline 'off' .* 'none', 'a'"),
        ({"none": [[1]], "a": [[1]]}, {"controls": ["b"]}, "control 'b' has no outcomes"),
        ({"none": [[1]], "a": [[1]]}, {"controls": "a"}, "a list of conditions, got the text 'a'"),
        (
            {"none": [[1]], "a": [[1]]},
            {"rerun": "none"},
            "'none' is named as baseline and as re-run",
        ),
        ({"none": [[1]], "a": [[1]]}, {"margin": 10}, "between 0 and 1, such as 0.1, got 10"),
    ],
)
def test_compare_when_something_is_wrong_then_says_what_and_where(
    outcomes: Any, roles: dict[str, Any], words: str
) -> None:
    """One error, before anything is computed."""
    with pytest.raises(InputError, match=words):
        compare(outcomes, **{"baseline": "none", **roles})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("outcome", 1.5, "row 3: the outcome is 1.5; outcomes are numbers from 0 to 1"),
        ("outcome", "yes", "row 3: the outcome is 'yes', which is no number"),
        ("outcome", "1", "row 3: the outcome is '1'"),
        ("outcome", math.inf, "row 3: the outcome is inf"),
        ("item", None, "row 3: item is None, which is no name"),
        ("run", math.nan, "row 3: run is nan"),
        ("run", 2, "row 3: there are two outcomes of item 'task 0' in run '2' of 'none'"),
        ("condition", "", "row 3: condition is ''"),
    ],
)
def test_compare_when_a_row_is_wrong_then_names_the_row(field: str, value: Any, words: str) -> None:
    """Long rows are told by their place."""
    long = rows(drawn(items=3))
    assert long[3]["run"] == 3
    long[3][field] = value
    with pytest.raises(InputError, match=words):
        compare(long, **ROLES)
