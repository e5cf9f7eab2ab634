"""Forgetting: what each policy removes of banks that real providers have built."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item

from langgraft._core.errors import SettingsError
from langgraft.memory.bank_format import write_items
from langgraft.memory.forgetting import (
    Capacity,
    Forgetting,
    FrequencyUtility,
    NotedItem,
    SuccessRate,
    Votes,
    forgotten,
    noted_items,
)
from langgraft.memory.model import BankContent, MemoryDelta, Outcome, Remove, Verdict, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import (
    ExpeL,
    ExpeLSettings,
    InsightMemory,
    InsightSettings,
    make_provider,
    provider_settings,
)

POLICIES: list[Forgetting] = [
    Capacity(limit=2),
    Capacity(limit=2, buffer=3),
    FrequencyUtility(min_uses=2, below=0.6),
    SuccessRate(below=0.45),
    Votes(floor=1, limit=1),
]
Use = tuple[int, bool | None]
"""Which item is recalled, and how the episode ends."""


def forgetful(*policies: Forgetting, store: BaseStore | None = None) -> InsightMemory:
    """Make a memory of insights with policies; it always counts uses."""
    return InsightMemory(
        store or InMemoryStore(),
        settings=InsightSettings.model_validate({"forgetting": policies, "credit": True}),
    )


def learn(memory: MemoryProvider[Any], *names: str) -> None:
    """Take in one episode each, of a task of that name."""
    for name in names:
        memory.file(make_episode(name, task=name))


def use(memory: MemoryProvider[Any], *ends: bool | None, name: str) -> list[MemoryDelta]:
    """Recall the item of a task in one episode after the other; they teach nothing."""
    deltas: list[MemoryDelta] = []
    for end in ends:
        identity = f"use {memory.content().state.get('episodes')}"
        receipt = memory.provide(name, asking(episode_id=identity)).receipt
        episode = make_episode(identity, outcome=Outcome(end), lessons=(), recalls=(receipt,))
        deltas.append(memory.file(episode))
    return deltas


def left(memory: MemoryProvider[Any]) -> list[str]:
    """Return the episodes whose items are left."""
    return [entry.item.episode_id for entry in noted_items(memory.content())]


@given(limit=st.integers(0, 4), buffer=st.integers(0, 3), episodes=st.integers(0, 9))
def test_capacity_when_there_are_more_goes_back_to_the_limit(
    limit: int, buffer: int, episodes: int
) -> None:
    """Nothing goes up to limit and buffer together; beyond, the oldest go down to the limit."""
    memory = forgetful(Capacity(limit=limit, buffer=buffer))
    expected: list[str] = []
    for number in range(episodes):
        learn(memory, f"e{number}")
        memory.manage()
        expected.append(f"e{number}")
        if len(expected) > limit + buffer:
            expected = expected[len(expected) - limit :]
        assert left(memory) == expected


@pytest.mark.parametrize(
    ("ends", "stays"),
    [
        ([False] * 4, True),
        ([False] * 5, False),
        ([True, True, False, False, False], False),
        ([True, True, True, False, False], True),
        ([True, False] * 3, True),
        ([False, False, False, False, None, None], True),
        ([], True),
    ],
)
def test_frequency_utility_when_items_are_used_often_forgets_those_that_rarely_helped(
    ends: list[bool | None], stays: bool
) -> None:
    """Five uses, and less than half of them in episodes that succeeded; unknown ends are none."""
    memory = forgetful(FrequencyUtility())
    learn(memory, "used", "unused")
    use(memory, *ends, name="used")
    assert left(memory) == (["used", "unused"] if stays else ["unused"])


def test_frequency_utility_when_exactly_at_the_share_forgets_nothing() -> None:
    """0.7 * 10 is a little more than 7 in floats; 7 of 10 is not below 0.7."""
    item = make_item()
    policy = FrequencyUtility(below=0.7)
    assert policy.forget([NotedItem(item, {"uses": 10, "successes": 7})]) == []
    assert len(policy.forget([NotedItem(item, {"uses": 10, "successes": 6})])) == 1


@pytest.mark.parametrize(
    ("settings", "ends", "stays"),
    [
        ({}, [False], True),
        ({}, [False, False], False),
        ({}, [True, False, False, False], True),
        ({}, [True, False, False, False, False], False),
        ({"below": 0.9}, [], True),
        ({"below": 0.9}, [None], True),
        ({"below": 0.9}, [True], False),
        ({"below": 0.9, "min_uses": 3}, [True, True], True),
        ({"below": 0.9, "min_uses": 3}, [True, True, True], False),
        ({"below": 0.5}, [True, False], True),
    ],
)
def test_success_rate_when_low_forgets_unless_on_probation(
    settings: dict[str, Any], ends: list[bool | None], stays: bool
) -> None:
    """(successes + 1) / (uses + 2), and no judgment before an item was used enough."""
    memory = forgetful(SuccessRate(**settings))
    learn(memory, "used", "unused")
    use(memory, *ends, name="used")
    assert left(memory) == (["used", "unused"] if stays else ["unused"])


def judged(*policies: Forgetting, **rules: int) -> ExpeL:
    """Make rules with votes, through a judge, in the order given; upkeep is still due."""
    chosen = ExpeLSettings.model_validate({"votes": {}})
    memory = ExpeL(InMemoryStore(), settings=chosen)
    for name, votes in rules.items():
        (question,) = memory.questions(make_episode(name))
        added = (Verdict(question.id, "add", None, name),)
        memory.file(make_episode(name, verdicts=added, lessons=()))
        for number in range(abs(votes - 2)):
            again = f"{name}{number}"
            (question,) = memory.questions(make_episode(again))
            action = "agree" if votes > 2 else "remove"
            vote = (Verdict(question.id, action, f"{name}/rule-0"),)
            memory.file(make_episode(again, verdicts=vote))
    return ExpeL(memory.store, settings=chosen.model_copy(update={"forgetting": policies}))


def rules(memory: ExpeL) -> list[str]:
    """Return the rules that are left, in the order they came."""
    items = sorted(memory.content().items.values(), key=lambda item: item.order_index)
    return [item.text for item in items if item.type == "strategic"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Votes(), ["a", "b", "c", "d"]),
        (Votes(floor=1), ["a", "c", "d"]),
        (Votes(floor=2), ["c"]),
        (Votes(floor=5), []),
        (Votes(limit=3), ["a", "c", "d"]),
        (Votes(limit=2), ["c", "d"]),
        (Votes(floor=1, limit=1), ["c"]),
        (Votes(limit=0), []),
    ],
)
def test_votes_when_few_or_too_many_are_voted_on_forget_the_least_voted(
    policy: Votes, expected: list[str]
) -> None:
    """Of equals the oldest go; what nobody can vote on, trajectories, is left alone."""
    memory = judged(policy, a=2, b=1, c=5, d=2)
    trajectories = len(memory.content().items) - 4
    memory.manage()
    assert rules(memory) == expected
    assert len(memory.content().items) == trajectories + len(expected)


def test_policies_when_put_together_judge_what_the_one_before_left() -> None:
    """Their order matters, and each removal gives its own reason."""
    removed: dict[str, list[tuple[str, str]]] = {}
    for name, policies in {
        "rate first": (SuccessRate(), Capacity(limit=1)),
        "capacity first": (Capacity(limit=1), SuccessRate()),
    }.items():
        memory = forgetful()
        learn(memory, "a", "b")
        use(memory, False, False, name="b")
        delta = forgetful(*policies, store=memory.store).manage()
        removed[name] = [(each.id, each.reason) for each in delta if isinstance(each, Remove)]
    low, old = "success rate 0.250 in 2 uses", "over the capacity of 1"
    assert removed == {
        "rate first": [("b/lessons", low)],
        "capacity first": [("a/lessons", old), ("b/lessons", low)],
    }


def test_policy_when_the_provider_prunes_itself_sees_what_that_has_left() -> None:
    """The provider's own capacity comes first, in the same delta."""
    settings = ExpeLSettings(max_insights=2, max_trajectories=2, forgetting=(Capacity(limit=3),))
    memory = ExpeL(InMemoryStore(), settings=settings)
    learn(memory, "a")
    log = [memory.file(make_episode(name, task=name)) for name in ("b", "c")]
    gone = [[each.id for each in delta if isinstance(each, Remove)] for delta in log]
    assert gone == [["a/insight"], ["a/trajectory", "b/insight"]]
    assert not memory.manage()


uses = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([True, False, None])), max_size=12)


def played(policies: Sequence[Forgetting], listed: list[Use]) -> tuple[Any, list[MemoryDelta]]:
    """Build a bank of four items and use them; upkeep is still due."""
    memory = forgetful()
    log = [memory.file(make_episode(name, task=name)) for name in ("a", "b", "c", "d")]
    for which, end in listed:
        log += use(memory, end, name="abcd"[which])
    return forgetful(*policies, store=memory.store), log


@given(policies=st.lists(st.sampled_from(POLICIES), max_size=3), listed=uses)
def test_upkeep_when_dry_says_what_it_would_do_and_does_nothing(
    policies: list[Forgetting], listed: list[Use]
) -> None:
    """The dry run is the delta of the run, which folds with all others and is done then."""
    memory, log = played(policies, listed)
    before = memory.content().to_bytes()
    dry = memory.manage(dry_run=True)
    assert memory.content().to_bytes() == before
    assert memory.manage() == dry
    assert memory.manage() == MemoryDelta()
    assert fold([*log, dry]).to_bytes() == memory.content().to_bytes()
    assert all(isinstance(change, Remove) for change in dry)


async def test_upkeep_when_asynchronous_is_the_same() -> None:
    """Sync and async are the same logic, dry or not."""
    memory, _ = played([SuccessRate(), Capacity(limit=2)], [(3, False), (3, False)])
    dry = memory.manage(dry_run=True)
    assert dry
    assert await memory.amanage(dry_run=True) == dry
    assert await memory.amanage() == dry


@given(
    policies=st.lists(st.sampled_from(POLICIES), min_size=1, max_size=3),
    listed=uses,
    shuffled=st.permutations(["a/lessons", "b/lessons", "c/lessons", "d/lessons"]),
)
def test_policies_when_the_store_lists_items_in_another_order_forget_the_same(
    policies: list[Forgetting], listed: list[Use], shuffled: list[str]
) -> None:
    """What goes, and in which order, is a function of the content alone."""
    memory, _ = played(policies, listed)
    content = memory.content()
    other = BankContent(
        {name: content.items[name] for name in shuffled}, content.notes, content.state
    )
    assert forgotten(policies, other) == forgotten(policies, content)
    assert [entry.item.order_index for entry in noted_items(other)] == [0, 1, 2, 3]


def test_items_when_imported_are_judged_by_what_they_do_here(tmp_path: Path) -> None:
    """Notes stay behind, and with them what an item did elsewhere."""
    path = tmp_path / "bank.jsonl"
    donor = forgetful()
    learn(donor, "a", "b")
    use(donor, False, False, False, name="a")
    donor.export_items(path)
    target = forgetful(SuccessRate(), FrequencyUtility(min_uses=1))
    delta = target.import_items(path)
    assert left(target) == ["a", "b"]
    assert target.content().notes == {}
    assert fold([delta]) == target.content()
    use(target, False, False, name="a")
    assert left(target) == ["b"]


def test_import_when_beyond_a_capacity_shows_what_was_forgotten(tmp_path: Path) -> None:
    """The pruning is part of the import's delta."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item(f"{number}", order_index=number) for number in range(5)])
    memory = forgetful(Capacity(limit=2, buffer=1))
    delta = memory.import_items(path)
    gone = [change.id for change in delta if isinstance(change, Remove)]
    assert gone == ["0", "1", "2"]
    assert fold([delta]) == memory.content()


def test_policies_when_plain_are_those_of_the_models_and_described() -> None:
    """Plans name a policy and its numbers; the architecture tells them apart."""
    plain: list[dict[str, Any]] = [
        {"policy": "capacity", "limit": 100, "buffer": 20},
        {"policy": "frequency_utility"},
        {"policy": "votes"},
        {"policy": "success_rate", "below": 0.2},
    ]
    memory = make_provider("insight", InMemoryStore(), settings={"forgetting": plain})
    assert memory.settings.forgetting == (
        Capacity(limit=100, buffer=20),
        FrequencyUtility(),
        Votes(),
        SuccessRate(below=0.2),
    )
    described = memory.describe()["settings"]
    assert isinstance(described, dict)
    assert described["forgetting"] == [
        {"policy": "capacity", "limit": 100, "buffer": 20},
        {"policy": "frequency_utility", "min_uses": 5, "below": 0.5},
        {"policy": "votes", "floor": 0, "limit": None},
        {"policy": "success_rate", "below": 0.2, "min_uses": 1},
    ]
    assert memory.architecture != InsightMemory(InMemoryStore()).architecture


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"policy": "capacity"}, "limit: field required"),
        ({"policy": "capacity", "limit": -1}, "limit: input should be greater than or equal to 0"),
        ({"policy": "frequency_utility", "below": 0}, "below: input should be greater than 0"),
        ({"policy": "success_rate", "below": 1}, "below: input should be less than 1"),
        ({"policy": "success_rate", "min_uses": 0}, "min_uses: input should be greater than"),
        ({"policy": "votes", "limit": -1}, "limit: input should be greater than or equal to 0"),
        ({"policy": "oldest"}, "'capacity', 'frequency_utility', 'votes', 'success_rate'"),
        ({"limit": 3}, "forgetting.0: "),
    ],
)
def test_policy_when_wrong_is_refused_in_a_line(policy: dict[str, Any], said: str) -> None:
    """The line says which policy, which number, and what is wrong with it."""
    with pytest.raises(
        SettingsError, match="provider 'insight': InsightSettings: forgetting"
    ) as caught:
        provider_settings("insight", {"forgetting": [policy]})
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
