"""`SimpleRAG`: what a note says, and by what it is found."""

from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item

from langgraft.memory.bank_format import write_items
from langgraft.memory.model import Episode, Lesson, MemoryItem, Outcome, Step
from langgraft.memory.providers import SimpleRAG, SimpleRAGSettings
from langgraft.memory.recall import Budget


def noted(episode: Episode) -> MemoryItem:
    """Return the note of an episode."""
    memory = SimpleRAG(InMemoryStore())
    memory.file(episode)
    (item,) = memory.content().items.values()
    return item


def test_note_when_lessons_were_drawn_tells_task_ending_and_lessons() -> None:
    """The lessons stand for what happened."""
    item = noted(make_episode("e1"))
    assert item.text.splitlines() == [
        "Task: open the red door",
        "Result: success (goal reached)",
        "- When you must open the red door: toggle it",
        "- look around",
    ]
    assert (item.id, item.key, item.task_id) == ("e1/note", "open the red door", "task of e1")


def test_note_when_the_task_and_the_last_turn_are_long_leaves_out_their_middles() -> None:
    """Problems of contests are longer than a budget of 400 tokens; what finds the note is whole."""
    task = "Given n numbers. " * 100
    episode = make_episode(lessons=(), steps=(Step("so " * 400, "print(42)\n", ""),), task=task)
    item = noted(episode)
    assert len(item.text) < 900
    assert item.text.startswith("Task: Given n numbers.")
    assert item.text.count("characters left out") == 2
    assert item.key == task


def test_recall_when_the_best_have_no_room_gives_the_first_that_fit() -> None:
    """A budget that long notes exceed is filled with shorter ones further down the ranking."""
    memory = SimpleRAG(InMemoryStore(), settings=SimpleRAGSettings(top_k=2))
    for number in range(9):
        lesson = Lesson("long " * 300 if number > 3 else f"short {number}")
        memory.file(make_episode(f"e{number}", lessons=(lesson,)))
    recall = memory.provide("open the red door", asking(), Budget(400))
    assert [item.id for item in recall.items] == ["e3/note", "e2/note"]
    assert [drop.id for drop in recall.dropped] == [f"e{n}/note" for n in (8, 7, 6, 5, 4)]
    unlimited = memory.provide("open the red door", asking(), Budget(None))
    assert [item.id for item in unlimited.items] == ["e8/note", "e7/note"]
    assert unlimited.dropped == ()


def test_note_when_there_are_no_lessons_tells_what_the_agent_did_last() -> None:
    """The last turn of the agent, which is its answer, and nothing that the world said."""
    steps = (
        Step("", "", "What is 2 + 2?"),
        Step("I add", "5", "wrong"),
        Step("I count", "4", "a long page of output"),
        Step("", "", "the end"),
    )
    episode = make_episode(lessons=(), steps=steps, task="2 + 2", outcome=Outcome(success=True))
    assert noted(episode).text.splitlines() == [
        "Task: 2 + 2",
        "Result: success",
        "Thought: I count",
        "Action: 4",
    ]


@pytest.mark.parametrize(
    ("outcome", "line", "kind"),
    [
        (Outcome(success=True), "Result: success", "strategic"),
        (Outcome(success=False, reason="out of rounds"), "Result: failure (out of rounds)", None),
        (Outcome(None, reason="cut off"), "Result: not known (cut off)", "other"),
        (Outcome(None), None, "other"),
    ],
)
def test_note_when_an_episode_ends_says_how_as_far_as_is_known(
    outcome: Outcome, line: str | None, kind: str | None
) -> None:
    """A result that nobody knows is not made up."""
    item = noted(make_episode(outcome=outcome, lessons=(Lesson("walk on"),)))
    lines = ["Task: open the red door", line, "- walk on"]
    assert item.text.splitlines() == [each for each in lines if each]
    assert item.type == (kind or "error_trace")
    assert item.success is outcome.success


def test_note_when_nothing_happened_is_the_task_alone() -> None:
    """No line is empty."""
    episode = make_episode(lessons=(), steps=(), outcome=Outcome(None))
    assert noted(episode).text == "Task: open the red door"


def test_items_when_words_are_shared_rank_by_how_many_and_then_by_age() -> None:
    """Term overlap, each word once; of equals the newest first; without a shared word, nothing."""
    memory = SimpleRAG(InMemoryStore(), settings=SimpleRAGSettings(top_k=3))
    for name, task in (
        ("one", "the red red red key"),
        ("two", "open the blue chest"),
        ("three", "open a red box of many things"),
        ("none", "go away"),
        ("more", "open the red door"),
    ):
        memory.file(make_episode(name, task=task))
    recall = memory.provide("open the red chest", asking())
    assert [item.episode_id for item in recall.items] == ["more", "two", "three"]
    assert recall.scores == (3.0, 3.0, 2.0)
    assert recall.receipt.tied == 2
    assert not memory.provide("sing", asking())


@pytest.mark.parametrize(("ties", "first"), [("newest", "i1999"), ("oldest", "i0000")])
def test_bank_when_two_thousand_texts_are_equal_orders_them_as_stated(
    ties: str, first: str, tmp_path: Path
) -> None:
    """The order of equals is a setting, and all of them are counted."""
    path = tmp_path / "bank.jsonl"
    listed = [make_item(f"i{n:04}", text="open it", order_index=n) for n in range(2_000)]
    write_items(path, listed)
    ranker = {"ranker": "term_overlap", "ties": ties}
    settings = SimpleRAGSettings.model_validate({"max_items": 2_000, "ranker": ranker})
    memory = SimpleRAG(InMemoryStore(), settings=settings)
    memory.import_items(path)
    recall = memory.provide("open", asking())
    assert recall.items[0].id == first
    assert (len(recall.items), recall.receipt.tied) == (5, 2_000)


def test_capacity_when_not_given_is_the_papers() -> None:
    """Two hundred notes, of the last episodes (memory-transplants §4.2)."""
    memory = SimpleRAG(InMemoryStore())
    for number in range(205):
        memory.file(make_episode(f"e{number}"))
        assert len(memory.content().items) <= 200
    kept = {item.episode_id for item in memory.content().items.values()}
    assert kept == {f"e{number}" for number in range(5, 205)}
