"""Help and harm apart, and the sequential test of a guard."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from langgraft.benchmarks.comparison.estimates import Matrix, transitions
from langgraft.benchmarks.comparison.verdicts import FEWEST_PAIRS, fixed_pairs, guard_decision

shapes = st.tuples(st.integers(2, 6), st.integers(1, 4))
outcomes = shapes.flatmap(
    lambda shape: st.tuples(
        *(arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.25, 1.0])) for _ in range(2))
    )
)


@given(outcomes)
def test_transitions_when_taken_apart_then_make_up_the_difference(
    pair: tuple[Matrix, Matrix],
) -> None:
    """Gains less losses are the mean difference, and so is what is beyond chance, at most."""
    treated, baseline = pair
    found = transitions(treated, baseline)
    assert found.gained.value - found.lost.value == pytest.approx((treated - baseline).mean())
    assert min(found.gained.value, found.lost.value) >= 0
    assert found.gained.value + found.lost.value == pytest.approx(np.abs(treated - baseline).mean())
    if treated.shape[1] == 1:
        assert (found.chance, found.helped, found.harmed) == (None, None, None)
    else:
        assert found.helped is not None
        assert found.harmed is not None
        assert found.helped.value <= found.gained.value + 1e-9
        assert found.harmed.value <= found.lost.value + 1e-9


@given(outcomes)
def test_transitions_when_sides_are_swapped_then_help_and_harm_are(
    pair: tuple[Matrix, Matrix],
) -> None:
    """What is gained one way is lost the other."""
    treated, baseline = pair
    found, swapped = transitions(treated, baseline), transitions(baseline, treated)
    assert found.gained.value == pytest.approx(swapped.lost.value)
    assert found.lost.value == pytest.approx(swapped.gained.value)
    if found.helped is not None and swapped.harmed is not None:
        assert found.helped.value == pytest.approx(swapped.harmed.value)


@given(outcomes)
def test_transitions_when_nothing_changes_from_run_to_run_then_there_is_no_chance(
    pair: tuple[Matrix, Matrix],
) -> None:
    """Steady outcomes have no turnover, and all that is gained is help."""
    treated, baseline = (np.repeat(each[:, :1], 3, axis=1) for each in pair)
    found = transitions(treated, baseline)
    assert found.chance == 0
    assert found.helped is not None
    assert found.harmed is not None
    assert found.helped.value == pytest.approx(found.gained.value)
    assert found.harmed.value == pytest.approx(found.lost.value)


def test_transitions_when_only_chance_is_at_work_then_help_and_harm_are_none_on_average() -> None:
    """Of 200 pairs of the same coin much is gained and lost, and nothing beyond chance."""
    draw = np.random.default_rng(3)
    helped, gained, chance = [], [], []
    for _ in range(200):
        treated, baseline = draw.integers(0, 2, (2, 20, 5)).astype(float)
        found = transitions(treated, baseline)
        assert found.helped is not None
        assert found.chance is not None
        helped.append(found.helped.value)
        gained.append(found.gained.value)
        chance.append(found.chance)
    assert np.mean(helped) == pytest.approx(0, abs=0.01)
    assert np.mean(gained) == pytest.approx(0.25, abs=0.01)
    assert np.mean(chance) == pytest.approx(0.25, abs=0.01)


def test_transitions_when_shapes_differ_then_are_refused() -> None:
    """Both shapes are told."""
    with pytest.raises(ValueError, match=r"\(2, 2\) and \(2, 3\)"):
        transitions(np.zeros((2, 2)), np.zeros((2, 3)))


# The sequential test ----------------------------------------------------------------------

differences = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), max_size=200)


@given(differences, differences)
def test_decision_when_made_then_later_pairs_do_not_change_it(
    seen: list[float], more: list[float]
) -> None:
    """It is made once, never on fewer than the fewest pairs, and none is open at the end."""
    decision = guard_decision(seen)
    if decision.verdict != "open":
        assert decision.pairs >= FEWEST_PAIRS
        assert guard_decision([*seen, *more]) == decision
        assert guard_decision(seen, ended=True) == decision
        assert decision.difference == pytest.approx(np.mean(seen[: decision.pairs]))
    assert guard_decision(seen, ended=True).verdict != "open"


@given(st.integers(FEWEST_PAIRS, 100))
def test_decision_when_every_pair_says_the_same_then_is_that(pairs: int) -> None:
    """All lost, nothing changed, all gained."""
    assert guard_decision([-1.0] * pairs).verdict == "regressed"
    assert guard_decision([1.0] * pairs).verdict == "passed"
    assert guard_decision([0.0] * pairs, ended=True).verdict == "passed"


def test_decision_when_repeated_then_errs_as_seldom_as_it_says() -> None:
    """300 changes without loss and 300 that lose the margin, at 20 % of pairs that differ."""
    draw, margin = np.random.default_rng(5), 0.1
    pairs = int(1.5 * fixed_pairs(0.2, margin))

    def found(lost: float, gained: float) -> float:
        chances = [lost, 1 - lost - gained, gained]
        verdicts = [
            guard_decision(
                list(draw.choice([-1.0, 0.0, 1.0], pairs, p=chances)), margin, ended=True
            )
            for _ in range(300)
        ]
        return sum(each.verdict == "regressed" for each in verdicts) / len(verdicts)

    assert found(0.1, 0.1) < 0.08
    assert found(0.15, 0.05) > 0.74
