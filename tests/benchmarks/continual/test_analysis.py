"""From a log to verdicts: what helped, what hurt, what cannot be said."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from synthetic_log import SyntheticLog, World

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast
from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.comparison.verdicts import Verdict
from langgraft.benchmarks.continual.analysis import Analysis, analyze, summary_table
from langgraft.benchmarks.continual.cells import read_study_log
from langgraft.benchmarks.continual.contrasts import compare_with_no_memory
from langgraft.benchmarks.reporting.findings import (
    control_gates,
    like_orders,
    no_difference,
    sentence,
    summary,
)

MIXED = World(
    conditions=("raw", "agg", "same"),
    effects={("agg", "", ""): 0.35, ("raw", "", ""): -0.35},
    replicates=5,
)


@pytest.fixture(scope="module")
def mixed() -> Analysis:
    """Analyze a study in which agg helps, raw hurts and the third does nothing."""
    return analyze(SyntheticLog(MIXED))


@pytest.fixture(scope="module")
def plain() -> Analysis:
    """Analyze a study without any effect."""
    return analyze(SyntheticLog())


def verdicts(analysis: Analysis) -> dict[str, str]:
    """Return the verdict on each memory."""
    return {contrast.condition: contrast.verdict for contrast in analysis.family}


def gate_states(analysis: Analysis) -> dict[str, str]:
    """Return the state of each gate."""
    return {gate.name: gate.state for gate in analysis.gates}


def test_family_when_effects_are_known_then_verdicts_name_them(mixed: Analysis) -> None:
    """What helps is said to help, what hurts to hurt, and nothing to be nothing."""
    assert verdicts(mixed) == {
        "raw": "hurt",
        "agg": "helped",
        "same": "no detectable difference",
    }


def test_family_when_corrected_then_holm_covers_all_memories(mixed: Analysis) -> None:
    """Adjusted p values are no smaller than the bare ones, and controls have none."""
    for contrast in mixed.family:
        assert contrast.estimate is not None
        assert contrast.p_adjusted is not None
        assert contrast.p_adjusted >= contrast.estimate.p
    assert all(contrast.p_adjusted is None for contrast in mixed.beside)


def test_pooled_contrast_when_counted_then_rests_on_both_tasks(mixed: Analysis) -> None:
    """Eighty items: forty of each task, in five runs."""
    estimate = mixed.family[0].estimate
    assert estimate is not None
    assert (estimate.n_items, estimate.n_replicates) == (80, 5)
    assert (
        mixed.family[0].difference.planned == 5 * (6 + 2 + 2) * 40
    )  # tested after 3 sequences; without memory, and its re-run


def test_sentences_when_nothing_was_found_then_name_the_detectable_effect(mixed: Analysis) -> None:
    """No sentence claims absence without saying what would have been seen."""
    by_name = dict(zip(("raw", "agg", "same"), mixed.sentences, strict=True))
    assert by_name["agg"].startswith("agg helped: +")
    assert by_name["raw"].startswith("raw hurt: −")  # noqa: RUF001  (a minus sign)
    assert "made no detectable difference" in by_name["same"]
    assert "would have been detected four times in five" in by_name["same"]


def test_summary_when_read_alone_then_names_every_memory_and_control(mixed: Analysis) -> None:
    """The paragraph at the top leaves nobody out."""
    for name in ("raw hurt", "agg helped", "same made", "agg+placebo", "agg+shuffled"):
        assert name in mixed.summary


def test_findings_when_a_verdict_is_of_another_kind_then_take_its_words(mixed: Analysis) -> None:
    """A verdict that is neither help, harm nor no difference is told as it is worded."""
    unclear = replace(mixed.family[0], verdict="too few runs")
    assert "raw had too few runs for a verdict" in summary(
        replace(mixed.comparison, family=(unclear,))
    )
    assert sentence(unclear).startswith("raw had too few runs for a verdict: −")  # noqa: RUF001


def test_gates_when_all_is_well_then_all_pass(mixed: Analysis) -> None:
    """A complete study without surprises passes every gate that there is something for."""
    states = gate_states(mixed)
    nothing = {"Provenance", "G3: grader", "G5: budgets"}  # no run directory; no grader; one room
    assert {name for name, state in states.items() if state == "not applicable"} == nothing
    assert {states[name] for name in states.keys() - nothing} == {"passed"}
    assert {"G1: splits", "G2: prompts", "G4: orders", "Order of reading"} <= states.keys()


def test_content_contrast_when_words_matter_then_condition_beats_its_controls(
    mixed: Analysis,
) -> None:
    """Placebo and shuffled recall as much, and help nothing."""
    assert [content.control for content in mixed.content] == ["agg+placebo", "agg+shuffled"]
    for content in mixed.content:
        assert content.difference.estimate is not None
        assert content.difference.estimate.low > 0


def test_verdicts_when_nothing_differs_then_hardly_ever_find_anything() -> None:
    """Over eight null studies of two memories, at most one claim: the family rate is 5 %."""
    claims = 0
    for seed in range(8):
        world = World(controls=(), seed=seed, test_items=25, train_items=2, replicates=3)
        found = compare_with_no_memory(read_study_log(SyntheticLog(world)))
        claims += sum(each.verdict != "no detectable difference" for each in found.family)
    assert claims <= 1


def control(value: float, se: float, verdict: Verdict = "no detectable difference") -> Contrast:
    """Make the contrast of a control, or of the re-run, over forty items."""
    reach = 2.0227 * se
    estimate = Estimate(
        *(value, value - reach, value + reach, 0.5, se, 39, 40, 4, 0.0, "items"),
        items_variance=se**2,
    )
    metric = Metric(estimate, 160, 160, 40)
    return Contrast("agg+placebo", metric, metric, metric, None, 0.1, verdict)


@pytest.mark.parametrize(
    ("value", "se", "margin", "holds"),
    [
        (0.0, 0.04, 0.10, True),
        (0.0, 0.07, 0.10, None),
        (0.0, 0.07, 0.15, True),
        (0.05, 0.04, 0.10, None),
        (-0.05, 0.02, 0.10, True),
        (0.15, 0.04, 0.10, False),
        (0.083, 0.044, 0.10, None),
        (-0.60, 0.20, 0.10, False),
    ],
)
def test_control_when_judged_then_equivalence_has_to_be_shown(
    value: float, se: float, margin: float, holds: bool | None
) -> None:
    """That an interval holds 0 shows nothing: two one-sided tests must place it inside the margin."""
    judged = control(value, se)
    noise = Comparison((), (judged,), judged, margin)
    assert noise.holds(judged) is noise.quiet is holds
    gates = (no_difference(noise), *control_gates(noise))
    assert {gate.state for gate in gates} == {
        {True: "passed", False: "failed", None: "open"}[holds]
    }
    assert f"±{100 * margin:.0f} pp" in gates[0].detail
    assert noise.holds(control(value, se, "incomplete")) is None


def test_control_when_study_is_tiny_then_its_gate_stays_open() -> None:
    """A control whose interval is all there is has passed nothing, and the words say so."""
    analysis = analyze(SyntheticLog(World(test_items=1, replicates=2)))
    assert analysis.comparison.holds(analysis.comparison.controls[0]) is None
    assert gate_states(analysis)["A/A: agg+placebo"] == "open"
    assert gate_states(analysis)["A/A: re-run"] == "open"
    assert "neither shown to be equivalent nor to differ" in analysis.summary
    assert summary_table(analysis)[-1].verdict == "control: cannot be told"


def test_controls_when_inert_then_hardly_ever_fail() -> None:
    """Over eight studies of demo size the sixteen inert controls rarely look like something."""
    demo = World(conditions=("agg",), test_items=18, train_items=2, replicates=4)
    logs = [SyntheticLog(replace(demo, seed=seed)) for seed in range(8)]
    found = [compare_with_no_memory(read_study_log(log)) for log in logs]
    held = [comparison.holds(each) for comparison in found for each in comparison.controls]
    assert held.count(False) <= 1
    assert held.count(True) >= 9


def test_power_when_nothing_could_be_found_then_says_so_plainly() -> None:
    """No sentence speaks of a true difference of more than 100 percentage points."""
    analysis = analyze(SyntheticLog(World(conditions=("agg",), test_items=1, replicates=3)))
    assert analysis.family[0].detectable == math.inf
    assert "this study cannot detect any difference" in analysis.sentences[0]
    assert "cannot detect any difference" in analysis.summary
    assert "would have been detected" not in analysis.summary + analysis.sentences[0]


def test_power_when_some_memories_are_blind_then_others_keep_their_figure(mixed: Analysis) -> None:
    """The paragraph tells the memories that nothing could be found for from the others."""
    same = mixed.family[2]
    blind = replace(same, condition="blind", detectable=math.inf)
    text = summary(Comparison((same, blind)))
    assert "blind has too few items or runs for any difference to be detected." in text
    assert "pp or more would have been detected four times in five for the others." in text


def test_contrast_when_compared_then_all_runs_without_memory_count() -> None:
    """Success less the mean of all runs without memory, the re-run's included, is the difference."""
    analysis = analyze(SyntheticLog(World(replicates=3, baseline_runs=5)))
    tasks = [metric.estimate.value for _, metric in analysis.baseline if metric.estimate]
    for contrast in (*analysis.family, *analysis.comparison.controls):
        success, baseline = contrast.success.estimate, contrast.baseline.estimate
        assert success is not None
        assert baseline is not None
        assert contrast.estimate is not None
        assert success.value - baseline.value == pytest.approx(contrast.estimate.value)
        assert baseline.value == pytest.approx(sum(tasks) / 2)
        assert baseline.n_replicates == 5 + 3
    rerun = analysis.comparison.rerun
    assert rerun is not None
    assert rerun.baseline.estimate is not None
    assert rerun.baseline.estimate.n_replicates == 5


def test_verdict_when_only_the_bare_p_value_is_small_then_finds_nothing() -> None:
    """What counts is the p value corrected over the family."""
    world = World(
        conditions=("a", "b", "c", "d"),
        controls=(),
        effects={("a", "", ""): 0.05},
        test_items=20,
        train_items=2,
        seed=3,
    )
    found = analyze(SyntheticLog(world)).family[0]
    assert found.estimate is not None
    assert found.p_adjusted is not None
    assert found.estimate.p < 0.05 < found.p_adjusted
    assert found.verdict == "no detectable difference"


def test_verdict_when_there_are_two_runs_then_is_none() -> None:
    """However large the difference: two runs say next to nothing of how orders differ."""
    world = World(effects={("raw", "", ""): 0.5}, replicates=2)
    analysis = analyze(SyntheticLog(world))
    assert set(verdicts(analysis).values()) == {"too few runs"}
    assert "too few runs for a verdict" in analysis.sentences[0]
    assert "for these orders [" in analysis.sentences[0]


def test_verdict_when_it_rests_on_one_run_without_memory_then_is_unclear() -> None:
    """One run without memory that went wrong makes memory look good; without it nothing is left."""
    log = SyntheticLog(World(conditions=("agg",), controls=(), baseline_runs=2, rerun=False))
    (first, *_) = [run for run in log.runs if run.factors["condition"] == "none"]
    others = log.results

    def results(name: str) -> list[Mapping[str, JSON]]:
        found = others(name)
        wrong = name in {
            run.name
            for run in log.runs
            if run.factors == {**first.factors, "task": run.factors["task"]}
        }
        return [{**each, "success": False} for each in found] if wrong else found

    log.results = results  # type: ignore[method-assign]
    (contrast,) = analyze(log).family
    assert contrast.estimate is not None
    assert contrast.p_adjusted is not None
    assert contrast.p_adjusted < 0.05
    assert contrast.verdict == "unclear"


def test_order_effects_when_one_memory_alone_has_them_then_its_gate_fails() -> None:
    """A verdict that the order effects of the others would not give is put in doubt."""
    analysis = analyze(SyntheticLog(World(conditions=("a", "b", "c"), controls=())))
    assert gate_states(analysis)["Order effects alike"] == "passed"
    doubted = replace(analysis.family[0], verdict="helped", verdict_of_others="unclear")
    gate = like_orders((doubted, *analysis.family[1:]))
    assert gate.state == "failed"
    assert "a (unclear)" in gate.detail


def test_control_when_it_helps_then_its_gate_fails() -> None:
    """A placebo that works means that something other than memory does."""
    world = World(effects={("agg+placebo", "", ""): 0.4}, replicates=5)
    analysis = analyze(SyntheticLog(world))
    states = gate_states(analysis)
    assert states["A/A: agg+placebo"] == "failed"
    assert states["A/A: agg+shuffled"] == "passed"
    assert "agg+placebo" in analysis.summary
    assert "is different from no memory" in analysis.summary


def test_rerun_when_it_differs_then_its_gate_fails() -> None:
    """A baseline that differs from itself puts every other difference in doubt."""
    analysis = analyze(SyntheticLog(World(("agg",), (), {("rerun", "", ""): 0.4}, replicates=5)))
    assert gate_states(analysis)["A/A: re-run"] == "failed"
    assert "Mind that a mere re-run of the baseline differs from it" in analysis.summary


def test_analysis_when_there_is_no_rerun_then_halves_of_the_baseline_are_compared() -> None:
    """Without a re-run two halves of the runs without memory stand for one condition twice."""
    analysis = analyze(SyntheticLog(World(rerun=False)))
    states = gate_states(analysis)
    assert "A/A: re-run" not in states
    assert states["A/A: halves of none"] in {"passed", "open"}
    assert "re-run" not in analysis.summary


def test_verdict_when_results_are_missing_then_is_incomplete_and_untested() -> None:
    """A run that stopped bars its condition, and the others keep the size of the family."""
    world = World(effects={("raw", "", ""): 0.4, ("agg", "", ""): 0.4}, replicates=4)
    analysis = analyze(SyntheticLog(world, done={"raw/1/test A after A>B": 7}))
    raw, agg = analysis.family
    assert (raw.verdict, raw.p_adjusted) == ("incomplete", None)
    assert raw.estimate is not None
    assert raw.difference.done == raw.difference.planned - 33
    assert agg.verdict == "helped"
    assert agg.estimate is not None
    assert agg.p_adjusted == pytest.approx(min(1, 2 * agg.estimate.p))
    assert "raw is incomplete" in analysis.summary
    assert "takes part in no test" in analysis.sentences[0]
    gate = analysis.gates[0]
    assert gate.state == "failed"
    assert "raw 33 of" in gate.detail
    assert "raw/1/test A after A>B 7/40" in gate.detail


def test_verdict_when_a_training_run_stopped_then_completeness_fails() -> None:
    """Training that is not finished is not passed over."""
    analysis = analyze(SyntheticLog(done={"raw/0/train A": 3}))
    assert gate_states(analysis)["Completeness"] == "failed"
    assert next(curve for curve in analysis.curves if curve.condition == "raw").length == 3


def test_analysis_when_nothing_is_done_yet_then_says_so() -> None:
    """An empty log gives an analysis without numbers, not an error."""
    names = [run.name for run in SyntheticLog().runs]
    analysis = analyze(SyntheticLog(done=dict.fromkeys(names, 0)))
    assert set(verdicts(analysis).values()) == {"incomplete"}
    assert "no results that can be compared yet" in analysis.sentences[0]
    assert all(row.difference == "" for row in summary_table(analysis))


def test_analysis_when_one_replicate_then_intervals_rest_on_items() -> None:
    """One repetition is analyzed over items alone, and says so."""
    analysis = analyze(SyntheticLog(World(replicates=1, baseline_runs=1)))
    for contrast in analysis.family:
        assert contrast.estimate is not None
        assert (contrast.estimate.n_replicates, contrast.estimate.seed_share) == (1, 0.0)


def test_analysis_when_there_is_no_baseline_then_raises() -> None:
    """Without a baseline there is nothing to compare with."""
    log = SyntheticLog(World(baseline_runs=0))
    with pytest.raises(InputError, match="no baseline"):
        analyze(log)


def test_orders_when_conditions_train_in_different_orders_then_gate_fails() -> None:
    """Conditions of one repetition share their order, or the pairing is not what it claims."""
    log = SyntheticLog()
    first = next(run for run in log.runs if run.name == "agg/0/train A")
    object.__setattr__(first, "item_ids", first.item_ids[::-1])
    assert gate_states(analyze(log))["Training orders"] == "failed"


def test_prompts_when_manifest_names_none_then_gate_is_open() -> None:
    """Nothing is claimed about prompts that the manifest does not name."""
    log = SyntheticLog(manifest={"fingerprints": {}})
    assert gate_states(analyze(log))["G2: prompts"] == "open"


def test_prompts_when_fingerprints_are_nested_then_gate_names_them_all() -> None:
    """Fingerprints may have any shape: digests in short, words in full, many as a number."""
    fingerprints: dict[str, JSON] = {
        "prompts": {"act": {"text": "ab" * 32, "version": 2}, "reflect": "cd" * 32},
        "recall_block": "ef" * 32,
        "learner": {"rules": "12" * 32, "ignorance": ["doors", "pickup"]},
        "providers": {},
        "code": {f"module{number}": "34" * 32 for number in range(9)},
        "nothing": None,
    }
    analysis = analyze(SyntheticLog(manifest={"fingerprints": fingerprints}))
    gate = next(gate for gate in analysis.gates if gate.name == "G2: prompts")
    assert gate.state == "passed"
    for words in (
        "all runs: act.text abababababab, act.version 2, reflect cdcdcdcdcdcd.",
        "recall_block efefefefefef",
        'learner ignorance ["doors", "pickup"], rules 121212121212',
        "providers {}",
        "code (9 entries)",
        "nothing null",
    ):
        assert words in gate.detail


def test_learning_curve_when_cumulative_then_ends_at_the_success_rate(plain: Analysis) -> None:
    """The last point is the share of all training items that were solved."""
    curve = plain.curves[0]
    results = SyntheticLog().results("raw/0/train A")
    assert curve.curves[0][-1] == pytest.approx(
        sum(bool(result["success"]) for result in results) / len(results)
    )
    assert all(
        low - 1e-9 <= mean <= high + 1e-9
        for low, mean, high in zip(curve.low, curve.mean, curve.high, strict=True)
    )


def test_milestones_when_planned_then_end_with_the_phase(plain: Analysis) -> None:
    """Three evaluations a phase are placed after 6, 13 and 20 of 20 items."""
    analysis = analyze(SyntheticLog(World(conditions=("agg",), controls=(), steps=3)))
    track = [
        m.at
        for m in analysis.milestones
        if (m.key.condition, m.key.sequence, m.key.task) == ("agg", "A>B", "B")
    ]
    assert track == [6, 13, 20]
    assert plain.milestones == ()


def test_banks_when_a_phase_follows_another_then_sizes_add_up(plain: Analysis) -> None:
    """The bank after A→B holds what A left and what B added."""
    sizes = {(bank.condition, bank.sequence): bank.items.mean for bank in plain.banks}
    assert sizes["agg", "A"] == 20
    assert sizes["agg", "A>B"] == 40


def test_costs_when_memory_recalls_then_counts_its_tokens(plain: Analysis) -> None:
    """Recalled tokens are those of the receipts, none without memory."""
    costs = {(cost.condition, cost.kind): cost for cost in plain.costs}
    agg, none = costs["agg", "evaluate"].recalled_tokens, costs["none", "evaluate"].recalled_tokens
    assert agg is not None
    assert agg.mean == 120
    assert none is not None
    assert none.mean == 0
    assert costs["agg", "train"].episodes == 3 * 4 * 20
    assert costs["agg", "train"].tokens is None


def test_costs_when_results_hold_usage_then_counts_tokens_per_episode() -> None:
    """Prompt and completion tokens of the results reach the costs, both together."""
    analysis = analyze(SyntheticLog(World(tokens=(900, 134))))
    for cost in analysis.costs:
        assert cost.tokens is not None
        assert (cost.tokens.mean, cost.tokens.low, cost.tokens.high) == (1034, 1034, 1034)


def test_summary_table_when_shown_then_has_a_row_per_condition(mixed: Analysis) -> None:
    """The terminal's table starts with the baseline and leaves no condition out."""
    rows = summary_table(mixed)
    names = ["none", "raw", "agg", "same", "rerun", "agg+placebo", "agg+shuffled"]
    assert [row.condition for row in rows] == names
    assert rows[2].verdict == "helped"
    assert rows[-1].verdict == "control: equivalent"
    assert all(len(row.accuracies) == 2 for row in rows)


def test_estimates_when_log_is_read_twice_then_are_equal(mixed: Analysis) -> None:
    """The same log gives the same analysis."""
    again = analyze(SyntheticLog(MIXED))

    def numbers(contrasts: tuple[Contrast, ...]) -> list[object]:
        return [contrast.estimate for contrast in contrasts]

    assert numbers(again.family) == numbers(mixed.family)
    assert again.transfers == mixed.transfers


def test_margin_when_a_plan_states_one_then_controls_are_held_to_it() -> None:
    """A margin so small that nothing can be shown leaves every gate of a control open."""
    strict = analyze(SyntheticLog(World(conditions=("agg",))), margin=0.001)
    assert strict.comparison.margin == 0.001
    assert gate_states(strict)["A/A: agg+placebo"] == "open"
