"""What a plan registers: claims, intervals against margins, families, and what is wrong with a claim."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from langgraft.benchmarks.comparison import compare
from langgraft.benchmarks.comparison.contrasts import (
    Difference,
    Judged,
    difference_of,
    judge_hypotheses,
)
from langgraft.benchmarks.comparison.estimates import Matrix
from langgraft.benchmarks.comparison.outcomes import read_outcomes
from langgraft.benchmarks.comparison.verdicts import Direction, Hypothesis, misfits


def claim(direction: Direction = "greater", name: str = "it", **fields: Any) -> Hypothesis:
    """Return a hypothesis on two conditions."""
    given_: dict[str, Any] = {
        "treated": {"condition": "a"},
        "baseline": {"condition": "none"},
        "measure": "success",
        **fields,
    }
    return Hypothesis(name=name, direction=direction, **given_)


def outcomes(seed: int, **gains: float) -> dict[str, Matrix]:
    """Draw outcomes of a baseline and of conditions that gain something: 60 items, 4 runs."""
    rng = np.random.default_rng(seed)
    chance = rng.uniform(0.2, 0.6, (60, 1))
    return {
        name: (rng.random((60, 4)) < chance + gain).astype(float)
        for name, gain in {"none": 0.0, **gains}.items()
    }


def differences(drawn: dict[str, Matrix]) -> dict[str, Difference]:
    """Return each condition less the baseline."""
    read = read_outcomes(drawn)
    return {
        name: difference_of(found, [read["none"]], paired=False)
        for name, found in read.items()
        if name != "none"
    }


def judged(found: Difference, direction: Direction, **fields: Any) -> Judged:
    """Judge one hypothesis alone."""
    return judge_hypotheses([(claim(direction, **fields), found)])[0]


@pytest.mark.parametrize(
    ("direction", "margin", "gain", "verdict"),
    [
        ("greater", 0.0, 0.3, "supported"),
        ("greater", 0.0, -0.2, "refuted"),
        ("greater", 0.1, 0.3, "supported"),
        ("greater", 0.2, 0.0, "refuted"),
        ("greater", 0.3, 0.3, "undecided"),
        ("less", 0.0, 0.3, "refuted"),
        ("less", 0.0, -0.2, "supported"),
        ("different", 0.0, -0.2, "supported"),
        ("different", 0.2, 0.0, "refuted"),
        ("different", 0.0, 0.0, "undecided"),
        ("equivalent", 0.2, 0.0, "supported"),
        ("equivalent", 0.05, 0.3, "refuted"),
        ("equivalent", 0.01, 0.0, "undecided"),
        ("non_inferior", 0.2, 0.0, "supported"),
        ("non_inferior", 0.05, -0.2, "refuted"),
    ],
)
def test_hypothesis_when_an_effect_is_planted_is_held_to_its_margin(
    direction: Direction, margin: float, gain: float, verdict: str
) -> None:
    """Each claim is supported where the effect is as it says, and refuted where it is not."""
    found = differences(outcomes(7, a=gain))["a"]
    assert judged(found, direction, margin=margin).verdict == verdict


def test_non_inferior_when_less_is_better_asks_whether_it_grew() -> None:
    """Of bugs, twenty points more are worse, and twenty fewer are not."""
    for gain, verdict in ((0.3, "refuted"), (-0.2, "supported")):
        found = differences(outcomes(7, a=gain))["a"]
        fewer = Difference(found.values, complete=True, runs=4, better="lower")
        assert judged(fewer, "non_inferior", margin=0.05).verdict == verdict


def test_family_when_it_is_the_study_s_own_has_its_numbers() -> None:
    """All conditions registered as one family are the contrasts of the comparison, to the last digit."""
    drawn = outcomes(3, a=0.3, b=0.1, c=0.0)
    found = differences(drawn)
    tested = judge_hypotheses(
        [
            (claim("different", name, treated={"condition": name}), each)
            for name, each in found.items()
        ]
    )
    own = compare(drawn, baseline="none")
    for each in tested:
        contrast = own[each.hypothesis.name]
        assert each.estimate == contrast.estimate
        assert each.p_adjusted == pytest.approx(contrast.p_adjusted)


@given(
    gains=st.lists(st.floats(-0.3, 0.4), min_size=1, max_size=4),
    margin=st.sampled_from([0.02, 0.1, 0.25]),
    direction=st.sampled_from(["greater", "less", "different", "equivalent", "non_inferior"]),
    estimator=st.sampled_from(["general", "these_runs", "these_items"]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_verdicts_when_a_family_is_judged_are_those_of_the_intervals(
    gains: list[float], margin: float, direction: Direction, estimator: str, seed: int
) -> None:
    """The interval that is told decides: nothing is claimed that it does not show, and all that it does."""
    drawn = differences(outcomes(seed, **{f"c{n}": gain for n, gain in enumerate(gains)}))
    bare = [Difference(each.values, complete=True, runs=4) for each in drawn.values()]
    tested = judge_hypotheses(
        [
            (claim(direction, f"h{n}", margin=margin, estimator=estimator), each)
            for n, each in enumerate(bare)
        ]
    )
    for each in tested:
        assert each.interval is not None
        low, high = each.interval
        above, below = low > margin, high < -margin
        inside, outside = -margin < low and high < margin, above or below
        says = {
            "greater": (above, high < margin),
            "less": (below, low > -margin),
            "different": (outside, inside),
            "equivalent": (inside, outside),
            "non_inferior": (low > -margin, high < -margin),
        }[direction]
        expected = {(True, False): "supported", (False, True): "refuted"}.get(says, "undecided")
        assert each.verdict == expected


def test_family_when_it_grows_leaves_each_less_of_the_level() -> None:
    """Twenty claims of nothing beside it widen the interval that a claim is held to."""
    alone = differences(outcomes(9, a=0.1))["a"]
    bare = Difference(alone.values, complete=True, runs=4)
    noise = differences(outcomes(6, **{f"n{n}": 0.0 for n in range(19)})).values()
    one = judge_hypotheses([(claim(), bare)])[0]
    many = judge_hypotheses(
        [(claim(), bare), *((claim(name=f"n{n}"), each) for n, each in enumerate(noise))]
    )[0]
    apart = judge_hypotheses(
        [
            (claim(), bare),
            *((claim(name=f"n{n}", family="other"), each) for n, each in enumerate(noise)),
        ]
    )[0]
    assert one.verdict == apart.verdict == "supported"
    assert many.verdict == "undecided"
    assert (one.alpha, many.alpha) == (0.05, 0.05 / 20)
    assert one.interval is not None
    assert many.interval is not None
    assert many.interval[0] < 0 < one.interval[0]


def test_nulls_when_families_are_judged_are_rarely_claimed() -> None:
    """Of 150 families of three true nulls hardly any claims a thing, either way."""
    claims = 0
    for seed in range(150):
        found = differences(outcomes(seed, a=0.0, b=0.0, c=0.0))
        bare = [Difference(each.values, complete=True, runs=4) for each in found.values()]
        tested = judge_hypotheses(
            [(claim("different", f"h{n}"), each) for n, each in enumerate(bare)]
        )
        claims += any(each.verdict != "undecided" for each in tested)
    assert claims <= 14  # 5 % are 7.5; more than 14 come once in a hundred times


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"complete": False}, "incomplete"),
        ({"values": None}, "nothing to compare"),
        ({"runs": 2}, "fewer than 3 runs"),
        ({"why": "all prompts of both sides are the same"}, "all prompts"),
    ],
)
def test_hypothesis_when_it_cannot_be_tested_is_undecided_and_says_why(
    changed: dict[str, Any], why: str
) -> None:
    """Whatever the numbers would say."""
    found = differences(outcomes(7, a=0.3))["a"]
    given_: dict[str, Any] = {"values": found.values, "complete": True, "runs": 4, **changed}
    tested = judged(Difference(**given_), "greater")
    assert tested.verdict == "undecided"
    assert why in tested.why


def test_hypothesis_when_one_baseline_run_carries_it_is_undecided() -> None:
    """A verdict that falls with one run without memory is none, as in a study's own contrasts."""
    bare = np.ones((40, 3))
    bare[:, 0] = 0.0  # one run in which nothing succeeded
    treated = np.ones((40, 3))
    read = read_outcomes({"none": bare, "a": treated})
    found = difference_of(read["a"], [read["none"]], paired=False)
    tested = judged(found, "greater")
    assert tested.verdict == "undecided"
    assert "without one of the baseline's runs" in tested.why


def near() -> Difference:
    """A difference whose p value is .027: it holds alone, and not as the first of two."""
    found = differences(outcomes(8, a=0.08))["a"]
    return Difference(found.values, complete=True, runs=4)


def test_incomplete_hypothesis_when_in_a_family_still_counts() -> None:
    """Leaving a run unfinished does not make the claims beside it cheaper, whatever it shows so far."""
    sure = differences(outcomes(7, a=0.4))["a"].values
    for values in (None, sure):
        lost = Difference(values, complete=False, runs=4, shared_effects=False)
        alone, _ = judge_hypotheses([(claim(), near()), (claim(name="lost"), lost)])
        assert (alone.alpha, alone.verdict) == (0.025, "undecided")
    assert judged(near(), "greater").verdict == "supported"


def test_family_when_its_first_step_fails_leaves_all_the_same_level() -> None:
    """What comes after a step that does not hold is held to that step's interval."""
    tested = judge_hypotheses([(claim(name=f"h{n}"), near()) for n in range(3)])
    assert {(each.alpha, each.verdict) for each in tested} == {(0.05 / 3, "undecided")}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"direction": "bigger"}, "direction"),
        ({"direction": "equivalent"}, "needs a margin above 0"),
        ({"direction": "non_inferior", "margin": 0}, "needs a margin above 0"),
        ({"baseline": {"condition": "a"}}, "are the same"),
        ({"margin": -0.1}, "margin"),
        ({"alpha": 0.7}, "alpha"),
        ({"treated": {}}, "treated"),
        ({"treated": {"condition": True}}, "treated"),
        ({"estimator": "median"}, "estimator"),
        ({"hope": 1}, "hope"),
    ],
)
def test_hypothesis_when_it_is_no_claim_is_refused(fields: dict[str, Any], said: str) -> None:
    """Each message names the field, or says what the claim lacks."""
    given_ = {
        "name": "it",
        "treated": {"condition": "a"},
        "baseline": {"condition": "none"},
        "measure": "success",
        "direction": "greater",
        **fields,
    }
    with pytest.raises(ValidationError, match=said):
        Hypothesis.model_validate(given_)


def test_hypotheses_when_they_disagree_are_refused() -> None:
    """Names are distinct, and a family has one level."""
    cells = [{"condition": "a"}, {"condition": "none"}]
    for others, said in (
        ([claim("less")], "1 and 0 are both called 'it'"),
        ([claim(name="other", alpha=0.1)], "family 'registered' has one level"),
    ):
        (told,) = misfits([claim(), *others], cells, {"success": "higher"})
        assert said in told


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"treated": {"conditon": "a"}},
            "hypotheses.0.treated: there is no factor 'conditon'; did you",
        ),
        ({"treated": {"condition": "b"}}, "hypotheses.0.treated.condition: there is no 'b'"),
        ({"baseline": {"condition": "none", "task": 2}}, "baseline: the plan has no outcomes of"),
        (
            {"measure": "sucess"},
            "hypotheses.0.measure: there is no 'sucess'; did you mean 'success'",
        ),
        (
            {"measure": "length", "direction": "non_inferior", "margin": 0.1},
            "hypotheses.0.direction",
        ),
    ],
)
def test_misfits_when_a_plan_has_no_such_thing_name_the_place(
    fields: dict[str, Any], said: str
) -> None:
    """A level that is not there would be a claim about nothing."""
    cells: list[dict[str, str | int]] = [
        {"condition": "a", "task": 1},
        {"condition": "a", "task": 2},
        {"condition": "none", "task": 1},
    ]
    given_: dict[str, Any] = {"direction": "greater", **fields}
    found = list(misfits([claim(**given_)], cells, {"success": "higher", "length": None}))
    assert len(found) == 1
    assert said in found[0]
    assert not list(misfits([claim(baseline={"task": 1})], cells, {"success": "higher"}))
