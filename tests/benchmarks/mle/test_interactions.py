"""Whether what memory changes depends on the agent: differences of differences, and their family."""

import csv
from itertools import product
from pathlib import Path
from statistics import fmean

import pytest
from mle_logs import CODES, COMPETITIONS, GivenLog, Tree, TreeLog, plan, result_of, run_spec

from langgraft.benchmarks.mle.analysis import Analysis, analyze_agents
from langgraft.benchmarks.mle.interactions import Crossed, Crossing, crossings, is_diversity
from langgraft.benchmarks.mle.report import (
    called,
    crossing_sentences,
    named_sentences,
    write_report,
)
from langgraft.nodes.search.journal import JournalNode

POLICIES = ("tree", "tree-uct", "tree-evolution")
CONDITIONS = ("off", "warm", "placebo")
ONLY_GREEDY = {"tree/warm": 0.05, "warm": 0.6, "off": 0.6}
"""Memory prevents failures of one policy alone."""


@pytest.fixture(scope="module")
def analyses() -> tuple[Analysis, ...]:
    """Return three policies of which memory helps one."""
    tree = Tree(agents=POLICIES, conditions=CONDITIONS, seeds=4, steps=20, bugs=ONLY_GREEDY)
    return analyze_agents(TreeLog(tree))


@pytest.fixture(scope="module")
def crossing(analyses: tuple[Analysis, ...]) -> Crossing:
    """Return how they differ."""
    (found,) = crossings(analyses)
    return found


def row(crossing: Crossing, condition: str, measure: str) -> Crossed:
    """Return what a condition changes by a measure."""
    return next(each for each in crossing.of(condition) if each.measure.name == measure)


def test_difference_when_memory_helps_one_policy_alone_is_that_of_the_differences(
    analyses: tuple[Analysis, ...], crossing: Crossing
) -> None:
    """Computed anew from the runs, pair by pair."""
    rates = {
        (each.agent, run.condition, run.pair): run.behavior.bug_rate or 0.0
        for each in analyses
        for run in each.searches.done
    }
    pairs = {pair for _, _, pair in rates}
    effects = {
        (agent, pair): rates[agent, "warm", pair] - rates[agent, "off", pair]
        for agent in POLICIES
        for pair in pairs
    }
    bugs = row(crossing, "warm", "bug_rate")
    for agent in POLICIES[1:]:
        found = bugs.between[agent]
        expected = fmean(effects[agent, pair] - effects["tree", pair] for pair in pairs)
        assert found.estimate is not None
        assert found.estimate.value == pytest.approx(expected)
        assert (found.pairs, found.planned) == (12, 12)
        assert found.sharpest_verdict == "changed"
        assert found.measure.better is None
    assert bugs.mean.estimate is not None
    assert bugs.mean.estimate.value == pytest.approx(fmean(effects.values()))
    assert bugs.within["tree"].sharpest_verdict == "better"
    assert {
        agent for agent, measure in crossing.differing("warm") if measure.name == "bug_rate"
    } == {
        "tree-uct",
        "tree-evolution",
    }


def test_family_when_declared_is_failures_and_diversity_of_memories_alone(
    crossing: Crossing,
) -> None:
    """Not of controls, nor of medals: four measures in two other policies."""
    asked = {each.measure.name for each in crossing.rows if each.in_question}
    assert asked == {"bug_rate", "operators", "packages", "code_distance"}
    assert len(crossing.family) == 8
    assert all(each.p_adjusted is not None for each in crossing.family)
    bare = sorted(e.estimate.p for e in crossing.family if e.estimate is not None)
    adjusted = [each.p_adjusted for each in crossing.family if each.p_adjusted is not None]
    assert min(adjusted) == pytest.approx(min(1, 8 * bare[0]))
    beside = [e for r in crossing.rows for e in r.between.values() if not e.in_family]
    assert len(beside) == 2 * (8 + 4)
    assert all(each.p_adjusted is None for each in (*beside, *(r.mean for r in crossing.rows)))
    assert crossing.controls == {"placebo"}
    assert not is_diversity(row(crossing, "warm", "bug_rate").measure)


def test_difference_when_policies_behave_alike_is_none() -> None:
    """The same runs under three names differ in nothing, and nothing is found."""
    tree = Tree(agents=POLICIES, conditions=CONDITIONS, seeds=3)
    (crossing,) = crossings(analyze_agents(TreeLog(tree)))
    for each in crossing.family:
        assert each.estimate is not None
        assert each.estimate.value == 0
    assert crossing.differing("warm") == ()
    told = " ".join(crossing_sentences(crossing))
    assert "its effect in tree-uct less that in tree: bug rate 0.0" in told
    assert "placebo" not in told


def test_trade_off_when_failures_fall_and_diversity_does_not_is_none(crossing: Crossing) -> None:
    """Both have to fall beyond chance in one agent; here more programs work, and none is narrower."""
    assert crossing.trading("warm") == ()
    first = next(crossing_sentences(crossing))
    assert "in none of tree, tree-uct and tree-evolution" in first


def search(code: str, seed: int, *, failed: int) -> list[JournalNode]:
    """Make a search of eight programs, of which the first ones fail."""
    return [
        JournalNode(
            step=step,
            id=str(step),
            parent_id=None,
            plan="",
            code=code if step % 2 else CODES[(step + seed) % len(CODES)].format(n=seed),
            metric=None if step < failed else 0.5,
            is_buggy=step < failed,
        )
        for step in range(8)
    ]


def test_trade_off_when_failures_and_diversity_fall_in_one_policy_names_it() -> None:
    """Greedy search keeps to one program with memory; the other policy is as it was."""
    runs = []
    for agent, seed in product(POLICIES[:2], range(6)):
        bare = search(CODES[seed % 3], seed, failed=4 + seed % 2)
        warm = [
            each.model_copy(update={"code": "x = 1 + 2", "is_buggy": False, "metric": 0.5})
            for each in bare
        ]
        for condition, nodes in (("off", bare), ("warm", warm if agent == "tree" else bare)):
            spec = run_spec(condition, "digits", seed, agent=agent, alone=False)
            runs.append((spec, result_of(nodes, "digits", COMPETITIONS["digits"])))
    (crossing,) = crossings(analyze_agents(GivenLog(runs)))
    assert crossing.trading("warm") == ("tree",)
    differing = {measure.name for _, measure in crossing.differing("warm")}
    assert differing >= {"bug_rate", "operators"}
    first, second = crossing_sentences(crossing)
    assert "both beyond chance, in tree of tree and tree-uct" in first
    assert "its effect in tree-uct less that in tree: bug rate +5" in second


def test_crossing_when_runs_are_missing_is_incomplete_and_untested() -> None:
    """A pair counts once all four of its runs ended."""
    tree = Tree(agents=POLICIES[:2], conditions=CONDITIONS, seeds=3)
    missing = [
        run.name
        for run in TreeLog(tree).runs
        if run.factors["agent"] == "tree-uct" and run.name.endswith("warm/digits/1")
    ]
    (crossing,) = crossings(analyze_agents(TreeLog(tree, missing=missing)))
    found = row(crossing, "warm", "bug_rate").between["tree-uct"]
    assert (found.pairs, found.planned, found.sharpest_verdict) == (8, 9, "incomplete")
    assert found.p_adjusted is None
    assert crossing.judged("warm") == ("tree",)
    assert next(crossing_sentences(crossing)).endswith("in none of tree.")


def test_trade_off_when_runs_are_too_few_is_not_spoken_of() -> None:
    """That it is in none of them would be a finding, and there is none."""
    tree = Tree(agents=POLICIES[:2], conditions=CONDITIONS, seeds=1)
    (crossing,) = crossings(analyze_agents(TreeLog(tree)))
    assert crossing.judged("warm") == ()
    assert not any("fewer failures" in said for said in crossing_sentences(crossing))


def test_crossing_when_agents_are_of_different_kinds_is_none() -> None:
    """A step of a chain is no program of a tree; chains with two models do cross."""
    mixed = Tree(agents=("tree", "chain", "mlab"), conditions=("off", "warm"), seeds=1)
    assert crossings(analyze_agents(TreeLog(mixed))) == ()


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("tree", "tree search"),
        ("tree-uct", "tree search by UCT"),
        ("tree-uct-o3", "tree search by UCT, o3"),
        ("tree-o3", "tree search, o3"),
        ("chain-gpt-4o", "chain agent, gpt-4o"),
        ("other", "other"),
    ],
)
def test_agent_when_it_is_a_variant_is_called_by_its_word(agent: str, said: str) -> None:
    """In titles."""
    assert called(agent) == said


def test_report_when_agents_cross_has_a_table_and_a_section(tmp_path: Path) -> None:
    """And says first what depends on the agent."""
    agents = ("tree-o3", "tree-claude", "chain")
    log = TreeLog(Tree(agents=agents, conditions=CONDITIONS, seeds=3, bugs=ONLY_GREEDY))
    report = write_report(plan(), log, tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert '<section id="interactions-tree">' in page
    assert 'href="#interactions-tree"' in page
    assert "interactions-chain" not in page
    lines = (tmp_path / "tables" / "interactions.csv").read_text().splitlines()
    rows = list(csv.DictReader(lines))
    assert {(r["agent"], r["reference"]) for r in rows} == {
        ("tree-claude", "tree-o3"),
        ("mean", ""),
    }
    assert {r["condition"] for r in rows} == {"warm", "placebo"}
    assert (
        "warm: fewer failures together with less diversity"
        in named_sentences(analyze_agents(log))[0]
    )
    assert any("its effect in tree-claude less that in tree-o3" in note for note in report.lines)
