"""The memory systems of memory-transplants and the baselines, at their edges."""

import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from dict_store import DictStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, episodes, make_episode, texts

from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.model import BLOCK_START, Episode, Lesson, Outcome, Receipt, Step
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider, provider_settings
from langgraft.memory.recall import OVER_BUDGET, OVER_SHARE, Budget

NAMES = ("agent_kb", "full_history", "lightweight", "recency", "self_examples", "simple_rag")
BUDGETS = st.builds(
    Budget,
    st.none() | st.integers(0, 120),
    st.sampled_from([len, lambda text: len(set(text)), lambda t: zlib.crc32(t.encode()) % 150]),
)
START = asking(episode_index=0)

# Each example makes its own stores; the fixture around it only names the provider.
examples = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of each provider in plans."""
    return str(request.param)


def memory_of(name: str, store: BaseStore | None = None, **fields: Any) -> MemoryProvider[Any]:
    """Make a provider as a plan does."""
    return make_provider(name, InMemoryStore() if store is None else store, settings=fields)


@pytest.mark.parametrize("budget", [None, Budget(tokens=0), Budget(tokens=400)])
def test_bank_when_empty_recalls_nothing(name: str, budget: Budget | None) -> None:
    """There is no block, and nothing was dropped."""
    recall = memory_of(name).provide("open the red door", START, budget)
    assert (recall.text, recall.items, recall.dropped, recall.tokens) == ("", (), (), 0)


@examples
@given(listed=st.lists(episodes(), max_size=5), query=texts, budget=BUDGETS)
def test_budget_when_counted_in_any_way_is_never_exceeded(
    name: str, listed: list[Episode], query: str, budget: Budget
) -> None:
    """By a counter that does not add up as well; what is dropped is dropped for that."""
    memory = memory_of(name)
    for episode in listed:
        memory.file(episode)
    before = memory.content().to_bytes()
    recall = memory.provide(query, START, budget)
    assert memory.content().to_bytes() == before
    assert recall.tokens == (budget.count(recall.text) if recall.text else 0)
    assert recall.text.count(BLOCK_START) == bool(recall.items)
    if budget.tokens is None:
        assert recall.dropped == ()
    else:
        assert recall.tokens <= budget.tokens
    assert {each.reason for each in recall.dropped} <= {OVER_BUDGET, OVER_SHARE}


def test_item_when_larger_than_the_budget_is_dropped_and_not_cut(name: str) -> None:
    """What fits is taken whole; words are never cut."""
    memory = memory_of(name)
    for identity, lesson in (("small", "walk on"), ("large", "walk on and on " * 300)):
        steps = (Step("", lesson, ""),)
        memory.file(make_episode(identity, lessons=(Lesson(lesson),), steps=steps))
    recall = memory.provide("open the red door", START, Budget(tokens=100))
    assert [item.episode_id for item in recall.items] == ["small"]
    assert recall.items[0].text in recall.text
    assert [each.id.partition("/")[0] for each in recall.dropped] == ["large"]


@examples
@given(listed=st.lists(episodes(), max_size=9), query=texts)
def test_memory_when_kept_in_a_users_store_does_the_same(
    name: str, listed: list[Episode], query: str
) -> None:
    """Whatever order a store lists in, and however short its pages are."""
    here, there = memory_of(name), memory_of(name, DictStore())
    for episode in listed:
        assert here.file(episode) == there.file(episode)
        assert here.manage() == there.manage()
    assert here.content() == there.content()
    for question in (query, *(episode.task for episode in listed[:2])):
        assert here.provide(question, START) == there.provide(question, START)


def test_same_task_when_excluded_is_not_recalled_and_costs_no_slot(name: str) -> None:
    """The bank holds it, and others are recalled in its place."""
    limit: dict[str, Any] = {"recency": {"examples": 2}, "full_history": {}}.get(name, {"top_k": 2})
    memory = memory_of(name, same_task="exclude", **limit)
    allowing = memory_of(name, memory.store, **limit)
    for number in range(6):
        task = "asked" if number > 1 else f"t{number}"
        memory.file(make_episode(f"e{number}", task_id=task))
    context = asking(task_id="asked", episode_index=0)
    query = "open the red door"
    assert {item.task_id for item in memory.provide(query, context).items} == {"t0", "t1"}
    assert "asked" in {item.task_id for item in allowing.provide(query, context).items}


def test_settings_when_described_build_the_same_provider_again(name: str) -> None:
    """An architecture goes through a plan and back."""
    memory = memory_of(name, credit=True, same_task="exclude")
    described = memory.describe()
    again = make_provider(name, InMemoryStore(), settings=described["settings"])  # type: ignore[arg-type]
    assert again.settings == memory.settings
    assert again.architecture == memory.architecture != memory_of(name).architecture
    assert hash(again.settings) == hash(memory.settings)


def test_settings_when_they_name_a_number_below_one_are_refused(name: str) -> None:
    """Every capacity and count is at least one."""
    model = type(provider_settings(name, {}))
    counts = [field for field, info in model.model_fields.items() if info.annotation is int]
    for field in counts:
        with pytest.raises(SettingsError, match=f"{name}.*{field}"):
            provider_settings(name, {field: 0})


def test_oracle_when_not_declared_is_refused_and_declared_is_stamped(name: str) -> None:
    """What was learned from gold answers says so."""
    episode = make_episode(outcome=Outcome(success=True, feedback="oracle"))
    memory = memory_of(name)
    with pytest.raises(InputError, match="gold answers"):
        memory.file(episode)
    assert not memory.content().state
    declared = memory_of(name, feedback="oracle")
    declared.file(episode)
    (item,) = declared.content().items.values()
    assert item.metadata == {"feedback": "oracle"}


LONE = "open \ud800"


@pytest.mark.parametrize("name", PROVIDERS)
def test_question_when_no_log_could_hold_it_is_refused_in_one_line(name: str) -> None:
    """A lone surrogate in what is asked, or in what an episode refers to, is told as such."""
    gate: dict[str, Any] = {"gate": True} if name == "agent_kb" else {}
    memory = memory_of(name, **gate)
    memory.file(make_episode("first"))
    context = asking(stage="debug", observation="ValueError: x", draft=LONE)
    refers = make_episode(
        "second", resolves=(LONE,), recalls=(Receipt(LONE, "", 0, (LONE,), (), 0),)
    )
    nowhere = replace(context, episode_id=LONE)
    refused: list[Callable[[], object]] = [
        lambda: memory.provide(LONE, context),
        lambda: memory.provide("open", nowhere),
    ]
    for call in refused:
        with pytest.raises(InputError, match=r"\Awhat episode .* lone surrogate.*\Z"):
            call()
    with suppress(InputError):  # some refuse, and others have no use for what it is
        memory.draft_questions("open", context)
    with suppress(InputError):
        memory.file(refers)


@pytest.mark.parametrize("name", ["agent_kb", "expel", "insight", "lightweight", "simple_rag"])
@pytest.mark.parametrize("granularity", ["aggregate", "adaptive"])
def test_items_when_rules_wrote_their_lessons_say_so(name: str, granularity: str) -> None:
    """What stood in for a model is not mistaken for one, wherever the item goes."""
    fields: dict[str, Any] = {"granularity": granularity} if name == "insight" else {}
    memory = memory_of(name, **fields)
    stood_in = Lesson("look around", "you are lost", by="rules")
    memory.file(make_episode("by rules", lessons=(stood_in,)))
    memory.file(make_episode("by a model"))
    items = [item for item in memory.content().items.values() if "look around" in item.text]
    written = {item.id: item.metadata.get("by") for item in items if item.type != "operational"}
    assert {by for name, by in written.items() if name.startswith("by rules")} == {"rules"}
    assert {by for name, by in written.items() if name.startswith("by a model")} == {None}
