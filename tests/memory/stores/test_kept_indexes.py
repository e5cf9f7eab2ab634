"""Indexes beside a store that tells what was written: what is recalled never depends on them."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft._core.effects import drive
from langgraft.memory import MemoryProvider, Recall
from langgraft.memory.providers import SimpleRAG, make_provider
from langgraft.memory.rankers import MMR, Dense, lexical
from langgraft.memory.stores import (
    ReadOnlyStore,
    SQLiteFileStore,
    kept_indexes,
    open_store,
    ranked,
)
from langgraft.memory.stores.kept_indexes import ChangeLog, KeptIndexes, change_log
from langgraft.memory.stores.programs import erase

SETTINGS = {"top_k": 4, "max_items": 60}
QUERY = "open door 3"


def memory_in(store: BaseStore, **changed: Any) -> MemoryProvider[Any]:
    """Return a provider that forgets what is beyond its capacity."""
    return make_provider("simple_rag", store, settings={**SETTINGS, **changed})


def file(memory: MemoryProvider[Any], *numbers: int) -> None:
    """File episodes."""
    for number in numbers:
        memory.file(make_episode(f"e{number}", task=f"open door {number}"))


def anew(memory: MemoryProvider[Any], query: str = QUERY, **about: str) -> Recall:
    """Recall what a provider without any index on a copy of the bank does."""
    copy = type(memory)(InMemoryStore(), settings=memory.settings)
    copy.restore(memory.content())
    return copy.provide(query, asking(**about))


@pytest.fixture(params=["sqlite", "chroma"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the name of a store on disk."""
    return f"{request.param}:{tmp_path / 'store'}"


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("the bank is listed")


def without_listing(memory: MemoryProvider[Any], query: str = QUERY, **about: str) -> Recall:
    """Recall where every listing of a bank is an error."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ranked, "read_all", _refuse)
        return memory.provide(query, asking(**about))


def test_index_when_its_store_was_closed_is_opened_again(spec: str) -> None:
    """The provider need not be closed; of what came after, only that is read."""
    with open_store(spec) as store:
        memory = memory_in(store)
        file(memory, *range(9))
        first = memory.provide(QUERY, asking())
    with open_store(spec) as store:
        memory = memory_in(store)
        assert without_listing(memory) == first
        file(memory, 33, 34)
    with open_store(spec) as store:
        file(memory_in(store), 35)  # nothing is searched, and no index opened
    with open_store(spec) as store:
        memory = memory_in(ReadOnlyStore(store))
        assert without_listing(memory, "open door 35") == anew(memory, "open door 35")


def test_index_when_the_task_that_asks_is_left_out_knows_the_tasks(spec: str) -> None:
    """They are kept with it once they were asked for, and follow what is written later."""
    about = {"task_id": "task of e3"}
    with open_store(spec) as store:
        file(memory_in(store), *range(9))
        memory_in(store).provide(QUERY, asking())  # knows no tasks, and is kept all the same
    with open_store(spec) as store:
        memory = memory_in(store, same_task="exclude")
        first = memory.provide(QUERY, asking(**about))
        assert first == anew(memory, **about)
        assert "e3" not in {item.episode_id for item in first.items}
    for number in range(2):
        with open_store(spec) as store:
            memory = memory_in(store, same_task="exclude")
            assert without_listing(memory, **about) == anew(memory, **about)
            memory.file(make_episode(f"again {number}", task=QUERY, task_id="task of e3"))


def test_index_when_the_process_dies_is_brought_up_to_date(tmp_path: Path) -> None:
    """A large bank's index is on disk before anything is closed; later writes are read again."""
    path = tmp_path / "store"
    store = SQLiteFileStore(path)
    memory = memory_in(store, max_items=1_000)
    file(memory, *range(130))
    memory.provide(QUERY, asking())
    file(memory, *range(130, 150))
    beside = SQLiteFileStore(path)  # as after a kill: nothing of the other one was closed
    again = memory_in(beside, max_items=1_000)
    assert without_listing(again, "open door 149") == anew(again, "open door 149")
    beside.close()
    store.close()


def test_index_when_another_process_writes_follows_without_a_listing(tmp_path: Path) -> None:
    """Two store objects are two processes: each recalls at once what the other files or removes."""
    with SQLiteFileStore(tmp_path / "s") as one, SQLiteFileStore(tmp_path / "s") as other:
        here, there = memory_in(one), memory_in(other)
        file(here, 1)
        assert here.provide(QUERY, asking()) == there.provide(QUERY, asking())
        for number in range(2, 90):  # beyond the capacity, so that items go as well
            file(here if number % 2 else there, number)
            assert without_listing(here) == without_listing(there)
        assert here.provide(QUERY, asking()) == anew(here)


@pytest.mark.parametrize("harm", ["damaged", "gone", "of another version", "unwritable"])
def test_index_when_it_cannot_be_used_is_built_anew(tmp_path: Path, harm: str) -> None:
    """Whatever happened to its files, the recall is that of the bank."""
    path = tmp_path / "store"
    folder = tmp_path / "store.indexes"
    if harm == "unwritable":
        folder.write_text("a file where the folder should be")
    for number in range(2):
        with SQLiteFileStore(path) as store:
            memory = memory_in(store)
            file(memory, *range(9 * number, 9 * number + 9))
            assert memory.provide(QUERY, asking()) == anew(memory)
        files = [each for each in folder.rglob("*") if each.is_file()]
        assert bool(files) == (harm != "unwritable")
        for each in files:
            if harm == "gone":
                each.unlink()
            elif harm == "damaged" and each.suffix == ".bin":
                each.write_bytes(each.read_bytes()[::-1])
            elif harm == "of another version" and each.name == "manifest":
                each.write_text("00000000 {}\n")


def test_index_when_the_ranker_cannot_keep_it_or_is_another_is_its_own(tmp_path: Path) -> None:
    """Each kind finds what all have filed; one that cannot be kept is built each time."""
    rankers: list[dict[str, Any]] = [
        {},
        {"ranker": Dense("hashing:32")},
        {"ranker": MMR(Dense("hashing:32"))},
    ]
    for _ in range(2):
        with SQLiteFileStore(tmp_path / "store") as store:
            for number, changed in enumerate(rankers):
                memory = memory_in(store, **changed)
                file(memory, number)
                assert memory.provide(QUERY, asking()) == anew(memory)


def test_index_when_its_directory_is_given_over_a_shared_file_is_there(tmp_path: Path) -> None:
    """What others write is found there too, and the folder beside the store stays away."""
    with SQLiteFileStore(tmp_path / "s") as one, SQLiteFileStore(tmp_path / "s") as other:
        where = tmp_path / "mine"
        with SimpleRAG(one, index_directory=where) as memory:
            file(memory, *range(9))
            memory.provide(QUERY, asking())
            file(memory_in(other), 33)
            assert memory.provide("open door 33", asking()).items[0].episode_id == "e33"
        assert list(where.iterdir())
    assert not (tmp_path / "s.indexes").exists()


def test_changes_when_asked_tell_what_was_written_under_a_prefix(spec: str) -> None:
    """By label, deletions included, and nothing where a moment is not known."""
    with open_store(spec) as store:
        log = change_log(ReadOnlyStore(store))
        assert isinstance(log, ChangeLog)
        store.put(("a",), "old", {})
        start = log.changes((), None)
        assert start.addresses is None
        assert log.changes((), start.as_of).addresses in ((), [])
        store.put(("a", "b"), "new", {})
        store.put(("ab",), "beside", {})
        store.delete(("a",), "old")
        told = log.changes(("a",), start.as_of)
        assert sorted(told.addresses or ()) == [(("a",), "old"), (("a", "b"), "new")]
        assert len(log.changes((), start.as_of).addresses or ()) == 3
        unknown: Any
        for unknown in (None, 7, ["other", 1], [cast("Any", told.as_of)[0], 10**9]):
            assert log.changes((), unknown).addresses is None
        drive(erase(("a",)), store)
        log.forget_deleted(("a",))
        assert not [at for at in log.changes((), told.as_of).addresses or () if at[0][0] == "a"]
        assert log.changes(("ab",), told.as_of).addresses is not None, "others read nothing anew"


def test_changes_when_all_under_a_prefix_was_erased_are_told_to_those_who_see_it(
    tmp_path: Path,
) -> None:
    """An index of it, above it or below it is read anew; one beside it is not."""
    with SQLiteFileStore(tmp_path / "s") as store:
        then = store.changes((), None).as_of
        store.forget_deleted(("a", "b"))
        for prefix, known in (
            ((), False),
            (("a",), False),
            (("a", "b"), False),
            (("a", "b", "c"), False),
            (("a", "c"), True),
            (("ab",), True),
        ):
            assert (store.changes(prefix, then).addresses is not None) == known, prefix


def test_index_when_saved_by_two_at_once_is_one_of_the_two(tmp_path: Path) -> None:
    """Who comes while another one saves leaves it, and nothing half is ever loaded."""
    ranker = SimpleRAG(InMemoryStore()).settings.ranker
    kept = [KeptIndexes(tmp_path, {"kind": "same"}) for _ in range(2)]
    for number in range(6):
        index = ranker.index()
        index.put("d", f"door {number}", (number,))
        kept[number % 2].save(("a",), index, (), number)  # type: ignore[arg-type]
        opened = ranker.index()
        found = kept[1 - number % 2].load(("a",), opened)  # type: ignore[arg-type]
        assert found is not None
        assert found.as_of == number
        assert opened.search(f"{number}", limit=1)
    assert len([path for path in next(tmp_path.iterdir()).iterdir() if path.is_dir()]) == 1
    kept[0].drop(("a",))
    assert kept[1].load(("a",), ranker.index()) is None  # type: ignore[arg-type]


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["file", "recall", "reopen", "kill"]), st.integers(0, 1)),
    max_size=14,
)


@settings(max_examples=25, deadline=None)
@given(actions=ACTIONS, same_task=st.sampled_from(["allow", "exclude"]))
def test_recall_when_processes_come_and_go_is_that_of_the_bank(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int]], same_task: str
) -> None:
    """Whoever files, closes, or dies in whatever order: a recall is what the bank holds."""
    path = tmp_path_factory.mktemp("history") / "store"
    stores = [SQLiteFileStore(path) for _ in range(2)]
    dead: list[SQLiteFileStore] = []
    # The other one names no filter, so that an index knows the tasks or does not.
    memories = [
        memory_in(store, max_items=5, same_task=each)
        for store, each in zip(stores, (same_task, "allow"), strict=True)
    ]
    for number, (action, who) in enumerate([*actions, ("recall", 0), ("recall", 1)]):
        if action == "file":
            file(memories[who], number)
        elif action == "recall":
            for about in ({}, {"task_id": f"task of e{number - 1}"}):
                found = memories[who].provide(QUERY, asking(**about))
                assert found == anew(memories[who], **about)
        else:
            if action == "reopen":
                stores[who].close()
            else:
                dead.append(stores[who])
            stores[who] = SQLiteFileStore(path)
            memories[who] = memory_in(stores[who], max_items=5, same_task=(same_task, "allow")[who])
    for store in (*stores, *dead):
        store.close()


def test_index_when_it_was_kept_with_other_words_is_built_anew(spec: str) -> None:
    r"""An index of a version that took texts apart by `\w+` alone is not read."""
    with pytest.MonkeyPatch.context() as before, open_store(spec) as store:
        before.setattr(kept_indexes, "_FORMAT", 1)
        before.setattr(lexical, "tokenize", lambda text: re.findall(r"\w+", text.lower()))
        before.setattr(lexical, "hidden_characters", lambda _: [])
        memory = memory_in(store)
        for number in range(9):
            memory.file(make_episode(f"e{number}", task=f"辦公室的無線網路壞了 {number}"))
        assert memory.provide("無線網路", asking()).items == ()
    with open_store(spec) as store:
        assert len(memory_in(store).provide("無線網路", asking()).items) == SETTINGS["top_k"]
