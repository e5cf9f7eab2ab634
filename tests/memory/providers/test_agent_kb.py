"""`AgentKB`: two stages, and the gate."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, item_types, make_episode, make_item, texts

from langgraft.memory.bank_format import write_items
from langgraft.memory.model import Dropped, ItemType, Outcome, Question, Verdict
from langgraft.memory.providers import AgentKB, AgentKBSettings
from langgraft.memory.recall import CONTRADICTS, RecallContext

QUERY = "open the red door"


def memory_with(**fields: object) -> AgentKB:
    """Make a provider with settings."""
    return AgentKB(InMemoryStore(), settings=AgentKBSettings.model_validate(fields))


def filled(*endings: bool | None, **fields: object) -> AgentKB:
    """Make a provider that has taken in episodes which ended so."""
    memory = memory_with(**fields)
    for number, success in enumerate(endings):
        memory.file(make_episode(f"e{number}", outcome=Outcome(success)))
    return memory


def recalled(memory: AgentKB, context: RecallContext | None = None) -> list[str]:
    """Return the episodes recalled, best first."""
    return [item.episode_id for item in memory.provide(QUERY, context or asking()).items]


def drafting(draft: str = "I push it", **fields: Any) -> RecallContext:
    """Make the context of an agent with a draft."""
    return asking(draft=draft, stage="draft", **fields)


def against(question: Question, *names: str) -> tuple[Verdict, ...]:
    """Answer a question: these contradict the draft."""
    return tuple(Verdict(question.id, "contradicts", name) for name in names)


@pytest.mark.parametrize(("closer", "expected"), [(1, "useful"), (2, "close1")])
def test_candidates_when_found_are_twice_as_many_as_items(closer: int, expected: str) -> None:
    """The first stage alone decides who may be reranked (App. B: twice top-k)."""
    memory = memory_with(top_k=1, recency_weight=0.5)
    memory.file(make_episode("useful", task="open a door of any kind"))
    for number in range(closer):
        memory.file(make_episode(f"close{number}", outcome=Outcome(success=False)))
    assert recalled(memory) == [expected]
    wider = AgentKB(memory.store, settings=AgentKBSettings(top_k=3, recency_weight=0.5))
    assert recalled(wider)[0] == "useful"


@given(
    endings=st.lists(st.tuples(st.booleans(), item_types), min_size=1, max_size=8),
    weights=st.tuples(*[st.sampled_from([0.0, 0.3, 1.0, 2.5])] * 3),
    wanted=st.none() | item_types,
)
def test_scores_when_reranked_are_the_weighted_sum(
    endings: list[tuple[bool, ItemType]],
    weights: tuple[float, float, float],
    wanted: ItemType | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Success, type and recency, each in [0, 1] and by its weight; ties by the first stage."""
    path = tmp_path_factory.mktemp("bank") / "bank.jsonl"
    listed = [
        make_item(f"i{n}", success=success, type=kind, key=QUERY, order_index=n)
        for n, (success, kind) in enumerate(endings)
    ]
    write_items(path, listed)
    names = ("success_weight", "type_weight", "recency_weight")
    memory = memory_with(top_k=8, **dict(zip(names, weights, strict=True)))
    memory.import_items(path)
    recall = memory.provide(QUERY, asking(type=wanted))
    last = len(listed) - 1
    expected = {
        item.id: weights[0] * (item.success is True)
        + weights[1] * (item.type == wanted)
        + weights[2] * (n / last if last else 1.0)
        for n, item in enumerate(listed)
    }
    assert dict(
        zip((item.id for item in recall.items), recall.scores, strict=True)
    ) == pytest.approx(expected, abs=1e-9)
    ranks = [
        (-score, -item.order_index) for item, score in zip(recall.items, recall.scores, strict=True)
    ]
    assert ranks == sorted(ranks)


def test_recency_when_the_bank_is_pruned_goes_by_what_is_left() -> None:
    """The oldest item that is there has 0, the newest 1."""
    memory = filled(*[False] * 30, max_items=3, success_weight=0.0, type_weight=0.0)
    recall = memory.provide(QUERY, asking())
    assert recall.scores == (1.0, 0.5, 0.0)
    assert [item.episode_id for item in recall.items] == ["e29", "e28", "e27"]


def test_capacity_when_not_given_is_the_papers() -> None:
    """220 notes, of the last episodes (memory-transplants §4.2)."""
    memory = memory_with()
    for number in range(224):
        memory.file(make_episode(f"e{number}"))
        assert len(memory.content().items) <= 220
    kept = {item.episode_id for item in memory.content().items.values()}
    assert kept == {f"e{number}" for number in range(4, 224)}


def test_needs_when_the_gate_is_on_include_a_draft() -> None:
    """A draft and a judgment cost model calls, and are not asked for idly."""
    assert memory_with().needs == {"lessons"}
    assert memory_with(gate=True).needs == {"lessons", "draft"}


@pytest.mark.parametrize(
    ("gate", "draft", "episodes"), [(False, "push", 2), (True, " \n", 2), (True, "push", 0)]
)
def test_gate_when_there_is_nothing_to_compare_asks_nothing(
    gate: bool, draft: str, episodes: int
) -> None:
    """No gate, no draft or no candidates: no question, and nothing is left out."""
    memory = filled(*[True] * episodes, gate=gate)
    context = drafting(draft)
    assert memory.draft_questions(QUERY, context) == []
    assert len(recalled(memory, context)) == episodes


def test_gate_when_asked_shows_draft_and_candidates_and_is_answered_once() -> None:
    """One question with all candidates by id; answered, it is not listed again."""
    memory = filled(True, False, True, gate=True, top_k=2)
    before = memory.content().digest
    (question,) = memory.draft_questions(QUERY, drafting())
    assert (question.kind, question.episode_id) == ("contradiction", "asking")
    texts_by_id = {item.id: item.text for item in memory.content().items.values()}
    assert question.shows == {"task": QUERY, "draft": "I push it", "candidates": texts_by_id}
    answered = drafting(verdicts=(Verdict(question.id, "none"),))
    assert memory.draft_questions(QUERY, answered) == []
    assert recalled(memory, answered) == recalled(memory)
    assert memory.content().digest == before


async def test_gate_when_asked_asynchronously_asks_the_same() -> None:
    """Sync and async are the same logic."""
    memory = filled(True, False, gate=True)
    context = drafting()
    questions = memory.draft_questions(QUERY, context)
    assert await memory.adraft_questions(QUERY, context) == questions
    context = replace(context, verdicts=against(questions[0], "e1/note"))
    assert await memory.aprovide(QUERY, context) == memory.provide(QUERY, context)


def test_gate_when_candidates_contradict_drops_them_and_fills_their_slots() -> None:
    """What was left out is on the receipt, with the reason."""
    memory = filled(True, True, True, True, gate=True, top_k=2)
    assert recalled(memory, drafting()) == ["e3", "e2"]
    (question,) = memory.draft_questions(QUERY, drafting())
    context = drafting(verdicts=against(question, "e3/note", "e1/note"))
    recall = memory.provide(QUERY, context)
    assert [item.episode_id for item in recall.items] == ["e2", "e0"]
    assert recall.dropped == recall.receipt.dropped
    assert recall.dropped == (Dropped("e3/note", CONTRADICTS), Dropped("e1/note", CONTRADICTS))


def test_verdicts_when_they_answer_another_question_are_ignored() -> None:
    """Another draft, other candidates, another action or an unknown item: nothing is dropped."""
    memory = filled(True, True, gate=True)
    (question,) = memory.draft_questions(QUERY, drafting())
    verdicts = against(question, "e0/note")
    assert recalled(memory, drafting(verdicts=verdicts)) == ["e1"]
    assert recalled(memory, drafting("I pull it", verdicts=verdicts)) == ["e1", "e0"]
    others = (Verdict(question.id, "agrees", "e0/note"), *against(question, "never there"))
    others += (Verdict(question.id, "contradicts"),)
    recall = memory.provide(QUERY, drafting(verdicts=others))
    assert ([item.episode_id for item in recall.items], recall.dropped) == (["e1", "e0"], ())
    memory.file(make_episode("new"))
    assert recalled(memory, drafting(verdicts=verdicts)) == ["new", "e1", "e0"]
    assert len(memory.draft_questions(QUERY, drafting(verdicts=verdicts))) == 1


@given(draft=texts, task=texts)
def test_gate_when_texts_are_hostile_finds_its_own_question_again(draft: str, task: str) -> None:
    """What is asked and what is answered is the same question, whatever is in it."""
    memory = memory_with(gate=True)
    memory.file(make_episode("e", task=f"{task} door"))
    context = drafting(draft)
    for question in memory.draft_questions("door", context):
        context = replace(context, verdicts=against(question, "e/note"))
        assert not memory.provide("door", context)
        assert memory.draft_questions("door", context) == []


def test_bank_when_two_thousand_texts_are_equal_recalls_the_newest(tmp_path: Path) -> None:
    """The first stage takes the newest of equals, and so does the second."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item(f"i{n}", text="open it", order_index=n) for n in range(2_000)])
    memory = memory_with(max_items=2_000, top_k=2)
    memory.import_items(path)
    recall = memory.provide("open", asking())
    assert [item.id for item in recall.items] == ["i1999", "i1998"]
    assert recall.scores[0] == 2.0
