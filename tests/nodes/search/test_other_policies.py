"""UCT and evolution against a second statement of their rules, and what they must never do."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from policy_rules import Table, bushy_journal, evolution_choice, uct_choice, under_way

from langgraft._core.errors import InputError, SettingsError
from langgraft.nodes.search import EvolutionPolicy, Expansion, JournalNode, Progress, UCTPolicy
from langgraft.nodes.search.policy import debug_depths

JOURNALS = 1000


def told(choice: Expansion) -> tuple[str, str | None, str | None]:
    """Return what a choice says of programs."""
    return choice.stage, choice.parent_id, choice.partner_id


def node(
    step: int, parent: int | None = None, metric: float | None = None, partner: int | None = None
) -> JournalNode:
    """Make a program: without a metric it failed."""
    return JournalNode(
        step=step,
        id=str(step),
        parent_id=None if parent is None else str(parent),
        partner_id=None if partner is None else str(partner),
        plan="",
        code="",
        metric=metric,
        is_buggy=metric is None,
    )


def test_uct_when_asked_about_a_thousand_random_journals_equals_its_rules_stated_anew() -> None:
    """Whatever the shape, the settings and what is under way."""
    random = Random(11)
    stages: Counter[str] = Counter()
    for number in range(JOURNALS):
        nodes, lower = bushy_journal(random), random.random() < 0.5
        begun, steps = under_way(random, nodes), random.random()
        policy = UCTPolicy(
            children=random.randrange(1, 7),
            c=random.choice([0.0, 0.25, 1.4]),
            decay=random.choice([0.0, 0.5, 1.0]),
            top=random.choice([None, 1, 2, 3]),
            debug_depth=random.randrange(4),
        )
        choice = policy.choose(
            nodes,
            step=len(nodes) + len(begun),
            seed=number,
            lower_is_better=lower,
            under_way=begun,
            progress=Progress(steps),
        )
        assert told(choice) == uct_choice(
            Table(nodes, begun, lower),
            children=policy.children,
            c=policy.c * (1 - policy.decay * steps),
            top=policy.top,
            debug_depth=policy.debug_depth,
        ), number
        stages[choice.stage] += 1
    assert min(stages[each] for each in ("draft", "debug", "improve")) > 150


def test_evolution_when_asked_about_a_thousand_random_journals_equals_its_rules_stated_anew() -> (
    None
):
    """Whatever the shape, the settings and what is under way; the seed draws alike."""
    random = Random(12)
    stages: Counter[str] = Counter()
    for number in range(JOURNALS):
        nodes, lower = bushy_journal(random), random.random() < 0.5
        begun = under_way(random, nodes)
        settings: dict[str, Any] = {
            "generation": random.randrange(1, 6),
            "population": random.choice([1, 2, 4, 20]),
            "crossover": random.choice([0.0, 0.5, 1.0]),
            "crossover_from": random.choice([1, 2]),
            "tournament": random.choice([None, None, 1, 3]),
            "debug_depth": random.randrange(4),
        }
        step = len(nodes) + len(begun)
        choice = EvolutionPolicy(**settings).choose(
            nodes, step=step, seed=number, lower_is_better=lower, under_way=begun
        )
        stated = evolution_choice(Table(nodes, begun, lower), seed=number, step=step, **settings)
        assert told(choice) == stated, number
        stages[choice.stage] += 1
    assert min(stages[each] for each in ("draft", "debug", "improve", "merge")) > 80


def grown(policy: Any, random: Random, *, steps: int, width: int) -> list[JournalNode]:
    """Let a policy grow a journal, in waves; what comes of its programs is drawn."""
    bugginess, nodes = random.choice([0.1, 0.4, 0.8]), list[JournalNode]()
    while len(nodes) < steps:
        wave: list[Expansion] = []
        for _ in range(min(width, steps - len(nodes))):
            step = len(nodes) + len(wave)
            wave.append(
                policy.choose(
                    nodes, step=step, seed=7, lower_is_better=True, under_way=wave,
                    progress=Progress(step / steps),
                )
            )  # fmt: skip
        for choice in wave:
            parents = {each.id: each for each in nodes}
            if choice.stage in ("improve", "merge"):
                assert not parents[str(choice.parent_id)].is_buggy
            if choice.stage == "merge":
                assert not parents[str(choice.partner_id)].is_buggy
                assert choice.partner_id != choice.parent_id
            if choice.stage == "debug":
                assert parents[str(choice.parent_id)].is_buggy
            made = None if random.random() < bugginess else random.random()
            number = len(nodes)
            nodes.append(
                JournalNode(
                    step=number, id=str(number), parent_id=choice.parent_id,
                    partner_id=choice.partner_id, plan="", code="", metric=made,
                    is_buggy=made is None,
                )
            )  # fmt: skip
    return nodes


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(
    "policy",
    [UCTPolicy(children=3, debug_depth=2), EvolutionPolicy(generation=4, debug_depth=2)],
    ids=["uct", "evolution"],
)
def test_searches_when_grown_keep_the_limits_and_never_better_a_failure(
    policy: UCTPolicy | EvolutionPolicy, width: int
) -> None:
    """Children, repairs in a row and the repairs of one failure stay within what is set."""
    random = Random(width)
    for _ in range(30):
        nodes = grown(policy, random, steps=40, width=width)
        written = Counter(each.parent_id for each in nodes if each.parent_id is not None)
        assert max(debug_depths(nodes).values()) <= 2
        for each in nodes:
            if each.is_buggy:
                assert written[each.id] <= 1
            elif isinstance(policy, UCTPolicy):
                assert written[each.id] <= policy.children


def test_uct_when_branches_run_side_by_side_sends_them_to_different_programs() -> None:
    """What is under way is a visit that is worth nothing: the second best gets its turn."""
    nodes = [node(0, metric=1.0), node(1, metric=0.98), node(2, metric=0.0)]
    policy = UCTPolicy(children=3, c=0.05)
    first = policy.choose(nodes, step=3, seed=0, lower_is_better=False)
    second = policy.choose(nodes, step=4, seed=0, lower_is_better=False, under_way=[first])
    assert (first.parent_id, second.parent_id) == ("0", "1")


def test_uct_when_c_decays_turns_to_the_best_in_the_end() -> None:
    """At the beginning a program that is little explored is worth a look."""
    nodes = [node(0, metric=1.0), node(1, metric=0.6), node(2, 0, 0.9), node(3, 0, 0.0)]
    policy = UCTPolicy(children=2, c=0.6, decay=1.0)
    early, late = (
        policy.choose(
            nodes, step=4, seed=0, lower_is_better=False, progress=Progress(steps=share)
        ).parent_id
        for share in (0.0, 1.0)
    )
    assert (early, late) == ("1", "2")


def test_uct_when_every_draft_failed_for_good_drafts_again() -> None:
    """The task may have more children than a program, rather than that a search stands still."""
    nodes = [node(0), node(1, 0), node(2)]
    policy = UCTPolicy(children=1, debug_depth=1)
    assert told(policy.choose(nodes, step=3, seed=0, lower_is_better=True)) == ("debug", "2", None)
    nodes.append(node(3, 2))
    assert told(policy.choose(nodes, step=4, seed=0, lower_is_better=True))[0] == "draft"


def test_evolution_when_a_generation_is_under_way_draws_from_earlier_ones_alone() -> None:
    """A better program of the same generation has to wait for the next one."""
    nodes = [node(0, metric=0.5), node(1, metric=0.5), node(2, 0, 0.9)]
    policy = EvolutionPolicy(generation=2, crossover=0)
    chosen = {
        policy.choose(nodes, step=3, seed=seed, lower_is_better=False).parent_id
        for seed in range(50)
    }
    assert "2" not in chosen
    nodes.append(node(3, 1, 0.1))
    chosen = {
        policy.choose(nodes, step=4, seed=seed, lower_is_better=False).parent_id
        for seed in range(50)
    }
    assert "2" in chosen


def test_evolution_when_drawn_over_many_seeds_draws_in_proportion_to_fitness() -> None:
    """Twice the fitness is drawn twice as often, and the worst of the search never is."""
    nodes = [node(0, metric=0.0), node(1, metric=1.0), node(2, metric=2.0)]
    policy = EvolutionPolicy(generation=3, crossover=0)
    counts = Counter(
        policy.choose(nodes, step=3, seed=seed, lower_is_better=False).parent_id
        for seed in range(3000)
    )
    assert counts["0"] == 0
    assert 1.8 < counts["2"] / counts["1"] < 2.2


@pytest.mark.parametrize(
    ("make", "settings", "named"),
    [
        (UCTPolicy, {"children": 0}, "children must .* got 0"),
        (UCTPolicy, {"c": -1}, "c=-1"),
        (UCTPolicy, {"c": float("inf")}, "c=inf"),
        (UCTPolicy, {"decay": 2}, "decay=2"),
        (UCTPolicy, {"top": 0}, "top must .* got 0"),
        (UCTPolicy, {"scope": "cousins"}, "scope='cousins': give one of all, siblings, ancestors"),
        (EvolutionPolicy, {"generation": 0}, "generation must .* got 0"),
        (EvolutionPolicy, {"population": True}, "population must .* got True"),
        (EvolutionPolicy, {"crossover": float("nan")}, "crossover=nan"),
        (EvolutionPolicy, {"crossover_from": 0}, "crossover_from must .* got 0"),
        (EvolutionPolicy, {"tournament": 0}, "tournament must .* got 0"),
        (EvolutionPolicy, {"debug_depth": -1}, "debug_depth must .* got -1"),
    ],
)
def test_settings_when_no_search_can_follow_them_are_refused(
    make: Any, settings: dict[str, object], named: str
) -> None:
    """The message names the setting and what it got."""
    with pytest.raises(SettingsError, match=named):
        make(**settings)


@pytest.mark.parametrize("policy", [UCTPolicy(), EvolutionPolicy()])
def test_journal_when_a_partner_does_not_come_before_is_refused(policy: Any) -> None:
    """A merge of what is not there is no merge."""
    nodes = [node(0, metric=0.1), node(1, 0, 0.2, partner=9)]
    with pytest.raises(InputError, match=r"node '1' \(step 1\) names the parent '9'"):
        policy.choose(nodes, step=2, seed=0, lower_is_better=True)
