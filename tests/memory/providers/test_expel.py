"""`ExpeL` as memory-transplants simplifies it: what it keeps, recalls, prunes and imports."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, episodes, make_episode, make_item, texts

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import SettingsError
from langgraft.memory.bank_format import write_items
from langgraft.memory.model import Dropped, Lesson, MemoryDelta, Outcome, Step, fold
from langgraft.memory.providers import (
    ExpeL,
    ExpeLSettings,
    VoteSettings,
    make_provider,
    provider_settings,
)
from langgraft.memory.rankers import BM25
from langgraft.memory.recall import OVER_SHARE, Budget, render_block

TASK = "open the red door"


def expel(**settings: Any) -> ExpeL:
    """Make a provider with settings."""
    return ExpeL(InMemoryStore(), settings=ExpeLSettings.model_validate(settings))


def test_episode_when_taken_in_leaves_an_insight_and_a_trajectory() -> None:
    """The insight holds all lessons and is found by them, the trajectory by its task."""
    memory = expel()
    memory.file(make_episode("e1"))
    insight, trajectory = memory.content().items.values()
    assert (insight.id, insight.type, insight.order_index) == ("e1/insight", "strategic", 0)
    assert insight.text == "- When you must open the red door: toggle it\n- look around"
    assert insight.retrieval_key == insight.text
    assert (trajectory.id, trajectory.type) == ("e1/trajectory", "operational")
    assert trajectory.retrieval_key == TASK
    assert trajectory.text.splitlines()[0] == f"Task: {TASK}"
    assert memory.needs == {"lessons"}
    assert memory.questions(make_episode("e2")) == []


def test_episode_when_no_lesson_was_drawn_leaves_an_insight_by_rules() -> None:
    """Memory calls no model that could draw one: it says what a note says, and who says it."""
    memory = expel(part_characters=8)
    memory.file(make_episode("e1", task="open the red door", lessons=()))
    insight, trajectory = memory.content().items.values()
    assert insight.text.splitlines()[:2] == ["Task: open the", "Result: success (goal reached)"]
    assert (insight.type, insight.key, insight.metadata) == ("strategic", None, {"by": "rules"})
    assert trajectory.id == "e1/trajectory"


def test_trajectory_when_it_may_have_so_many_characters_has_no_more() -> None:
    """Its share of a small budget has room for it, and it ends as it ended."""
    memory = expel(trajectory_characters=300)
    steps = (Step("", "", "long " * 400), Step("so", "answer 42", ""))
    memory.file(make_episode("e1", task="a problem " * 200, steps=steps))
    item = memory.content().items["e1/trajectory"]
    assert len(item.text) <= 300
    assert item.text.startswith("Task: a problem")
    assert item.text.endswith("Action: answer 42\nResult: success")
    assert item.key == "a problem " * 200


def test_items_when_rules_stood_in_or_nobody_could_judge_say_so() -> None:
    """What is not as it seems is labelled in metadata that travels along."""
    memory = expel()
    lesson = Lesson("look around", by="rules")
    memory.file(make_episode("e1", lessons=(lesson,), outcome=Outcome(None)))
    insight, trajectory = memory.content().items.values()
    assert insight.metadata == {"by": "rules"}
    assert (insight.success, trajectory.success) == (None, None)


def test_insight_when_lessons_are_of_another_type_is_strategic_all_the_same() -> None:
    """The type says which of the two an item is."""
    memory = expel()
    memory.file(make_episode("e1", lessons=(Lesson("mind the step", type="error_trace"),)))
    assert memory.content().items["e1/insight"].type == "strategic"


def test_capacities_when_exceeded_forget_the_oldest_of_each_kind() -> None:
    """Insights and trajectories are pruned by themselves, first in first out."""
    memory = expel(max_insights=2, max_trajectories=3)
    for number in range(5):
        lessons = () if number == 4 else (Lesson(f"lesson {number}"),)
        memory.file(make_episode(f"e{number}", lessons=lessons))
    assert sorted(memory.content().items) == [
        "e2/trajectory",
        "e3/insight",
        "e3/trajectory",
        "e4/insight",
        "e4/trajectory",
    ]


def test_recall_when_both_kinds_match_gives_insights_first_by_score() -> None:
    """Each kind is ranked against the query by itself, up to its own number."""
    memory = expel(top_k=2, top_k_trajectories=1)
    for number in range(4):
        memory.file(make_episode(f"e{number}", lessons=(Lesson(f"{TASK} {number}"),)))
    recall = memory.provide(TASK, asking())
    assert [item.id for item in recall.items] == ["e3/insight", "e2/insight", "e3/trajectory"]
    assert recall.scores[0] == recall.scores[1]
    assert recall.receipt.tied == 4


def test_recall_when_the_budget_is_short_keeps_each_kind_to_its_share() -> None:
    """What insights leave of their 65 % is not given to trajectories."""
    memory = expel(top_k=5, top_k_trajectories=2)
    steps = (Step("", "", "a long walk " * 20),)
    for number in range(3):
        lessons = (Lesson(f"{TASK}, the {number} way"),)
        memory.file(make_episode(f"e{number}", lessons=lessons, steps=steps))
    unlimited = memory.provide(TASK, asking())
    assert len(unlimited.items) == 5
    recall = memory.provide(TASK, asking(), Budget(tokens=unlimited.tokens + 60))
    assert {item.type for item in recall.items} == {"strategic", "operational"}
    assert recall.dropped == (
        Dropped("e1/trajectory", OVER_SHARE),
        Dropped("e0/trajectory", OVER_SHARE),  # looked for where that one had no room
    )

    frame = Budget().count(render_block([""]))
    for tokens in range(0, unlimited.tokens + 300, 7):
        given = memory.provide(TASK, asking(), Budget(tokens=tokens))
        assert given.tokens <= tokens
        for kind, share in (("strategic", 0.65), ("operational", 0.35)):
            alone = [item.text for item in given.items if item.type == kind]
            used = Budget().count(render_block(alone)) - frame if alone else 0
            assert used <= share * max(tokens - frame, 0)


def test_recall_when_there_is_nothing_or_no_room_is_empty() -> None:
    """An empty bank, no budget and a query that says nothing recall nothing."""
    memory = expel()
    assert not memory.provide(TASK, asking()).text
    memory.file(make_episode("e1"))
    recall = memory.provide(TASK, asking(), Budget(tokens=0))
    assert (recall.items, recall.text, recall.tokens) == ((), "", 0)
    assert {drop.id for drop in recall.dropped} == {"e1/insight", "e1/trajectory"}
    assert not memory.provide(" ", asking()).items


def test_recall_when_the_same_task_is_excluded_fills_its_slots_with_others() -> None:
    """A filter, and no gap where the task's own items were."""
    memory = expel(same_task="exclude", top_k=1, top_k_trajectories=1)
    for name in ("other", "same"):
        memory.file(make_episode(name, task_id=name, lessons=(Lesson(TASK),)))
    recall = memory.provide(TASK, asking(task_id="same"))
    assert [item.id for item in recall.items] == ["other/insight", "other/trajectory"]


def test_import_when_items_come_from_elsewhere_puts_each_where_its_type_belongs(
    tmp_path: Path,
) -> None:
    """Nothing but the type decides, and capacities hold at once."""
    path = tmp_path / "bank.jsonl"
    kinds = ["strategic", "operational", "error_trace", "other"] * 2
    write_items(
        path,
        [make_item(f"{n}", type=kind, key=TASK, order_index=n) for n, kind in enumerate(kinds)],
    )
    memory = expel(max_insights=1, max_trajectories=5)
    delta = memory.import_items(path)
    assert sorted(memory.content().items) == ["2", "3", "4", "5", "6", "7"]
    assert memory.content().notes == {}
    assert fold([delta]) == memory.content()
    recall = memory.provide(TASK, asking())
    assert [item.id for item in recall.items] == ["4", "7", "6"]


def test_export_when_imported_again_is_byte_for_byte_the_same(tmp_path: Path) -> None:
    """Within capacity, a bank survives the way out and in."""
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    memory, again = expel(), expel()
    for number in range(6):
        memory.file(make_episode(f"e{number}"))
    memory.export_items(first)
    again.import_items(first)
    again.export_items(second)
    assert first.read_bytes() == second.read_bytes()


@given(listed=st.lists(episodes(), max_size=6), question=texts, tokens=st.integers(0, 200))
def test_bank_when_episodes_hold_anything_keeps_its_caps_and_folds(
    listed: list[Any], question: str, tokens: int
) -> None:
    """Hostile texts change no rule: caps after upkeep, the budget, and the fold."""
    memory = expel(max_insights=2, max_trajectories=2)
    log: list[MemoryDelta] = []
    for episode in listed:
        log += [memory.file(episode)]
        kinds = [item.type == "strategic" for item in memory.content().items.values()]
        assert sum(kinds) <= 2
        assert len(kinds) - sum(kinds) <= 2
    recall = memory.provide(question, asking(), Budget(tokens=tokens))
    assert recall.tokens <= tokens
    assert fold(log).to_bytes() == memory.content().to_bytes()
    assert not memory.manage(dry_run=True)


def test_settings_when_plain_make_the_same_architecture_as_models() -> None:
    """Plans say it in plain values, and `describe` says it back."""
    plain: dict[str, Any] = {"top_k": 3, "ranker": "bm25", "votes": {"max_rules": 10}}
    memory = make_provider("expel", InMemoryStore(), settings=plain)
    same = ExpeLSettings(top_k=3, ranker=BM25(), votes=VoteSettings(max_rules=10))
    assert memory.settings == same
    assert hash(memory.settings) == hash(same)
    assert memory.architecture == ExpeL(InMemoryStore(), settings=same).architecture
    described = memory.describe()
    canonical_json(described)
    settings = described["settings"]
    assert isinstance(settings, dict)
    assert settings["votes"] == {
        "max_rules": 10,
        "full_margin": 5,
        "added": 2,
        "removal": 1,
        "removal_when_full": 3,
        "max_operations": 4,
        "success_batch": 8,
        "shown_characters": 4000,
    }
    votes_off = ExpeL(InMemoryStore()).describe()["settings"]
    assert isinstance(votes_off, dict)
    assert votes_off["votes"] is None
    assert (votes_off["max_insights"], votes_off["max_trajectories"]) == (140, 140)
    assert votes_off["insight_share"] == 0.65


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"insight_share": 1}, "insight_share: input should be less than 1 (got 1)"),
        ({"max_insights": 0}, "max_insights: input should be greater than or equal to 1"),
        ({"votes": {"max_rules": 0}}, "votes.max_rules: input should be greater than or equal"),
        ({"votes": {"rules": 5}}, "votes.rules: extra inputs are not permitted"),
        (
            {"votes": {}, "max_insights": 19},
            "votes.max_rules is 20, beyond max_insights 19",
        ),
    ],
)
def test_settings_when_wrong_are_refused_in_a_line(settings: dict[str, Any], said: str) -> None:
    """The line says which setting, and what is wrong with it."""
    with pytest.raises(SettingsError, match="provider 'expel'") as caught:
        provider_settings("expel", settings)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
