"""Why memory did what it did: null values, shares of transfer, probes, remedies, dilution."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_log import DOMAINS, SyntheticLog, World

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.estimates import mean_estimate
from langgraft.benchmarks.comparison.outcomes import Metric, Spread
from langgraft.benchmarks.continual.analysis import Analysis, analyze, expected
from langgraft.benchmarks.continual.cells import Cell, CellKey, RunResults, StudyLog
from langgraft.benchmarks.continual.curves import WINDOWS, Dilution
from langgraft.benchmarks.continual.curves import Tested as EarlierTask
from langgraft.benchmarks.continual.mechanisms import collapsed, explain
from langgraft.benchmarks.continual.metrics import decompositions, majority, partition, transfers
from langgraft.benchmarks.continual.probes import crossings
from langgraft.benchmarks.continual.retrieval import CellRetrieval, Measures, RunRetrieval
from langgraft.benchmarks.harness.study import RunSpec

WORLD = World(
    conditions=("ind", "step", "fold"),
    controls=(),
    probes=("step@ind", "ind@step", "fold@ind"),
    mends={"fold": "ind"},
    effects={("ind", "", ""): 0.2},
    favorite={"ind": 1.0},
    train_items=10,
    test_items=20,
    steps=2,
)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """Analyze a study with probes, a remedy and milestones."""
    return analyze(SyntheticLog(WORLD))


def cell(condition: str, sequence: str, task: str, *replicates: dict[str, bool]) -> Cell:
    """Make a cell, a mapping of outcomes per replicate."""
    runs = []
    for replicate, outcomes in enumerate(replicates):
        factors: dict[str, JSON] = {"condition": condition, "replicate": replicate}
        spec = RunSpec("continual", f"{condition}/{replicate}", factors, tuple(outcomes))
        results: list[dict[str, JSON]] = [
            {"task_id": name, "success": success} for name, success in outcomes.items()
        ]
        runs.append(RunResults(spec, tuple(results)))
    return Cell(CellKey(condition, sequence, task), tuple(runs))


def study_of(*cells: Cell) -> StudyLog:
    """Make a study of cells."""
    return StudyLog({each.key: each for each in cells}, ())


# Null values


@pytest.mark.parametrize("runs", [3, 5])
def test_expected_when_chances_are_known_then_is_within_three_points_of_a_fresh_run(
    runs: int,
) -> None:
    """RR and NL of a fresh run on the split, over 20 splits: the fit's mean error is small."""
    rng = np.random.default_rng(5)
    errors: list[list[float]] = [[], []]
    for _ in range(20):
        chances = 1 / (1 + np.exp(-rng.normal(0, 1.6, 60)))
        scores = {
            run: {str(i): float(v) for i, v in enumerate(rng.random(60) < chances)}
            for run in range(runs)
        }
        for subset, found in zip(majority(scores), errors, strict=True):
            truth = float(np.mean([chances[int(item)] for item in subset]))
            fitted = expected(scores, subset)
            assert fitted is not None
            found.append(fitted - truth)
    for found in errors:
        assert abs(float(np.mean(found))) < 0.03


def test_expected_when_the_baseline_never_varies_then_is_what_one_would_think() -> None:
    """Without noise there is hardly any regression to the mean: RR is near 1, NL near 0."""
    scores = {r: {**dict.fromkeys("abc", 1.0), **dict.fromkeys("xyz", 0.0)} for r in range(4)}
    assert expected(scores, frozenset("abc")) == pytest.approx(1, abs=0.01)
    assert expected(scores, frozenset("xyz")) == pytest.approx(0, abs=0.01)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6))
def test_expected_when_outcomes_are_anything_then_lies_between_0_and_1(
    outcomes: list[list[bool]],
) -> None:
    """Shares are shares, and one run alone leaves nothing to fit a distribution to."""
    runs = {r: {str(i): float(v) for i, v in enumerate(each)} for r, each in enumerate(outcomes)}
    for subset in majority(runs):
        found = expected(runs, subset)
        assert found is None or 0 <= found <= 1
        assert (found is None) == (len(runs) == 1 or not subset)


def test_null_values_when_memory_does_nothing_then_are_near_the_reruns() -> None:
    """What is expected from the baseline alone is what its re-run measures, but for chance."""
    null = analyze(SyntheticLog(World(test_items=200, controls=(), train_items=2))).nulls[0]
    assert null.measured_rr is not None
    assert null.measured_rr.estimate is not None
    assert null.expected_rr is not None
    assert null.measured_nl is not None
    assert null.measured_nl.estimate is not None
    assert null.expected_nl is not None
    assert null.expected_rr == pytest.approx(null.measured_rr.estimate.value, abs=0.1)
    assert null.expected_nl == pytest.approx(null.measured_nl.estimate.value, abs=0.1)
    assert null.expected_rr < 0.95  # of items solved 9 times in 10: regression to the mean


def test_beyond_null_when_listed_then_the_rerun_is_not_compared_with_itself(
    analysis: Analysis,
) -> None:
    """Each evaluation has RR and NL less the re-run's; of the re-run itself there is none."""
    for row in analysis.beyond_null:
        assert (row.rr is None) == (row.retention.key.condition == "rerun")
    memory = next(row for row in analysis.beyond_null if row.retention.key.condition == "ind")
    assert memory.rr_expected is not None
    assert memory.retention.rr.estimate is not None
    assert memory.null.expected_rr is not None
    less = memory.retention.rr.estimate.value - memory.null.expected_rr
    assert memory.rr_expected == pytest.approx(less)


# Shares of transfer


def test_decomposition_when_worked_out_by_hand_then_shares_are_weighted() -> None:
    """Of four items one is easy: it falls by 1, and of the three hard ones one rises by 1."""
    base = cell("none", "", "B", {"e": True, "h": False, "i": False, "j": False})
    before = cell("m", "B", "B", {"e": True, "h": False, "i": False, "j": False})
    after = cell("m", "A>B", "B", {"e": False, "h": True, "i": False, "j": False})
    other = cell("m", "A>B", "A", {"a": True})
    alone = cell("m", "A", "A", {"a": True})
    none = cell("none", "", "A", {"a": True})
    study = study_of(base, none, before, alone, after, other)
    splits = {task: partition(study, task) for task in "AB"}
    row = decompositions(study, splits, transfers(study, splits))[0]
    assert row.easy.estimate is not None
    assert row.hard.estimate is not None
    assert row.easy.estimate.value == -0.25
    assert row.hard.estimate.value == pytest.approx(0.25)
    assert (row.easy.n_items, row.hard.n_items) == (1, 3)


def test_decomposition_when_summed_then_is_the_transfer(analysis: Analysis) -> None:
    """The two shares add up to FWT or BWT in every row."""
    assert len(analysis.decompositions) == len(analysis.transfers) == 12
    for row in analysis.decompositions:
        parts = [m.estimate.value for m in (row.easy, row.hard) if m.estimate is not None]
        assert row.transfer.transfer.estimate is not None
        assert sum(parts) == pytest.approx(row.transfer.transfer.estimate.value)


# Crossed probes


def test_crossings_when_worked_out_by_hand_then_each_effect_holds_the_other_fixed() -> None:
    """Success by retrieval and pool is 0, 1 of 2, and 2 of 2: effects are their differences."""

    def both(condition: str, *outcomes: bool) -> list[Cell]:
        items = dict(zip("xy", outcomes, strict=True))
        return [cell(condition, "A>B", task, items, items) for task in "AB"]

    cells = [
        *both("ind", False, False),
        *both("step", True, True),
        *both("step@ind", True, False),
        *both("ind@step", False, False),
    ]
    found = crossings(study_of(*cells))
    assert [crossing.task for crossing in found] == ["", "A", "B"]
    effects = {(e.factor, e.fixed): e.difference.estimate for e in found[0].effects}
    values = {key: estimate.value for key, estimate in effects.items() if estimate is not None}
    assert values == {
        ("retrieval", "ind"): 0.5,
        ("retrieval", "step"): 1.0,
        ("pool", "ind"): 0.0,
        ("pool", "step"): 0.5,
    }
    assert all((e.treated, e.baseline) == ("step", "ind") for e in found[0].effects)


def test_crossings_when_only_one_probe_is_planned_then_one_effect_of_each_is_left() -> None:
    """Half a table still says what retrieval does on one bank, and the bank for one retrieval."""
    world = replace(WORLD, probes=("step@ind",), conditions=("ind", "step"), mends={})
    (whole, *_) = analyze(SyntheticLog(world)).crossings
    assert [(e.factor, e.fixed) for e in whole.effects] == [("retrieval", "ind"), ("pool", "step")]


def test_probes_when_analyzed_then_are_outside_the_family(analysis: Analysis) -> None:
    """A probe takes part in no verdict and in no correction."""
    assert [contrast.condition for contrast in analysis.family] == ["ind", "step", "fold"]
    assert not any("@" in contrast.condition for contrast in analysis.beside)


# Remedies


def test_remedies_when_a_condition_mends_another_then_both_banks_are_compared(
    analysis: Analysis,
) -> None:
    """On its own banks and by the probe on the mended one's: over all cells, then in each."""
    found = [(r.condition, r.sequence, r.task) for r in analysis.remedies]
    own = [("fold", s, t) for s, t in found_places(analysis, "fold")]
    same = [("fold@ind", s, t) for s, t in found_places(analysis, "fold@ind")]
    assert found == [("fold", "", ""), *own, ("fold@ind", "", ""), *same]


def found_places(analysis: Analysis, condition: str) -> list[tuple[str, str]]:
    """Return where a condition is tested at the end of a sequence."""
    return [(c.key.sequence, c.key.task) for c in analysis.study.final_cells(condition)]


def test_remedies_when_the_mended_condition_is_concentrated_then_the_change_shows(
    analysis: Analysis,
) -> None:
    """All queries of ind are served by one item and those of fold by chance: top-1 falls."""
    whole = analysis.remedies[0]
    assert whole.top1_share.before is not None
    assert whole.top1_share.before.mean == 1.0
    assert whole.top1_share.estimate is not None
    assert whole.top1_share.estimate.high < 0
    assert whole.top1_share.estimate.n_items == WORLD.replicates
    assert whole.success.estimate is not None


def test_remedies_when_own_task_shares_are_compared_then_levels_make_the_difference(
    analysis: Analysis,
) -> None:
    """Before and after are averaged as the change is: over items, then over runs."""
    for row in analysis.remedies:
        before, after = row.own_levels
        assert before is not None
        assert after is not None
        assert row.own_share.estimate is not None
        assert after.mean - before.mean == pytest.approx(row.own_share.estimate.value)
        assert before.n == after.n == WORLD.replicates


# Dilution


def test_dilution_when_tested_along_training_then_starts_before_the_later_task(
    analysis: Analysis,
) -> None:
    """Before the later task the bank is all of the earlier one, and half of it at the end."""
    rows = [r for r in analysis.dilution.tested if (r.condition, r.sequence) == ("ind", "A>B")]
    assert [row.at for row in rows] == [0, 5, 10]
    shares = [row.bank_share.mean for row in rows if row.bank_share is not None]
    assert shares == [1.0, pytest.approx(2 / 3), 0.5]
    assert {row.task for row in rows} == {"A"}
    first = rows[0].own_share.estimate
    assert first is not None
    assert first.value == 1.0


def test_dilution_when_training_is_cut_then_windows_cover_the_stream_once(
    analysis: Analysis,
) -> None:
    """Windows follow each other without a gap, and the earlier task's share of the bank falls."""
    windows = [w for w in analysis.dilution.windows if (w.condition, w.sequence) == ("ind", "A>B")]
    assert len(windows) == WINDOWS
    assert [w.first for w in windows] == [1, 3, 5, 7, 9]
    assert [w.last for w in windows] == [2, 4, 6, 8, 10]
    shares = [w.earlier_in_bank.mean for w in windows if w.earlier_in_bank is not None]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx((1 + 10 / 11) / 2)


def test_dilution_when_a_stream_is_under_way_then_unfinished_windows_are_left_out() -> None:
    """A window that a stream has not come to the end of is no window of that stream."""
    done = {f"ind/{replicate}/train A>B": 5 for replicate in range(WORLD.replicates)}
    found = analyze(SyntheticLog(WORLD, done=done)).dilution.windows
    mine = [w for w in found if (w.condition, w.sequence) == ("ind", "A>B")]
    assert [(w.first, w.last) for w in mine] == [(1, 2), (3, 4)]


def test_domains_when_the_study_is_analyzed_then_are_named(analysis: Analysis) -> None:
    """Families come from the items where runs do not tell."""
    assert analysis.domains == DOMAINS


# Words


def retrieval_of(top1: float, coverage: float) -> CellRetrieval:
    """Make a cell of one run with this concentration and coverage of the items retrieved."""
    numbers: dict[str, float | None] = dict.fromkeys(Measures.__slots__, 0.5)
    numbers |= {"top1_share": top1, "coverage_slots": coverage, "queries": 100.0}
    measures = Measures(**cast("dict[str, float]", numbers))
    return CellRetrieval(CellKey("ind", "B", "B"), (RunRetrieval(0, measures, {}, "a"),))


@pytest.mark.parametrize(
    ("top1", "coverage", "answer"),
    [(0.885, 0.054, True), (0.8, 0.06, True), (0.79, 0.05, False), (0.9, 0.07, False)],
)
def test_collapse_when_judged_then_needs_concentration_and_little_coverage(
    top1: float, coverage: float, answer: bool
) -> None:
    """The paper's own case counts as collapsed; either threshold alone is not enough."""
    assert collapsed(retrieval_of(top1, coverage)) is answer


def test_explanations_when_collapse_is_found_then_name_it_with_numbers(
    analysis: Analysis,
) -> None:
    """The sentence states the rule, the evaluation, the numbers and what they rest on."""
    found = explain([retrieval_of(0.885, 0.054)], analysis.dilution, (), ())
    first, second = found.collapse
    assert (
        "collapsed (top-1 concentration of at least 80 %, and distinct items at most 6 %" in first
    )
    assert "1 of 1 evaluations: ind tested on B after B" in first
    assert "88.5 % of the queries; distinct items are 5.4 % of the items retrieved" in second
    assert "n = 100 queries × 1 run" in second  # noqa: RUF001  (a multiplication sign)


def test_explanations_when_probes_and_remedies_are_planned_then_each_number_has_an_n(
    analysis: Analysis,
) -> None:
    """Every sentence holds an interval and says what it rests on; none is told twice."""
    words = analysis.explanations
    assert len(words.probes) == 4 + 1
    assert not any(sentence.startswith("Retrieval of fold") for sentence in words.probes)
    assert len(words.remedies) == 2
    for sentence in (*words.probes, *words.remedies, *words.dilution):
        assert "[" in sentence
        assert "runs)" in sentence or "runs; bank" in sentence
    assert "on the same banks" in words.remedies[1]


def diluted(condition: str, share: float) -> EarlierTask:
    """Make a test of the earlier task in which this share of the retrieved is of it."""
    success = Metric(None, 4, 4, 4)
    own = replace(success, estimate=mean_estimate(np.array([[share], [share]])))
    return EarlierTask(condition, "A>B", "A", 40, success, own, Spread(0.5, 0.5, 0.5, None, 1))


def test_dilution_in_words_when_memories_differ_then_names_those_below_half() -> None:
    """One sentence a sequence: the memories diluted, the worst first, or the nearest to it."""
    rows = (diluted("agg", 0.9), diluted("ind", 0.4), diluted("step", 0.3))
    (found,) = explain([], Dilution(rows, ()), (), ()).dilution
    assert "after 40 episodes of B, less than half is of A in 2 of 3 memories: step with" in found
    assert found.index("step with 30.0 %") < found.index("ind with 40.0 %")
    assert "agg" not in found
    (found,) = explain([], Dilution(rows[:1], ()), (), ()).dilution
    assert "in 0 of 1 memory; the least in agg with 90.0 %" in found
