"""What is recalled for STATE-Bench's tasks, and leaks of test answers, planted ones above all."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.statebench.agents import episode_of
from langgraft.benchmarks.statebench.retrieval import (
    audit,
    file_trajectories,
    leaks_in,
    measure,
    telling_values,
)
from langgraft.environments.statebench import StateBench, Task
from langgraft.memory.model import Lesson
from langgraft.memory.providers import make_provider

pytestmark = pytest.mark.matrix  # whole studies


@pytest.fixture(scope="module")
def held_out(statebench: StateBench) -> list[Task]:
    """Return the held-out tasks."""
    return statebench.tasks(split="test")


def telling(tasks: list[Task]) -> Task:
    """Return a task whose gold state tells much."""
    return max(tasks, key=lambda task: len(telling_values(task)))


def test_measures_when_tasks_are_those_of_training_then_each_finds_itself(
    statebench: StateBench,
) -> None:
    """Unless a provider excludes what was learned at the very task."""
    tasks = statebench.tasks("travel", "train")[:30]
    for same, least, most in (("allow", 0.9, 1.0), ("exclude", 0.0, 0.0)):
        memory = make_provider("trajectory", InMemoryStore(), settings={"same_task": same})
        file_trajectories(memory, statebench, scored=False)
        found = measure(memory, statebench, tasks)
        assert found.own_task is not None
        assert least <= found.own_task <= most
        assert found.own_domain is not None
        assert found.own_domain > 0.9


def test_measures_when_tasks_are_held_out_then_tell_what_a_ranker_is_worth(
    statebench: StateBench, held_out: list[Task]
) -> None:
    """Ranked recall is of the own workflow; the latest episodes are of the domain filed last."""
    shares = {}
    for name in ("trajectory", "recency", "none"):
        memory = make_provider(name, InMemoryStore(), settings={})
        file_trajectories(memory, statebench, scored=False)
        found = measure(memory, statebench, held_out)
        assert found.queries == 150
        assert found.own_task in (0, None)
        shares[name] = found.own_kind, found.distinct, found.top
    assert shares["none"] == (None, None, None)
    kind, distinct, top = shares["trajectory"]
    other_kind, other_distinct, other_top = shares["recency"]
    assert kind > 3 * other_kind  # type: ignore[operator]
    assert distinct > 3 * other_distinct  # type: ignore[operator]
    assert other_top == 1
    assert top < 0.1  # type: ignore[operator]


def test_leaks_when_a_text_tells_the_gold_state_then_are_found(held_out: list[Task]) -> None:
    """Planted in prose, in JSON, with dollar signs and thousands; one value missing is no leak."""
    for task in held_out:
        values = sorted(telling_values(task))
        if len(values) < 3:
            continue
        planted = f"Remember: {' and $'.join(values)}."
        assert ("gold", task.id) in {(leak.kind, leak.task) for leak in leaks_in(planted, task)}
        assert [leak.kind for leak in leaks_in(json.dumps(task.requirements), task)][-1:] == [
            "gold"
        ]
        assert not leaks_in(f"Remember: {' and '.join(values[1:])}.", task)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("As in task 100-test_name: ask first.", []),
        ("Task: x\nResult: success", ["label"]),
        ("The state_requirements want expected_value 5.", ["label"]),
        ("The result: success depends on asking first.", []),
        ("Preview before you confirm.", []),
    ],
)
def test_leaks_when_a_text_tells_a_label_then_are_found(
    held_out: list[Task], text: str, kinds: list[str]
) -> None:
    """Words of the scoring, and no others."""
    assert [leak.kind for leak in leaks_in(text, held_out[0])] == kinds


def test_leaks_when_a_test_task_is_named_then_are_found(held_out: list[Task]) -> None:
    """With its domain or without."""
    task = held_out[3]
    for text in (f"Seen in {task.id}.", task.id.partition("/")[2]):
        assert [leak.kind for leak in leaks_in(text, task)] == ["task"]


@given(words=st.lists(st.text(alphabet="abcdefgh ,.\n", max_size=12)))
def test_leaks_when_a_text_holds_no_number_then_are_none(
    statebench: StateBench, words: list[str]
) -> None:
    """Advice in plain words tells no gold state."""
    text = " ".join(words)
    assert all(not leaks_in(text, task) for task in statebench.tasks("travel", "test")[:5])


def test_audit_when_one_learning_was_made_of_a_test_task_then_it_stands_out(
    statebench: StateBench, held_out: list[Task]
) -> None:
    """Among 300 real trajectories, which hold some gold values by chance and no name."""
    task = telling(held_out)
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    file_trajectories(memory, statebench, scored=False)
    by_chance = audit(memory.content().items.values(), held_out)
    assert {leak.kind for leak in by_chance} == {"gold"}
    pairs = 100 * sum(len(telling_values(each)) >= 3 for each in held_out)
    assert len(by_chance) < 0.01 * pairs
    assert task.id not in {leak.task for leak in by_chance}
    attempt = task.open()
    attempt.answer(f"The right end: {json.dumps(task.requirements)}")
    memory.file(episode_of(task, attempt.turns, name="planted"))
    planted = audit(memory.content().items.values(), held_out)
    assert {(leak.kind, leak.task) for leak in planted} - {
        (leak.kind, leak.task) for leak in by_chance
    } >= {("gold", task.id)}
    assert {leak.item for leak in planted if leak.task == task.id} == {"planted/trajectory"}


def test_audit_when_outcomes_are_by_gold_answers_then_every_item_with_one_is_told(
    statebench: StateBench, held_out: list[Task]
) -> None:
    """In the text or in the item's fields."""
    lesson = Lesson("Preview before you confirm.", "cancelling")
    for name in ("trajectory", "insight"):
        memory = make_provider(name, InMemoryStore(), settings={"feedback": "oracle"})
        trajectories = statebench.trajectories("travel")[:20]
        for each in trajectories:
            episode = episode_of(each.task, each.turns, score=each.replay()[1])
            memory.file(replace(episode, lessons=(lesson,)))
        known = {item.id for item in memory.content().items.values() if item.success is not None}
        assert known
        labels = [
            leak
            for leak in audit(memory.content().items.values(), held_out)
            if leak.kind == "label"
        ]
        assert {leak.item for leak in labels} == known
