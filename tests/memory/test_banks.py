"""Banks of many users over one store, and one bank at a path: nothing leaks, nothing is lost."""

import asyncio
import gc
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from acceptance.command import worker_environment
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode
from warm_python import started_code

import langgraft
from langgraft import MemoryMiddleware, MemoryState, open_memory
from langgraft._core.errors import InputError, SettingsError
from langgraft.memory import Banks, Budget, LayeredMemory, MemoryProvider, Step
from langgraft.memory.bank import records_namespace
from langgraft.memory.banks import Label, escaped, unescaped
from langgraft.memory.providers import SimpleRAG, TrajectoryMemory, open_provider
from langgraft.memory.stores import open_store

TASK = "open the red door"
LABELS = st.integers() | st.text(st.characters(exclude_categories=()), min_size=1)


def recalled(memory: MemoryProvider[Any], task: str = TASK) -> set[str]:
    """Return the episodes that a memory recalls items of."""
    return {item.episode_id for item in memory.provide(task, asking()).items}


@pytest.fixture(params=["memory", "sqlite", "chroma"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """Open a store of each kind."""
    path = "" if request.param == "memory" else f":{tmp_path / 'store'}"
    with open_store(request.param + path) as opened:
        yield opened


@pytest.fixture
def banks(store: BaseStore) -> Iterator[Banks]:
    """Return banks of which few are open."""
    with Banks(store, settings={"top_k": 9}, max_open=2) as made:
        yield made


# One bank at a path -----------------------------------------------------------------------


async def test_memory_when_opened_at_a_path_is_there_again(tmp_path: Path) -> None:
    """It can be used at once and closed in any way, and other programs may have it open."""
    path = tmp_path / "new" / "memory.sqlite"
    first = open_memory(path, "simple_rag")
    first.file(make_episode("one"))
    with open_memory(str(path), SimpleRAG, settings={"top_k": 9}) as beside:
        beside.file(make_episode("two"))
    assert recalled(first) == {"one", "two"}
    first.close()
    first.close()
    with pytest.raises(InputError, match="is closed"):
        first.provide(TASK, asking())
    async with open_memory(path, "simple_rag") as again:
        assert {item.episode_id for item in (await again.aprovide(TASK, asking())).items} == {
            "one",
            "two",
        }
    with open_store(f"sqlite:{path}") as store:
        assert len(SimpleRAG(store).content().items) == 2


def test_memory_when_its_folder_is_a_chroma_database_then_is_what_that_holds(
    tmp_path: Path,
) -> None:
    """Nobody finds an empty memory beside the one there was; another folder gets a file."""
    with open_provider("trajectory", tmp_path / "old") as memory:
        memory.file(make_episode("one"))
    with open_memory(tmp_path / "old") as memory:
        assert recalled(memory) == {"one"}
    (tmp_path / "other").mkdir()
    open_memory(tmp_path / "other").close()
    assert (tmp_path / "other" / "memory.sqlite").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"provider": "trajectories"},
        {"settings": {"top_kk": 1}},
        {"namespace": ("a.b",)},
        {"provider": TrajectoryMemory, "settings": {"top_k": 0}},
        {"provider": dict},
    ],
)
def test_memory_when_something_of_it_is_not_possible_then_makes_nothing(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    """One line says what, before any file is made."""
    with pytest.raises(SettingsError):
        open_memory(tmp_path / "memory.sqlite", **wrong)
    with pytest.raises(SettingsError):
        open_memory("")
    assert not list(tmp_path.iterdir())


_WRITER = """
import os, sys
from langgraft import open_memory
from memory_cases import asking, make_episode
memory = open_memory(sys.argv[1], settings={"top_k": 99})
for number in range(10):
    memory.file(make_episode(f"{sys.argv[2]}-{number}"))
    found = memory.provide("open the red door", asking()).items
    assert f"{sys.argv[2]}-{number}" in {item.episode_id for item in found}
os._exit(7)  # nothing is closed
"""


def test_memory_when_processes_write_at_once_and_die_holds_all(tmp_path: Path) -> None:
    """They wait for one another, see one another's, and lose nothing where nobody closes anything."""
    path = str(tmp_path / "memory.sqlite")
    places = (Path(langgraft.__file__).parents[1], Path(__file__).parents[1] / "support")
    environment = worker_environment() | {"PYTHONPATH": os.pathsep.join(map(str, places))}
    with ExitStack() as begun:
        workers = [
            begun.enter_context(started_code(_WRITER, path, name, environment=environment))
            for name in "abc"
        ]
        assert [worker.wait() for worker in workers] == [7, 7, 7]
    with open_memory(path, settings={"top_k": 99}) as memory:
        items = memory.content().items.values()
        assert sorted(item.order_index for item in items) == list(range(30))
        assert len(recalled(memory)) == 30


# Labels -----------------------------------------------------------------------------------


@given(LABELS, LABELS)
def test_labels_when_escaped_never_meet_and_come_back(one: Label, other: Label) -> None:
    """Whatever they hold; an integer is not the text that looks like it."""
    assert (escaped(one) == escaped(other)) == (one == other and type(one) is type(other))
    assert unescaped(escaped(one)) == one
    records_namespace(("users", escaped(one)))
    assert "/" not in escaped(one), "or the command line would take it for two"


@pytest.mark.parametrize("label", ["", None, True, 1.0, b"ada", ("ada",)])
def test_label_when_it_is_none_is_refused(label: Any) -> None:
    """One line says what a label is."""
    with (
        Banks(InMemoryStore()) as banks,
        pytest.raises(InputError, match="a text that is not empty, or an integer"),
    ):
        banks[label]


# Many users -------------------------------------------------------------------------------


def test_banks_when_labels_resemble_one_another_share_nothing(banks: Banks) -> None:
    """Not an item, and not a statistic: an empty neighbor and a full one change no score."""
    labels: list[Label] = ["ada@example.org", "ada", "Ada", "ada/x", "ada.x", "a%2Eb", 1, "1", "日"]
    for number, label in enumerate(labels):
        banks[label].file(make_episode(f"of-{number}"))
    with Banks(InMemoryStore(), settings={"top_k": 9}) as single:
        for number, label in enumerate(labels):
            assert recalled(banks[label]) == {f"of-{number}"}
            single[label].file(make_episode(f"of-{number}"))
            assert single[label].provide(TASK, asking()) == banks[label].provide(TASK, asking())
    assert sorted(map(repr, banks.users())) == sorted(map(repr, labels))
    assert sorted(map(repr, banks)) == sorted(map(repr, labels))


def test_banks_when_many_are_opened_keep_the_latest_and_those_in_use(banks: Banks) -> None:
    """One that somebody holds is the same object, however many came after; others are let go."""

    def alive() -> list[TrajectoryMemory]:
        return [each for each in gc.get_objects() if type(each) is TrajectoryMemory]

    of_others = alive()  # of tests before this one
    held = banks["held"]
    held.file(make_episode("one"))
    for number in range(20):
        banks[number].file(make_episode("one"))
    gc.collect()
    ours = {each.namespace for each in alive() if not any(each is other for other in of_others)}
    assert {label for _, _, _, label, _ in ours} <= {"held", "#17", "#18", "#19"}
    assert len(ours) >= 2
    assert banks["held"] is held
    held.file(make_episode("two"))
    assert recalled(held) == {"one", "two"}
    assert recalled(banks[3]) == {"one"}, "closed and opened again"


async def test_banks_when_threads_and_tasks_use_them_lose_nothing(banks: Banks) -> None:
    """Every filing of everybody's is there, though banks are closed and opened all the while."""

    def by_thread(number: int) -> None:
        banks[number % 5].file(make_episode(f"thread-{number}"))

    async def by_task(number: int) -> None:
        await banks[number % 5].afile(make_episode(f"task-{number}"))

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(by_thread, number) for number in range(20)]
        await asyncio.gather(*(by_task(number) for number in range(20)))
        for each in done:
            await asyncio.wrap_future(each)
    for label in range(5):
        expected = {f"{who}-{n}" for who in ("thread", "task") for n in range(label, 20, 5)}
        found = await banks[label].aprovide(TASK, asking(), Budget(tokens=None))
        assert {item.episode_id for item in found.items} <= expected
        assert {i.episode_id for i in banks[label].content().items.values()} == expected


def test_bank_when_its_banks_are_gone_keeps_their_store_open(tmp_path: Path) -> None:
    """What a line such as `Banks(path)["ada"]` returns works as long as it is held."""
    memory = Banks(tmp_path / "users.sqlite")["ada"]
    gc.collect()
    memory.file(make_episode("e1"))
    assert len(memory.content().items) == 1


def test_banks_when_closed_refuse_and_leave_a_given_store_open() -> None:
    """What was not opened here is not closed here."""
    store = InMemoryStore()
    with Banks(store) as banks:
        banks["ada"].file(make_episode("one"))
    with pytest.raises(InputError, match="closed"):
        banks["ada"]
    with Banks(store) as again:
        assert recalled(again["ada"]) == {"one"}
    for wrong in ({"max_open": 0}, {"provider": "none such"}, {"namespace": ("a.b",)}):
        with pytest.raises(SettingsError):
            Banks(store, **cast("Any", wrong))


# Deletion ---------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_user_when_deleted_leaves_nothing(banks: Banks, asynchronous: bool) -> None:
    """No record, no recall by whoever holds the bank, no label; others are as they were."""
    for label in ("ada", "ada.b", 1):
        banks[label].file(make_episode("one"))
    held = banks["ada"]
    both = banks.layered("ada.b", "ada")
    assert recalled(held) == {"one"}
    before = banks["ada.b"].content()
    number = await banks.adelete("ada") if asynchronous else banks.delete("ada")
    assert number >= len(before.items)
    assert (await banks.adelete("ada") if asynchronous else banks.delete("ada")) == 0
    assert not held.content().items
    assert recalled(held) == set()
    assert not held.content().state
    users = await banks.ausers() if asynchronous else banks.users()
    assert sorted(map(str, users)) == ["1", "ada.b"]
    assert banks["ada.b"].content() == before
    assert recalled(both) == {"one"}
    held.file(make_episode("two"))
    assert recalled(held) == {"two"}, "who comes back begins anew"


@pytest.mark.parametrize(
    "count", [20, 120]
)  # of 120, an index is on disk before anything is closed
def test_user_when_deleted_is_in_no_file_and_no_other_process(tmp_path: Path, count: int) -> None:
    """Neither words nor label are left on disk, nor brought back by another who had them open."""
    place = tmp_path / "memory.sqlite"
    options: Any = {"settings": {"top_k": 9}}
    with Banks(place, **options) as banks, Banks(place, **options) as beside:
        for number in range(count):
            banks["ada@secret"].file(make_episode(f"e{number}", task=f"zanzibar {number}"))
        banks["bob"].file(make_episode("one"))
        for each in (banks, beside):
            assert recalled(each["ada@secret"], "zanzibar")
            assert recalled(each["bob"]) == {"one"}
        kept = [path for path in _mentions(tmp_path, b"zanzibar") if "indexes" in str(path)]
        assert bool(kept) == (count > 100)
        with Banks(place) as third:  # who has read nothing of it
            third.delete("ada@secret")
        assert not _mentions(tmp_path, b"zanzibar"), "nobody closed anything"
        assert recalled(beside["bob"]) == {"one"}
        assert not recalled(beside["ada@secret"], "zanzibar")
        banks["ada@secret"].file(make_episode("new"))
        assert recalled(beside["ada@secret"]) == {"new"}
        banks.delete("ada@secret")
    assert not _mentions(tmp_path, b"zanzibar")
    assert not _mentions(tmp_path, b"secret")
    with Banks(place) as banks:
        assert banks.users() == ["bob"]
        assert not recalled(banks["ada@secret"], "zanzibar")


def _mentions(folder: Path, word: bytes) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if word in path.read_bytes()]


# Layers -----------------------------------------------------------------------------------


async def test_layers_when_asked_recall_their_own_first_within_one_budget(banks: Banks) -> None:
    """What is one's own has the room, others what is left; each item once."""
    banks["ada"].file(make_episode("own"))
    banks["team"].file(make_episode("shared"))
    banks["all"].file(make_episode("own", steps=(Step("", "", "elsewhere"),)))
    memory = banks.layered("ada", "team", "all")
    whole = memory.provide(TASK, asking())
    assert [item.episode_id for item in whole.items] == ["own", "shared"]
    assert "elsewhere" not in whole.text
    assert whole == await memory.aprovide(TASK, asking())
    alone = banks["ada"].provide(TASK, asking())
    tight = memory.provide(TASK, asking(), Budget(tokens=alone.tokens))
    assert tight.text == alone.text
    assert [drop.id for drop in tight.dropped] == [whole.items[1].id]
    assert recalled(banks.layered("nobody", "team")) == {"shared"}


async def test_layers_when_filed_write_to_their_own_alone(banks: Banks) -> None:
    """Others see no write; what others file is recalled at once."""
    memory = banks.layered("ada", "team")
    delta = memory.file(make_episode("one"))
    assert delta
    assert not memory.file(make_episode("one"))
    await memory.afile(make_episode("two"))
    banks["team"].file(make_episode("three"))
    assert recalled(memory) == {"one", "two", "three"}
    assert memory.content() == banks["ada"].content()
    assert recalled(banks["team"]) == {"three"}
    assert recalled(banks["ada"]) == {"one", "two"}


def test_layers_when_in_two_stores_are_refused() -> None:
    """One reading asks one store."""
    with pytest.raises(SettingsError, match="one store"):
        LayeredMemory(TrajectoryMemory(InMemoryStore()), [TrajectoryMemory(InMemoryStore())])


def test_layers_when_in_a_graph_are_a_memory_as_any(banks: Banks) -> None:
    """The nodes of a middleware ask both banks, and file in one."""
    banks["team"].file(make_episode("shared"))
    memory = MemoryMiddleware(banks.layered("ada", "team"), outcome=lambda _: True)
    seen: list[str] = []

    def answer(state: MemoryState) -> dict[str, Any]:
        seen.append(memory.messages(state)[-1].text)
        return {"messages": [AIMessage("pull it")]}

    graph = StateGraph(MessagesState)
    graph.add_node("recall", memory.recall_node)
    graph.add_node("answer", answer)
    graph.add_node("remember", memory.remember_node)
    for start, end in ((START, "recall"), ("recall", "answer"), ("answer", "remember")):
        graph.add_edge(start, end)
    graph.add_edge("remember", END)
    ask = graph.compile().invoke
    ask({"messages": [HumanMessage(TASK, id="m1")]})
    ask({"messages": [HumanMessage(TASK, id="m2")]})
    assert "it is open" in seen[0], "the team's"
    assert "pull it" in seen[1], "one's own"
    assert len(banks["team"].content().items) == 1
