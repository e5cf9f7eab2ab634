"""Facts: extracted with the words they stand in, judged, and merged when nobody waits."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from fact_answers import FACTS, shares
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore
from memory_cases import make_episode

from langgraft import FactMemory, FactSettings, MemoryMiddleware, with_memory
from langgraft._core.canonical import JSON
from langgraft.benchmarks.simulated.fact_histories import SimulatedNotary
from langgraft.memory.facts import Attribute, Fact
from langgraft.memory.model import Question, Step
from langgraft.nodes import consolidate, extract_facts_node
from langgraft.nodes.dialogue import run_dialogue
from langgraft.nodes.extract import MAX_FACTS, Extracted, extracting
from langgraft.nodes.judge import answer

TOLD: dict[str, Any] = {
    "subject": "user",
    "attribute": "city",
    "value": "Oslo",
    "quote": "I moved to  Oslo",
    "turn": 0,
}
EPISODE = replace(
    make_episode("a", task="Yesterday I moved to Oslo, with Rex."),
    steps=(
        Step("", "", ""),
        Step("", "You may like Lima.", "Rex is a dog."),
        Step("", "Noted.", ""),
    ),
    at="2026-03-02",
)


def extract(*replies: Any, attributes: Sequence[Attribute] = ()) -> Extracted:
    """Extract with a model that says these things."""
    said = [each if isinstance(each, str) else json.dumps(each) for each in replies]
    return run_dialogue(extracting(EPISODE, attributes), FakeListChatModel(responses=said))


def test_facts_when_extracted_say_who_said_them_in_which_words_and_when() -> None:
    """The speaker is read off the turn that holds the words, whatever turn a model names."""
    dog = {**TOLD, "subject": "Rex", "attribute": "kind", "value": "dog", "quote": "rex is a dog."}
    found = extract([TOLD, dog, {**dog, "since": "2026-03-01", "kind": "Fact"}])
    first, second, third = found.facts
    assert (first.said_by, first.turn, first.quote) == ("user", 0, "I moved to  Oslo")
    assert (second.said_by, second.turn) == ("tool", 1)
    assert third.since == "2026-03-01"
    assert (found.why, found.calls) == ("ok", 1)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"quote": "I moved to Lima"}, "stands in no turn"),
        ({"since": "last May"}, "is a moment such as"),
        ({"value": ""}, "at least 1 character"),
        ({"kind": "rumor"}, "'fact' or 'preference'"),
    ],
)
def test_fact_when_it_is_not_borne_out_or_malformed_is_sent_back_and_left_out(
    bad: dict[str, str], why: str
) -> None:
    """Words that nobody said are none: a model may have made them up, or was told to."""
    found = extract([TOLD, {**TOLD, **bad}], [TOLD, {**TOLD, **bad}])
    assert [fact.value for fact in found.facts] == ["Oslo"]
    assert why in found.why
    assert found.calls == 2


def test_extraction_when_it_fails_gives_no_facts_and_says_why() -> None:
    """Nothing is made up by rules."""
    assert extract("I cannot.", "No.").facts == ()
    none = run_dialogue(extracting(EPISODE), None)
    assert (none.facts, none.calls) == ((), 0)
    assert len(extract([TOLD] * 30, [TOLD] * 30).facts) == MAX_FACTS


def test_node_when_run_asks_with_the_names_that_settings_declare() -> None:
    """Its update holds the facts as plain JSON."""
    shown: list[str] = []

    class Watching(FakeListChatModel):
        def _call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            shown.append(messages[-1].text)
            return super()._call(messages, *args, **kwargs)

    settings = FactSettings(profile=(Attribute(name="city", description="where they live"),))
    memory = FactMemory(InMemoryStore(), settings=settings)
    node = extract_facts_node(Watching(responses=[json.dumps([TOLD])]), memory)
    state: Any = {
        "episode_id": "e",
        "domain": "chat",
        "task_id": "t",
        "instruction": EPISODE.task,
        "steps": [],
        "success": True,
        "score": 1.0,
        "reason": "",
        "lessons": [],
        "at": "2026-03-02",
    }
    update = node.invoke(state)
    assert update["extraction"] == "ok"
    assert Fact(**update["facts"][0]).value == "Oslo"
    assert '"means": "where they live"' in shown[0]
    assert "2026-03-02" in shown[0]


def relations(*answers: Any) -> list[tuple[str, str | None, str]]:
    """Ask what a new city does to one kept, of a model or of rules."""
    fact: dict[str, JSON] = {
        "subject": "user",
        "attribute": "city",
        "value": "Oslo",
        "several": False,
    }
    question = Question(
        "facts", "e", {"facts": {"fact-0": fact}, "kept": {"old": {**fact, "value": "Rome"}}}
    )
    model = FakeListChatModel(responses=[json.dumps(each) for each in answers]) if answers else None
    judged = answer(question, model)
    return [(verdict.action, verdict.item_id, verdict.text) for verdict in judged.verdicts]


def test_relation_when_judged_names_what_was_shown_and_rules_replace_declared_single_values() -> (
    None
):
    """An id that was not shown is refused; nothing said is that both hold."""
    entry = {"fact": "fact-0", "action": "Corrects", "id": "old"}
    assert relations([entry]) == [("corrects", "old", "fact-0")]
    assert relations([]) == []
    assert relations([{**entry, "id": "other"}], [{**entry, "id": "other"}]) == relations()
    assert relations() == [("replaces", "old", "fact-0")]


def test_consolidation_when_a_model_proposes_merges_and_when_it_fails_changes_nothing() -> None:
    """Ids of nobody, no value, no model: the bank stays as it is, byte for byte."""
    memory = FactMemory(InMemoryStore())
    for name, value in (("a", "jazz"), ("b", "jazz of the fifties")):
        memory.file(replace(make_episode(name), facts=(Fact("user", "likes", value),)))
    before = memory.content().to_bytes()
    for said in ("nonsense", "[]", '[{"ids": ["a/fact-0", "x"], "value": "y"}]'):
        assert not consolidate(memory, FakeListChatModel(responses=[said]))
    assert not consolidate(memory, None)
    assert memory.content().to_bytes() == before
    assert consolidate(memory, SimulatedNotary())
    assert [each.fact.value for each in memory.facts(at="")] == ["jazz of the fifties"]


def test_turns_when_filed_have_the_time_at_which_they_began() -> None:
    """By the application's clock, in an agent and in a chain; other memory is told no time."""
    clock = iter(datetime(2026, month, 1, tzinfo=UTC) for month in (3, 5))
    memory = FactMemory(InMemoryStore())
    notary = SimulatedNotary()
    grafted = MemoryMiddleware(memory, model=notary, now=lambda: next(clock))
    agent = create_agent(FakeListChatModel(responses=["Fine."]), tools=[], middleware=[grafted])
    agent.invoke({"messages": [HumanMessage("I moved to Rome.")]})
    chain = with_memory(
        FakeListChatModel(responses=["Fine."]), memory, model=notary, now=lambda: next(clock)
    )
    chain.invoke("I moved to Oslo.")
    held = [(each.fact.value, each.since[:10], each.until[:10]) for each in memory.facts()]
    assert held == [("Rome", "2026-03-01", "2026-05-01"), ("Oslo", "2026-05-01", "")]


def test_histories_when_they_contradict_themselves_are_answered_right_of_now_and_of_then() -> None:
    """The acceptance measurement in small; notes found by likeness alone are far behind."""
    found = shares([3])
    assert found[FACTS].least() >= 0.95
    assert max(found[name].least() for name in ("most similar note", "latest note")) < 0.6
