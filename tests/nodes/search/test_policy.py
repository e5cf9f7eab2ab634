"""AIDE's policy against a second statement of its rules, and against AIDE's own runs."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from aide_rules import chances, random_journal

from langgraft._core.errors import InputError, SettingsError
from langgraft.benchmarks.mle.journals import read_journals
from langgraft.nodes.search.journal import Journal, JournalNode
from langgraft.nodes.search.policy import AIDEPolicy, Expansion, SearchPolicy, unexplained

ALWAYS = AIDEPolicy(debug_probability=1)


@pytest.fixture(scope="module")
def aide_journals(data_dir: Path) -> list[Journal]:
    """Return five runs of AIDE as MLE-bench ran it: 296 programs."""
    if not (data_dir / "aide").is_dir():
        pytest.skip("LANGGRAFT_DATA has no folder `aide`")
    return read_journals(data_dir / "aide")


def node(step: int, parent: int | None = None, metric: float | None = None) -> JournalNode:
    """Make a program: without a metric it failed."""
    return JournalNode(
        step=step,
        id=str(step),
        parent_id=None if parent is None else str(parent),
        plan="",
        code="",
        metric=metric,
        is_buggy=metric is None,
    )


def chosen(
    policy: SearchPolicy, nodes: list[JournalNode], seed: int = 0, *under_way: Expansion
) -> Expansion:
    """Ask for the next program, where higher metrics are better."""
    step = len(nodes) + len(under_way)
    choice = policy.choose(nodes, step=step, seed=seed, lower_is_better=False, under_way=under_way)
    assert choice is not None
    return choice


def test_policy_when_asked_about_a_thousand_random_journals_equals_aides_rules() -> None:
    """What it may choose is what AIDE may choose, and what it chooses is one of these."""
    random = Random(6)
    stages: Counter[str] = Counter()
    for number in range(1000):
        nodes = random_journal(random)
        drafts, depth = random.randrange(1, 7), random.randrange(6)
        chance, published = random.choice([0.0, 0.5, 1.0]), random.random() < 0.5
        lower = random.random() < 0.5
        policy = AIDEPolicy(drafts, chance, depth, published)
        stated = chances(
            nodes,
            num_drafts=drafts,
            debug_prob=Fraction(chance),
            max_debug_depth=depth if published else depth - 1,
            maximize=not lower,
        )
        assert sum(stated.values()) == 1
        found = policy.admissible(nodes, lower_is_better=lower)
        assert found == {Expansion(stage, parent) for stage, parent in stated}, number
        for seed in range(3):
            choice = policy.choose(nodes, step=len(nodes), seed=seed, lower_is_better=lower)
            assert choice in found, number
            stages[choice.stage] += 1
    assert min(stages.values()) > 200, "the journals reach every rule"


def test_choices_when_drawn_over_many_seeds_come_as_often_as_aides() -> None:
    """Repairs are drawn evenly, and the coin falls as often as it should."""
    random, draws = Random(3), 2000
    journals = [each for each in (random_journal(random) for _ in range(200)) if len(each) > 15]
    checked = 0
    for nodes in journals:
        stated = chances(
            nodes, num_drafts=2, debug_prob=Fraction(1, 2), max_debug_depth=3, maximize=True
        )
        if not 3 <= len(stated) <= 8 or checked == 10:
            continue
        checked += 1
        policy = AIDEPolicy(drafts=2)
        counts = Counter(chosen(policy, nodes, seed) for seed in range(draws))
        for (stage, parent), chance in stated.items():
            spread = (draws * chance * (1 - chance)) ** 0.5
            assert abs(counts[Expansion(stage, parent)] - draws * chance) < 5 * spread
    assert checked == 10


def test_real_runs_of_aide_when_audited_have_every_parent_in_the_admissible_set(
    aide_journals: list[Journal],
) -> None:
    """MLE-bench runs AIDE with probability 1 and depth 20, and the published comparison shows."""
    policy = AIDEPolicy(debug_probability=1, debug_depth=20)
    lower = {"facebook-recruiting-iii-keyword-extraction": False}  # F1; all others are errors
    wrong = [
        (journal.run, each.step)
        for journal in aide_journals
        for each in unexplained(journal, policy, lower_is_better=lower.get(journal.task, True))
    ]
    assert wrong == []


def test_real_runs_of_aide_when_held_to_the_depth_as_its_setting_names_it_do_not_fit(
    aide_journals: list[Journal],
) -> None:
    """They go one repair beyond 20, so the audit can tell the two."""
    named = AIDEPolicy(debug_probability=1, debug_depth=20, published_depth=False)
    assert any(unexplained(each, named, lower_is_better=True) for each in aide_journals)


@pytest.mark.parametrize(("published", "repairs"), [(True, 4), (False, 3)])
def test_chain_of_repairs_when_none_helps_ends_at_the_depth(published: bool, repairs: int) -> None:
    """AIDE's depth 3 lets four repairs follow a draft; the setting's word is three."""
    policy = AIDEPolicy(drafts=1, debug_probability=1, published_depth=published)
    nodes: list[JournalNode] = []
    while (choice := chosen(policy, nodes)) != Expansion("draft") or not nodes:
        nodes.append(node(len(nodes), None if choice.parent_id is None else int(choice.parent_id)))
    assert len(nodes) - 1 == repairs


def test_first_steps_when_a_draft_fails_or_works_are_drafts_still() -> None:
    """Nothing is repaired or made better before step 5."""
    nodes = [node(0), node(1, metric=0.9), node(2), node(3)]
    assert {chosen(ALWAYS, nodes[:count]) for count in range(5)} == {Expansion("draft")}


def test_best_when_metrics_are_equal_is_the_earliest() -> None:
    """As Python's `max` has it."""
    policy = AIDEPolicy(drafts=1)
    nodes = [node(0, metric=0.2), node(1, 0, 0.5), node(2, 1, 0.5)]
    assert chosen(policy, nodes) == Expansion("improve", "1")
    lowest = policy.choose(nodes, step=3, seed=0, lower_is_better=True)
    assert lowest == Expansion("improve", "0")


def test_drafts_when_under_way_count_as_drafts() -> None:
    """Five branches begun at once are the five drafts."""
    nodes = [node(step, metric=0.1 * step) for step in range(3)]
    two = (Expansion("draft"), Expansion("draft"))
    assert chosen(ALWAYS, nodes, 0, two[0]).stage == "draft"
    assert chosen(ALWAYS, nodes, 0, *two) == Expansion("improve", "2")


def test_failure_when_it_is_under_repair_is_not_repaired_twice() -> None:
    """The other branch takes the next failure, and then makes the best better."""
    nodes = [node(step) for step in range(4)] + [node(4, metric=1.0)]
    begun: list[Expansion] = []
    while (choice := chosen(ALWAYS, nodes, 0, *begun)).stage == "debug":
        begun.append(choice)
    assert sorted(str(each.parent_id) for each in begun) == ["0", "1", "2", "3"]
    assert choice == Expansion("improve", "4")


def test_choice_when_asked_again_is_the_same_and_changes_with_seed_and_step() -> None:
    """Chance is a function of seed and step, in every process."""
    nodes = [node(step) for step in range(5)]
    by_seed = [ALWAYS.choose(nodes, step=5, seed=s, lower_is_better=True) for s in range(8)]
    by_step = [ALWAYS.choose(nodes, step=s, seed=0, lower_is_better=True) for s in range(5, 13)]
    assert [each.parent_id for each in by_seed] == ["2", "3", "4", "1", "3", "0", "4", "0"]
    assert len(set(by_step)) > 1


def test_scope_when_it_is_narrow_is_that_of_drafts_and_improvements() -> None:
    """A repair shows its parent alone."""
    policy = AIDEPolicy(2, 1, scope="ancestors")
    assert chosen(policy, []) == Expansion("draft", scope="ancestors")
    assert chosen(policy, [node(0), node(1, metric=1)]) == Expansion("debug", "0")
    working = [node(0, metric=2), node(1, metric=1)]
    assert chosen(policy, working) == Expansion("improve", "0", scope="ancestors")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"drafts": 0}, "drafts must .* got 0"),
        ({"drafts": True}, "drafts must .* got True"),
        ({"debug_depth": -1}, "debug_depth must .* got -1"),
        ({"debug_depth": 2.5}, "debug_depth must .* got 2.5"),
        ({"debug_probability": 1.1}, "debug_probability=1.1"),
        ({"debug_probability": float("nan")}, "debug_probability=nan"),
        ({"debug_probability": "0.5"}, "debug_probability='0.5'"),
        ({"published_depth": 1}, "published_depth=1"),
    ],
)
def test_settings_when_no_search_can_follow_them_are_refused(
    settings: dict[str, object], named: str
) -> None:
    """The message names the setting and what it got."""
    with pytest.raises(SettingsError, match=named):
        AIDEPolicy(**settings)  # type: ignore[arg-type]


def test_journal_when_a_parent_does_not_come_before_is_refused() -> None:
    """Its depth could be anything."""
    nodes = [*(node(step) for step in range(5)), node(5, 9)]
    with pytest.raises(InputError, match=r"node '5' \(step 5\) names the parent '9'"):
        chosen(ALWAYS, nodes)
