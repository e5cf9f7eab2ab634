"""From a log to verdicts: what helped, what hurt, what cannot be said."""

import pytest
from synthetic_log import SyntheticLog, World

from langgraft._core.errors import InputError
from langgraft.benchmarks.continual.analysis import Analysis, analyze, summary_table
from langgraft.benchmarks.continual.contrasts import Contrast

MIXED = World(
    conditions=("raw", "agg", "same"),
    effects={("agg", "", ""): 0.35, ("raw", "", ""): -0.35},
    replicates=5,
)


@pytest.fixture(scope="module")
def mixed() -> Analysis:
    """Analyze a study in which agg helps, raw hurts and the third does nothing."""
    return analyze(SyntheticLog(MIXED))


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
    assert mixed.family[0].difference.planned == 5 * (6 + 2) * 40


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


def test_gates_when_all_is_well_then_all_pass(mixed: Analysis) -> None:
    """A complete study without surprises passes every gate."""
    assert set(gate_states(mixed).values()) == {"passed"}


def test_content_contrast_when_words_matter_then_condition_beats_its_controls(
    mixed: Analysis,
) -> None:
    """Placebo and shuffled recall as much, and help nothing."""
    assert [content.control for content in mixed.content] == ["agg+placebo", "agg+shuffled"]
    for content in mixed.content:
        assert content.difference.estimate is not None
        assert content.difference.estimate.low > 0


def test_verdicts_when_nothing_differs_then_hardly_ever_find_anything() -> None:
    """Over twenty null studies of two memories, at most three claims: the family rate is 5 %."""
    claims = 0
    for seed in range(20):
        world = World(controls=(), seed=seed, test_items=25, train_items=2, replicates=3)
        claims += sum(
            v != "no detectable difference" for v in verdicts(analyze(SyntheticLog(world))).values()
        )
    assert claims <= 3


def test_control_when_it_helps_then_its_gate_fails() -> None:
    """A placebo that works means that something other than memory does."""
    world = World(effects={("agg+placebo", "", ""): 0.4}, replicates=5)
    analysis = analyze(SyntheticLog(world))
    states = gate_states(analysis)
    assert states["A/A: agg+placebo"] == "failed"
    assert states["A/A: agg+shuffled"] == "passed"
    assert "agg+placebo" in analysis.summary
    assert "outside" in analysis.summary


def test_rerun_when_it_differs_then_its_gate_fails() -> None:
    """A baseline that differs from itself puts every other difference in doubt."""
    analysis = analyze(SyntheticLog(World(effects={("rerun", "", ""): 0.4}, replicates=5)))
    assert gate_states(analysis)["A/A: re-run"] == "failed"
    assert "Mind that a mere re-run of the baseline differs from it" in analysis.summary


def test_analysis_when_there_is_no_rerun_then_noise_is_left_open() -> None:
    """Without a re-run no control is said to be within its noise."""
    analysis = analyze(SyntheticLog(World(rerun=False)))
    states = gate_states(analysis)
    assert states["A/A: re-run"] == states["A/A: agg+placebo"] == "open"
    assert "noise of a re-run" not in analysis.summary


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
    assert gate_states(analyze(log))["Constant prompts"] == "open"


def test_learning_curve_when_cumulative_then_ends_at_the_success_rate() -> None:
    """The last point is the share of all training items that were solved."""
    log = SyntheticLog()
    curve = analyze(log).curves[0]
    results = log.results("raw/0/train A")
    assert curve.curves[0][-1] == pytest.approx(
        sum(bool(result["success"]) for result in results) / len(results)
    )
    assert all(
        low - 1e-9 <= mean <= high + 1e-9
        for low, mean, high in zip(curve.low, curve.mean, curve.high, strict=True)
    )


def test_milestones_when_planned_then_end_with_the_phase() -> None:
    """Three evaluations a phase are placed after 6, 13 and 20 of 20 items."""
    analysis = analyze(SyntheticLog(World(steps=3)))
    track = [
        m.at
        for m in analysis.milestones
        if (m.key.condition, m.key.sequence, m.key.task) == ("agg", "A>B", "B")
    ]
    assert track == [6, 13, 20]
    assert analyze(SyntheticLog()).milestones == ()


def test_banks_when_a_phase_follows_another_then_sizes_add_up() -> None:
    """The bank after A→B holds what A left and what B added."""
    sizes = {
        (bank.condition, bank.sequence): bank.items.mean for bank in analyze(SyntheticLog()).banks
    }
    assert sizes["agg", "A"] == 20
    assert sizes["agg", "A>B"] == 40


def test_costs_when_memory_recalls_then_counts_its_tokens() -> None:
    """Recalled tokens are those of the receipts, none without memory."""
    costs = {(cost.condition, cost.kind): cost for cost in analyze(SyntheticLog()).costs}
    agg, none = costs["agg", "evaluate"].recalled_tokens, costs["none", "evaluate"].recalled_tokens
    assert agg is not None
    assert agg.mean == 120
    assert none is not None
    assert none.mean == 0
    assert costs["agg", "train"].episodes == 3 * 4 * 20
    assert costs["agg", "train"].tokens is None


def test_summary_table_when_shown_then_has_a_row_per_condition(mixed: Analysis) -> None:
    """The terminal's table starts with the baseline and leaves no condition out."""
    rows = summary_table(mixed)
    names = ["none", "raw", "agg", "same", "rerun", "agg+placebo", "agg+shuffled"]
    assert [row.condition for row in rows] == names
    assert rows[2].verdict == "helped"
    assert rows[-1].verdict == "control: within noise"
    assert all(len(row.accuracies) == 2 for row in rows)


def test_estimates_when_log_is_read_twice_then_are_equal(mixed: Analysis) -> None:
    """The same log gives the same analysis."""
    again = analyze(SyntheticLog(MIXED))

    def numbers(contrasts: tuple[Contrast, ...]) -> list[object]:
        return [contrast.estimate for contrast in contrasts]

    assert numbers(again.family) == numbers(mixed.family)
    assert again.transfers == mixed.transfers
