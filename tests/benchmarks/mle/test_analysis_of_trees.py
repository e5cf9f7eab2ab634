"""The analysis of a tree study: pairs, families, relations, and what memory held."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mle_logs import JournalLog, Tree, TreeLog, real_nodes

from langgraft.benchmarks.comparison.verdicts import SIGNIFICANCE
from langgraft.benchmarks.mle.analysis import Analysis, analyze
from langgraft.benchmarks.mle.behaviour.runs import Share
from langgraft.benchmarks.mle.relations import pearson
from langgraft.benchmarks.mle.searches import late_from, read_searches
from langgraft.nodes.search.journal import JournalNode


def nodes(flags: str, metrics: Sequence[float] = ()) -> list[JournalNode]:
    """Make a search: B is buggy, V valid; metrics are those of the valid ones, else 0.5."""
    left = list(metrics)
    return [
        JournalNode(
            step=step,
            id=f"{step}",
            plan="p",
            code="import numpy",
            metric=None if flag == "B" else (left.pop(0) if left else 0.5),
            is_buggy=flag == "B",
        )
        for step, flag in enumerate(flags)
    ]


def _equal_lengths(analysis: Analysis) -> str:
    return next(each.state for each in analysis.gates if each.name == "Equal lengths")


def test_contrast_when_a_memory_has_fewer_bugs_says_so_for_these_competitions() -> None:
    """Pairs of one competition and seed; the family is corrected; controls are not in it."""
    analysis = analyze(TreeLog(Tree(bugs={"warm": 0.05, "cold": 0.5}, seeds=4, steps=20)))
    warm = analysis.contrast("warm", "bug_rate")
    pairs = analysis.measured["bug_rate"].differences("warm")
    assert warm.estimate is not None
    assert warm.estimate.value == pytest.approx(np.mean([v for v in pairs.values() if v]))
    assert (warm.pairs, warm.planned, len(pairs)) == (12, 12, 12)
    assert warm.verdict_same_items == "better"
    assert warm.p_same_items is not None
    assert warm.p_same_items < SIGNIFICANCE
    family = [each for each in analysis.contrasts if each.in_family]
    assert {each.condition for each in family} == {"cold", "warm"}
    assert len(family) == 2 * 8
    assert analysis.contrast("placebo", "bug_rate").p_adjusted is None
    gates = {gate.name: gate.state for gate in analysis.gates}
    assert gates["Completeness"] == "passed"
    assert gates["placebo does not help"] == "open"  # twelve pairs cannot show equivalence


def test_verdict_when_only_the_bare_p_value_is_small_is_unclear() -> None:
    """What counts is the p value corrected over the family."""
    analysis = analyze(TreeLog(Tree(bugs={"warm": 0.05}, seeds=4, steps=20)))
    warm = analysis.contrast("warm", "bug_rate")
    assert warm.same_items is not None
    assert warm.same_items.p < SIGNIFICANCE
    assert warm.verdict_same_items == "better"
    assert replace(warm, p_same_items=0.2).verdict_same_items == "unclear"
    assert replace(warm, p_same_items=0.04).verdict_same_items == "better"


def test_verdict_when_there_are_two_seeds_is_none() -> None:
    """Two seeds say next to nothing of how seeds differ."""
    warm = analyze(TreeLog(Tree(bugs={"warm": 0.0}, seeds=2))).contrast("warm", "bug_rate")
    assert (warm.verdict, warm.verdict_same_items) == ("too few runs", "too few runs")


def test_difference_when_there_are_reruns_is_from_the_mean_of_all_without_memory() -> None:
    """The re-run of a seed counts as much as its first run; it is itself compared with that one."""
    bug_rate = analyze(TreeLog()).measured["bug_rate"]
    off, rerun, warm = (bug_rate.values[name] for name in ("off", "rerun", "warm"))
    for pair, less in bug_rate.differences("warm").items():
        bare = [value for value in (off[pair], rerun[pair]) if value is not None]
        assert warm[pair] is not None
        assert less == pytest.approx((warm[pair] or 0.0) - sum(bare) / 2)
    for pair, less in bug_rate.differences("rerun").items():
        assert less == pytest.approx((rerun[pair] or 0.0) - (off[pair] or 0.0))


def test_contrast_when_results_are_missing_is_out_of_all_tests() -> None:
    """It is marked, and what is there is still shown."""
    analysis = analyze(TreeLog(missing=["warm/digits/1"]))
    warm = analysis.contrast("warm", "bug_rate")
    assert warm.verdict == warm.verdict_same_items == "incomplete"
    assert (warm.pairs, warm.planned, warm.p_adjusted) == (8, 9, None)
    assert warm.estimate is not None
    assert analysis.contrast("cold", "bug_rate").p_adjusted is not None
    assert analysis.gates[0].state == "failed"
    assert "warm/digits/1" in analysis.gates[0].detail


def test_measure_when_a_search_has_none_leaves_its_pair_out() -> None:
    """A search without a valid program has no best metric; its bugs still count."""
    log = JournalLog(
        {"off": [nodes("BBB"), nodes("BVV")], "warm": [nodes("VVV"), nodes("VVV", [0.5, 0.9])]}
    )
    analysis = analyze(log)
    best = analysis.contrast("warm", "best_metric")
    assert (best.pairs, best.undefined, best.complete) == (1, 1, True)
    assert best.estimate is not None
    assert best.estimate.value == pytest.approx(0.4)
    assert analysis.contrast("warm", "bug_rate").pairs == 2
    first = analysis.measured["first_valid"].levels[0]
    assert first.estimate is not None
    assert (first.condition, first.estimate.value) == ("off", 2.0)
    assert analysis.searches.censored("off") == 1


def test_level_when_a_metric_is_negative_lies_within_its_interval() -> None:
    """Scores without an upper bound have no lower one either."""
    log = JournalLog({"off": [nodes("V", [-0.4]), nodes("V", [-0.2]), nodes("V", [2.5])]})
    (best,) = analyze(log).measured["best_metric"].levels
    assert best.estimate is not None
    assert best.estimate.low < best.estimate.value < best.estimate.high


def test_curves_when_searches_differ_in_length_carry_on() -> None:
    """Bugs stay, the best metric stays, and means say over how many searches they are."""
    analysis = analyze(JournalLog({"off": [nodes("BVB"), nodes("B"), nodes("VBBB", [0.7])]}))
    bugs, best = analysis.curves
    assert [point.mean * 3 for point in bugs.points if point] == pytest.approx([2, 3, 5, 6])
    assert [point.n if point else 0 for point in best.points] == [1, 2, 2, 2]
    assert best.points[0] is not None
    assert (best.points[0].mean, best.points[0].sem) == (0.7, None)
    assert _equal_lengths(analysis) == "passed"  # one condition: nothing is paired


def test_control_when_it_equals_the_baseline_in_every_pair_passes() -> None:
    """Nothing varies, so that no interval is short; a control that helps fails."""
    searches = [nodes("BBV"), nodes("VBV"), nodes("BVV")]
    good = [nodes("VVV"), nodes("VVV"), nodes("VVB")]
    same = analyze(JournalLog({"off": searches, "placebo": searches})).gates
    assert {gate.name: gate.state for gate in same}["placebo does not help"] == "passed"
    better = [nodes("BBBBBBBB"), nodes("BBBBBBBB"), nodes("BBBBBBBV")]
    helped = analyze(JournalLog({"off": better, "placebo": good})).gates
    assert {gate.name: gate.state for gate in helped}["placebo does not help"] == "failed"


def test_correlation_when_points_are_few_has_no_interval() -> None:
    """Fisher's interval needs four; two points always lie on a line."""
    assert pearson([1, 2], [1, 2]).r is None
    assert pearson([1, 1, 1], [1, 2, 3]).r is None
    assert pearson([0.1 + 0.2, 0.3, 0.3], [1, 20, 300]).r is None  # equal but for rounding
    three = pearson([1, 2, 3], [1, 2, 4])
    assert (three.low, three.high) == (-1.0, 1.0)
    many = pearson(list(range(22)), [x + 9 * (x % 3) for x in range(22)])
    reference = float(np.corrcoef(range(22), [x + 9 * (x % 3) for x in range(22)])[0, 1])
    assert many.r == pytest.approx(reference)
    assert many.low < reference < many.high


def test_relation_when_counted_says_how_many_tasks_went_up() -> None:
    """Up, down and same are competitions, by the mean over their seeds."""
    analysis = analyze(TreeLog())
    for relation in analysis.relations:
        assert relation.up + relation.down + relation.same + relation.undefined == 3
        assert relation.by_task.n == 3
        assert relation.by_pair.n == 9


def test_store_when_read_is_that_at_the_end_of_the_search_with_what_it_started_from() -> None:
    """A warm bank holds what the build left: three entries more, one of them of resources."""
    found = {each.condition: each for each in analyze(TreeLog()).memory}
    assert found["cold"].shares["resource_entries"] == Share(9, 27)
    assert found["warm"].shares["resource_entries"] == Share(18, 54)
    assert found["off"].retrievals == 0
    assert found["warm"].shares["written_with_memory"].of > 0


def test_late_phase_when_searches_are_short_begins_in_their_middle() -> None:
    """Step 10 as published, unless a search would hardly have a late phase."""
    assert [late_from(steps) for steps in (30, 20, 19, 12, 1, 0)] == [10, 10, 10, 6, 1, 0]


def test_analysis_when_nothing_ended_yet_is_empty_and_says_so() -> None:
    """A log under way is read at any time."""
    log = TreeLog(missing=[run.name for run in TreeLog().runs])
    analysis = analyze(log)
    assert analysis.curves == ()
    assert all(each.estimate is None for each in analysis.contrasts)
    assert analysis.gates[0].state == "failed"


def test_real_runs_when_taken_for_seeds_are_measured(data_dir: Path) -> None:
    """AIDE's journals fit the form of a result as they are."""
    dogs, keywords, taxi, *_ = real_nodes(data_dir).values()
    log = JournalLog({"off": [taxi, dogs], "warm": [keywords, keywords]})
    searches = read_searches(log)
    assert [len(each.journal.nodes) for each in searches.trees if each.condition == "off"] == [
        20,
        12,
    ]
    analysis = analyze(log)
    bugs = analysis.contrast("warm", "bug_rate")
    assert bugs.estimate is not None
    assert bugs.estimate.value == pytest.approx(0.8 - (19 / 20 + 11 / 12) / 2)
    assert _equal_lengths(analysis) == "failed"  # 12 steps against 20
