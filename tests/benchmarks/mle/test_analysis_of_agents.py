"""The analysis of a study of several agents: each by itself, with its own measures and family."""

from typing import Any

import pytest
from mle_logs import COMPETITIONS, GivenLog, StepLog, Tree, TreeLog, run_spec, step_result_of

from langgraft._core.errors import InputError
from langgraft.benchmarks.comparison.verdicts import SIGNIFICANCE
from langgraft.benchmarks.mle.analysis import MEASURES, analyze, analyze_agents
from langgraft.benchmarks.mle.behaviour.runs import Share
from langgraft.benchmarks.mle.outcomes import memory_use
from langgraft.benchmarks.mle.searches import agents_of, read_searches
from langgraft.nodes.workbench.log import StepRecord

AGENTS = ("tree", "chain", "mlab")


def steps(flags: str, **fields: Any) -> list[StepRecord]:
    """Make a run: B is buggy, V reports a metric, T talks."""
    return [
        StepRecord.model_validate(
            {
                "step": place,
                "action": "message" if flag == "T" else "run_python",
                "command": f"cell {place}",
                "executed": flag != "T",
                "program": "" if flag == "T" else "import numpy",
                "failed": flag == "B",
                "exc_type": "KeyError" if flag == "B" else None,
                "metric": 0.5 if flag == "V" else None,
                **fields,
            }
        )
        for place, flag in enumerate(flags)
    ]


def test_agents_when_they_share_competitions_and_seeds_are_analyzed_apart() -> None:
    """None of them overwrites another, and each has all of its runs."""
    log = TreeLog(Tree(agents=AGENTS, conditions=("off", "warm"), seeds=2))
    assert agents_of(log) == AGENTS
    assert [len(read_searches(log, agent=each).done) for each in AGENTS] == [12, 12, 12]
    tree, chain, mlab = analyze_agents(log)
    alone = analyze(TreeLog(Tree(conditions=("off", "warm"), seeds=2)))
    assert tree.contrast("warm", "bug_rate") == alone.contrast("warm", "bug_rate")
    assert chain.contrast("warm", "bug_rate").pairs == 6
    assert chain.contrast("warm", "bug_rate") != mlab.contrast("warm", "bug_rate")
    with pytest.raises(InputError, match="tree, chain, mlab"):
        read_searches(log)


def test_split_of_late_steps_when_agents_differ_in_length_is_each_agents_own() -> None:
    """A tree of 12 steps is split in its middle, though the chain's runs go far beyond."""
    log = TreeLog(Tree(agents=AGENTS, conditions=("off",)))
    assert [read_searches(log, agent=each).split for each in AGENTS] == [6, 10, 10]


def test_family_when_agents_are_several_is_one_for_each() -> None:
    """Measures that mean nothing for an agent are in neither its list nor its family."""
    log = TreeLog(Tree(agents=AGENTS, conditions=("off", "cold", "warm"), seeds=1))
    sizes = {}
    for analysis in analyze_agents(log):
        family = [each for each in analysis.contrasts if each.in_family]
        sizes[analysis.agent] = len(family)
        assert all(each.p_adjusted is None for each in analysis.contrasts if each not in family)
    assert sizes == {"tree": 16, "chain": 18, "mlab": 16}
    names = {kind: {each.name for each in found} for kind, found in MEASURES.items()}
    assert "code_distance" not in names["chain"] | names["mlab"]
    assert "commands" in names["chain"] - names["mlab"] - names["tree"]


def test_chain_when_memory_prevents_late_errors_is_told_better() -> None:
    """Pairs of a competition and a seed, runs of unequal length, a run that did nothing."""
    bare = ["BTBBV" + "BTB" * n for n in (7, 8, 6, 9, 7, 8)]
    warm = ["BTVTV" + "VTT" * n for n in (7, 8, 6, 9, 7, 8)]
    log = StepLog({"off": [*map(steps, bare), []], "warm": [*map(steps, warm), steps("V")]})
    analysis = analyze(log)
    late = analysis.contrast("warm", "late_errors")
    assert late.estimate is not None
    assert late.estimate.value < -8
    assert late.verdict_same_items == "better"
    assert late.p_same_items is not None
    assert late.p_same_items < SIGNIFICANCE
    assert (late.pairs, late.undefined) == (7, 0)
    rate = analysis.contrast("warm", "bug_rate")
    assert (rate.pairs, rate.undefined) == (6, 1)
    gates = {gate.name: gate.state for gate in analysis.gates}
    assert gates["Completeness"] == "passed"
    assert "Equal lengths" not in gates


def test_sides_when_laid_out_as_published_have_both_sides_and_the_difference() -> None:
    """Late errors and recurrence by task, medals by modality; each with what it rests on."""
    run = "BBVVVVVVVV" + "B" * 12
    analysis = analyze(
        StepLog({"off": [steps(run), steps(run + "B")], "warm": [steps(run[:12]), steps("V")]})
    )
    rows = {each.table: each for each in analysis.sides}
    late = rows["late_errors"]
    assert late.baseline is not None
    assert late.treated is not None
    assert late.delta is not None
    assert (late.baseline.mean, late.treated.mean, late.delta.mean) == (12.5, 1.0, -11.5)
    assert late.same_items is not None
    assert late.same_items.low <= -11.5 <= late.same_items.high
    assert (late.row, late.pairs, late.runs) == ("digits", 2, (2, 2))
    assert rows["recurrence"].runs == (2, 1)  # one run had no late steps
    assert rows["medals"].row == "image"


def test_endings_when_runs_end_for_reasons_count_them() -> None:
    """Turns used, attempts, and why; a tree has none of it."""
    runs = []
    for seed, (flags, ended) in enumerate([("VV", "finished"), ("B" * 6, "stuck: pairs")]):
        known = COMPETITIONS["digits"]
        result = step_result_of(steps(flags), "digits", known) | {"ended": ended}
        runs.append((run_spec("off", "digits", seed, agent="chain"), result))
    (found,) = analyze(GivenLog(runs)).endings
    assert found.reasons == {"finished": 1, "stuck: pairs": 1}
    assert found.steps is not None
    assert (found.steps.mean, found.least, found.most) == (4, 2, 6)
    assert found.tools == {"run_python": 8}
    assert analyze(TreeLog()).endings == ()


def test_memory_of_a_step_agent_when_read_is_that_of_its_attempts() -> None:
    """Recalls are counted once an attempt, stores with what they started from."""
    told = {"recalled": "- a", "recalled_kinds": ("code", "resource")}
    second = steps("B", attempt=1, error={"package": "general"})
    log = StepLog({"off": [steps("VB")], "warm": [[*steps("BV", **told), *second]]})
    off, warm = analyze(log).memory
    assert off.shares["attempts_with_memory"] == Share(0, 1)
    assert warm.shares["attempts_with_memory"] == Share(1, 2)
    assert warm.shares["buggy_with_memory"] == Share(1, 2)
    assert warm.shares["resource_attempts"] == Share(1, 1)
    assert (warm.taught, warm.attempts) == (1, 2)
    chain = TreeLog(Tree(agents=("chain",), conditions=("off", "warm"), seeds=2))
    _, stores = memory_use(read_searches(chain), chain)
    assert (stores.stores, stores.shares["resource_entries"].of) == (6, 36)


def test_runs_when_none_took_a_step_are_compared_and_say_nothing() -> None:
    """As where a model's server never answered with anything that could be read."""
    analysis = analyze(StepLog({"off": [[], []], "warm": [[], []]}))
    said_nothing = {"no detectable difference", "too few runs"}  # with two seeds
    assert {each.verdict for each in analysis.contrasts} <= said_nothing
    assert analysis.contrast("warm", "bug_rate").undefined == 2
    assert [analysis.searches.censored(name) for name in analysis.searches.conditions] == [2, 2]
    assert [each.steps.mean for each in analysis.endings if each.steps] == [0, 0]


def test_gates_when_an_agent_lacks_a_control_that_another_has_leave_it_out() -> None:
    """An agent may have some of a plan's conditions: what it was not to do is not open."""
    known = COMPETITIONS["digits"]
    runs = [
        (
            run_spec(condition, "digits", seed, agent=agent),
            step_result_of(steps("BV"), "digits", known),
        )
        for agent, conditions in {"chain": ("off", "placebo"), "mlab": ("off", "warm")}.items()
        for condition in conditions
        for seed in range(2)
    ]
    chain, mlab = analyze_agents(GivenLog(runs))
    assert [gate.name for gate in chain.gates if "placebo" in gate.name]
    assert not [gate.name for gate in mlab.gates if "placebo" in gate.name]
    assert mlab.searches.memories == ("warm",)
