"""What every provider promises, on every store."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from file_store import FileStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, episodes, make_episode, make_item, texts

from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.deltas import MemoryDelta, fold
from langgraft.memory.episodes import Episode, Lesson, Outcome, Step
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import NoMemory, TrajectoryMemory
from langgraft.memory.recall import Budget
from langgraft.memory.stores import ReadOnlyStore

Make = Callable[[BaseStore], MemoryProvider[Any]]
NewStore = Callable[[], BaseStore]

TASKS = ["open the red door", "pick up the blue key", "go to the red ball", "open the blue door"]
STREAM = [
    make_episode(f"e{number}", task=task, outcome=Outcome(success=number % 3 != 0))
    for number, task in enumerate(TASKS * 3)
]
QUESTIONS = [*TASKS, "the", "find something else", "", "   "]

# Each example makes its own stores; the fixtures around it hold no state of theirs.
examples = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def answers(memory: MemoryProvider[Any]) -> list[Any]:
    """Ask all questions, at the start and later, with and without a limit."""
    return [
        memory.provide(question, asking(step=step, observation="it is open"), budget)
        for question in QUESTIONS
        for step in (0, 4)
        for budget in (None, Budget(tokens=60))
    ]


@examples
@given(listed=st.lists(episodes(), max_size=5), question=texts)
def test_deltas_when_folded_are_the_bank_byte_for_byte(
    make: Make, new_store: NewStore, listed: list[Episode], question: str
) -> None:
    """The log is the memory, asking changes nothing, and filing again changes nothing."""
    memory = make(new_store())
    deltas: list[MemoryDelta] = []
    for episode in listed:
        deltas += [memory.take_in(episode), memory.manage()]
        before = memory.content().to_bytes()
        memory.provide(question, asking(step=len(deltas), observation=question), Budget(tokens=99))
        memory.questions(episode)
        assert not memory.take_in(episode)
        assert memory.content().to_bytes() == before
    logged = [MemoryDelta.from_json(delta.to_json()) for delta in deltas]
    assert fold(logged).to_bytes() == memory.content().to_bytes()


def test_memory_when_kept_elsewhere_reopened_or_restored_recalls_the_same(
    make: Make, tmp_path: Path
) -> None:
    """Where records are kept shows in nothing that is recalled."""
    in_memory, in_file = make(InMemoryStore()), make(FileStore(tmp_path / "store.json"))
    deltas = [in_memory.take_in(episode) for episode in STREAM]
    assert deltas == [in_file.take_in(episode) for episode in STREAM]
    reopened = make(FileStore(tmp_path / "store.json"))
    restored = make(InMemoryStore())
    restored.take_in(make_episode("something else", task="open nothing"))
    restored.restore(fold(deltas))
    frozen = make(ReadOnlyStore(in_memory.store))
    expected = answers(in_memory)
    for other in (in_file, reopened, restored, frozen):
        assert other.content() == in_memory.content()
        assert answers(other) == expected


async def test_memory_when_used_asynchronously_does_the_same(
    make: Make, new_store: NewStore
) -> None:
    """Sync and async are the same logic."""
    memory, amemory = make(new_store()), make(new_store())
    for episode in STREAM:
        assert memory.take_in(episode) == await amemory.atake_in(episode)
        assert memory.manage() == await amemory.amanage()
        assert memory.questions(episode) == await amemory.aquestions(episode)
        context = asking(observation=episode.first_observation)
        assert memory.provide(episode.task, context) == await amemory.aprovide(
            episode.task, context
        )
    assert memory.content() == amemory.content()


def test_episodes_when_filed_by_sixteen_threads_at_once_are_all_kept(
    make: Make, new_store: NewStore
) -> None:
    """Nothing is lost, no order is given twice, and the deltas fold in some order."""
    memory = make(new_store())
    listed = [make_episode(f"e{number}") for number in range(64)]
    with ThreadPoolExecutor(16) as pool:
        deltas = list(pool.map(memory.take_in, [*listed, *listed]))
    _check_concurrent(memory, deltas)


async def test_episodes_when_filed_by_sixteen_tasks_at_once_are_all_kept(
    make: Make, new_store: NewStore
) -> None:
    """Nothing is lost, no order is given twice, and the deltas fold in some order."""
    memory = make(new_store())
    listed = [make_episode(f"e{number}") for number in range(16)]
    deltas = await asyncio.gather(*(memory.atake_in(each) for each in (*listed, *listed)))
    _check_concurrent(memory, deltas)


def _check_concurrent(memory: MemoryProvider[Any], deltas: list[MemoryDelta]) -> None:
    content = memory.content()
    if isinstance(memory, NoMemory):
        assert not content.items
        return
    made = [delta for delta in deltas if delta]
    assert len(made) * 2 == len(deltas)
    assert content.state["episodes"] == len(made)
    orders = sorted(item.order_index for item in content.items.values())
    assert orders == list(range(len(orders)))
    assert content.state["next_order_index"] == len(orders)

    def position(delta: MemoryDelta) -> int:
        return min(item.order_index for item in fold([delta]).items.values())

    assert fold(sorted(made, key=position)) == content


def test_bank_when_frozen_can_be_asked_and_not_written(make: Make, new_store: NewStore) -> None:
    """A frozen bank refuses an episode, and is as it was."""
    store = new_store()
    memory = make(store)
    memory.take_in(STREAM[0])
    before = memory.content().digest
    frozen = make(ReadOnlyStore(store))
    refusal = nullcontext() if isinstance(memory, NoMemory) else pytest.raises(ReadOnlyStoreError)
    with refusal:
        frozen.take_in(STREAM[1])
    assert not frozen.take_in(STREAM[0])
    assert frozen.content().digest == memory.content().digest == before


def test_items_when_transplanted_keep_all_but_their_number_and_the_deltas_fold(
    make: Make, new_store: NewStore, tmp_path: Path
) -> None:
    """Import renumbers after the bank's last, in the order of the file, and is in the log."""
    path, again = tmp_path / "bank.jsonl", tmp_path / "again.jsonl"
    donor, target = make(new_store()), make(new_store())
    for episode in STREAM:
        donor.take_in(episode)
    before = donor.content().digest
    exported = donor.export_items(path)
    assert donor.content().digest == before
    items = read_items(path)
    assert len(items) == exported == len(donor.content().items)

    log = [target.take_in(make_episode("its own"))]
    own = len(target.content().items)
    log.append(target.import_items(path))
    log.append(target.take_in(make_episode("later")))
    content = target.content()
    assert fold(log).to_bytes() == content.to_bytes()
    for number, item in enumerate(items):
        expected = item.model_copy(update={"order_index": own + number})
        assert content.items[item.id] == expected
    orders = [item.order_index for item in content.items.values()]
    assert sorted(orders) == list(range(len(orders)))

    fresh = make(new_store())
    fresh.import_items(path)
    fresh.export_items(again)
    assert again.read_bytes() == path.read_bytes()


async def test_content_when_moved_asynchronously_is_what_is_moved_synchronously(
    make: Make, new_store: NewStore, tmp_path: Path
) -> None:
    """A bank in a store that is only asynchronous can be read, restored, exported and imported."""
    path, again = tmp_path / "bank.jsonl", tmp_path / "again.jsonl"
    donor, restored, target, twin = (make(new_store()) for _ in range(4))
    for episode in STREAM:
        donor.take_in(episode)
    await restored.arestore(await donor.acontent())
    assert restored.content() == await restored.acontent() == donor.content()
    assert await restored.aexport_items(path) == donor.export_items(again)
    assert again.read_bytes() == path.read_bytes()
    assert await target.aimport_items(path) == twin.import_items(path)
    assert target.content() == twin.content()


def test_import_when_the_file_is_bad_or_an_id_is_taken_changes_nothing(
    make: Make, new_store: NewStore, tmp_path: Path
) -> None:
    """All or none."""
    memory = make(new_store())
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item("a"), make_item("b", order_index=1)])
    memory.import_items(path)
    before = memory.content().digest
    with pytest.raises(InputError, match="row 1: id 'a' is already in the bank"):
        memory.import_items(path)
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"c"')[:-1])
    with pytest.raises(InputError, match=r"row 2: .*truncated"):
        memory.import_items(path)
    assert memory.content().digest == before


def test_import_when_lines_are_out_of_order_follows_their_numbers(
    make: Make, tmp_path: Path
) -> None:
    """The order among the items is theirs, however the lines were joined; a new bank keeps it."""
    memory = make(InMemoryStore())
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item("late", order_index=7), make_item("early", order_index=2)])
    memory.import_items(path)
    orders = {item.id: item.order_index for item in memory.content().items.values()}
    assert orders == {"early": 2, "late": 7}
    write_items(path, [make_item("last", order_index=7), make_item("then", order_index=2)])
    memory.import_items(path)
    orders = {item.id: item.order_index for item in memory.content().items.values()}
    assert orders == {"early": 2, "late": 7, "then": 8, "last": 9}


def test_architecture_when_built_again_is_the_same_and_tells_settings_apart(make: Make) -> None:
    """Neither the store nor what it holds is part of it."""
    first, second = make(InMemoryStore()), make(InMemoryStore())
    before = first.architecture
    first.take_in(STREAM[0])
    assert first.architecture == second.architecture == before
    assert first.describe()["provider"] == first.name


def test_recall_when_episode_holds_what_no_file_can_hold_is_refused_in_a_line(
    make: Make,
) -> None:
    """A lone surrogate is refused with the episode's name, and nothing is filed."""
    memory = make(InMemoryStore())
    bad = make_episode("bad", task="open \ud800", lessons=(Lesson("look \ud800"),))
    if isinstance(memory, NoMemory):
        assert not memory.take_in(bad)
        return
    with pytest.raises(InputError, match="episode 'bad' makes no memory: ") as caught:
        memory.take_in(bad)
    assert len(str(caught.value).encode().splitlines()) == 1
    assert not memory.content().state


def test_item_when_an_imported_one_has_its_id_gets_another(tmp_path: Path) -> None:
    """A bank imported from an agent that played the same episodes goes on learning."""
    episode = Episode("e", "d", "t", "do it", (Step("", "", "seen"),), Outcome(success=True))
    source = TrajectoryMemory(InMemoryStore())
    source.take_in(episode)
    source.export_items(tmp_path / "bank.jsonl")
    target = TrajectoryMemory(InMemoryStore())
    deltas = [target.import_items(tmp_path / "bank.jsonl"), target.take_in(episode)]
    assert list(target.content().items) == ["e/trajectory", "e/trajectory~2"]
    assert fold(deltas) == target.content()
    assert not target.take_in(episode)
