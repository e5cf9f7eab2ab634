"""Negative controls: as much memory, and nothing in it that should help."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import ReadOnlyStoreError
from langgraft.memory.controls import CONTROLS, Control, Placebo, Shuffled
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import InsightMemory, InsightSettings, TrajectoryMemory
from langgraft.memory.rankers.tokens import tokenize
from langgraft.memory.recall import Budget, strip_block

TASKS = ["open red door", "pick up blue key", "find grey ball", "open green door", "put box down"]


def filled(store: InMemoryStore | None = None) -> InsightMemory:
    """Make a provider that has seen five tasks twice."""
    settings = InsightSettings(granularity="individual", top_k=3, requery_interval=4)
    memory = InsightMemory(store or InMemoryStore(), settings=settings)
    for number, task in enumerate(TASKS * 2):
        memory.take_in(make_episode(f"e{number}", task=task))
    return memory


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("limit", [None, 0, 60, 90])
def test_placebo_when_asked_recalls_as_many_items_and_tokens(task: str, limit: int | None) -> None:
    """Only what the text says differs."""
    memory = filled()
    budget = Budget(tokens=limit)
    real = memory.provide(task, asking(), budget)
    placebo = Placebo(memory).provide(task, asking(), budget)
    assert [item.id for item in placebo.items] == [item.id for item in real.items]
    assert placebo.dropped == real.dropped
    assert placebo.tokens == real.tokens
    assert len(placebo.text) == len(real.text)
    for mine, its in zip(placebo.items, real.items, strict=True):
        assert len(mine.text) == len(its.text)
        assert not set(tokenize(mine.text)) & {"door", "key", "ball", "box", "toggle"}
    assert placebo.text == real.text == "" or placebo.text != real.text


def test_shuffled_when_others_exist_recalls_as_many_that_share_no_goal_word() -> None:
    """Advice about something else, and still advice from the bank."""
    memory = filled()
    for task in TASKS:
        real = memory.provide(task, asking())
        shuffled = Shuffled(memory).provide(task, asking())
        assert len(shuffled.items) == len(real.items) > 0
        ids = {item.id for item in shuffled.items}
        assert ids <= set(memory.content().items)
        assert not ids & {item.id for item in real.items}
        for item in shuffled.items:
            assert not set(tokenize(task)) & set(tokenize(item.retrieval_key))


def test_shuffled_when_all_tasks_are_alike_avoids_what_was_found() -> None:
    """Where every key shares words, the found items are still the last choice."""
    memory = TrajectoryMemory(InMemoryStore())
    for number in range(2):
        memory.take_in(make_episode(f"e{number}"))
    (found,) = memory.provide("open the red door", asking()).items
    (other,) = Shuffled(memory).provide("open the red door", asking()).items
    assert {found.id, other.id} == set(memory.content().items)


@pytest.mark.parametrize("control", CONTROLS.values())
def test_control_when_used_writes_nothing_and_repeats_itself(control: type[Control]) -> None:
    """Controls are for evaluation: episodes pass them by, and imports are refused."""
    store = InMemoryStore()
    memory = filled(store)
    before = memory.content().digest
    wrapped = control(memory)
    first = [wrapped.provide(task, asking()) for task in TASKS]
    assert not wrapped.take_in(make_episode("new"))
    assert not wrapped.manage()
    assert wrapped.content().digest == memory.content().digest == before
    assert [control(filled()).provide(task, asking()) for task in TASKS] == first


@pytest.mark.parametrize("control", CONTROLS.values())
def test_control_when_asked_to_import_refuses(control: type[Control], tmp_path: Any) -> None:
    """Not even content gets in."""
    memory = filled()
    memory.export_items(tmp_path / "bank.jsonl")
    empty = TrajectoryMemory(InMemoryStore())
    with pytest.raises(ReadOnlyStoreError):
        control(empty).import_items(tmp_path / "bank.jsonl")


@pytest.mark.parametrize("control", CONTROLS.values())
async def test_control_when_asked_asynchronously_says_the_same(control: type[Control]) -> None:
    """Sync and async are the same logic."""
    wrapped = control(filled())
    expected = wrapped.provide(TASKS[0], asking())
    assert await wrapped.aprovide(TASKS[0], asking()) == expected


@pytest.mark.parametrize("name", CONTROLS)
def test_control_when_described_names_what_it_wraps(name: str) -> None:
    """Control, seed and wrapped architecture tell controls apart."""
    memory = filled()
    wrapped = CONTROLS[name](memory, seed=3)
    assert wrapped.describe() == {"control": name, "seed": 3, "of": memory.describe()}
    canonical_json(wrapped.describe())
    others: list[MemoryProvider[Any]] = [memory, CONTROLS[name](memory)]
    assert wrapped.architecture not in {other.architecture for other in others}
    for step in (3, 4):
        asked = wrapped.asks_again("walk", asking(step=step), asking())
        assert asked is memory.asks_again("walk", asking(step=step), asking()) is (step == 4)
    assert not wrapped.needs


@pytest.mark.parametrize("control", CONTROLS.values())
def test_control_when_seeded_otherwise_may_choose_otherwise(control: type[Control]) -> None:
    """The seed decides between equals, and nothing else."""
    memory = filled()
    texts = {control(memory, seed=seed).provide(TASKS[0], asking()).text for seed in range(8)}
    assert len(texts) > 1


@pytest.mark.parametrize("control", CONTROLS.values())
def test_control_when_memory_is_empty_recalls_nothing(control: type[Control]) -> None:
    """No memory, no placebo; and a control's block is stripped like any other."""
    empty = control(TrajectoryMemory(InMemoryStore()))
    assert empty.provide("open the red door", asking()).text == ""
    assert strip_block(control(filled()).provide(TASKS[0], asking()).text) == ""
