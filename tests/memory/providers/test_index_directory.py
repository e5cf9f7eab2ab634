"""A provider whose index is kept in a directory recalls what it would without one."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from diary_memory import Diary
from dict_store import DictStore
from langgraph.store.base import SearchOp
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError, SettingsError, StorePathError
from langgraft.memory import Episode, Outcome, Recall, RecallContext, Step
from langgraft.memory.providers import TrajectoryMemory, TrajectorySettings, open_provider
from langgraft.memory.stores import ChromaStore, ranked

CONTEXT = RecallContext(domain="babyai", task_id="t", episode_id="t")
SETTINGS = TrajectorySettings(top_k=4)


def _episode(number: int) -> Episode:
    return Episode(
        id=f"e{number}",
        domain="babyai",
        task_id=str(number),
        task=f"go to the red ball {number}",
        steps=(Step(thought="", action="go", observation="a door"),),
        outcome=Outcome(success=True),
    )


def test_provider_when_opened_again_then_recalls_without_listing_its_bank(tmp_path: Path) -> None:
    """After a closing, and without one, the recall is that of a provider without a directory."""
    store = DictStore()
    provider = TrajectoryMemory(store, settings=SETTINGS, index_directory=str(tmp_path))
    for number in range(9):
        provider.file(_episode(number))
        provider.provide("red ball 3", CONTEXT)
    provider.close()
    with pytest.raises(InputError, match="was closed"):
        provider.file(_episode(9))
    again = TrajectoryMemory(store, settings=SETTINGS, index_directory=tmp_path)
    again.file(_episode(10))
    store.log.clear()
    recalled = again.provide("red ball 10", CONTEXT)
    assert not any(isinstance(op, SearchOp) for batch in store.log for op in batch)
    plain = TrajectoryMemory(store, settings=SETTINGS)
    assert recalled == plain.provide("red ball 10", CONTEXT)
    assert again.architecture == plain.architecture
    again.close()


def test_provider_when_it_ranks_nothing_then_refuses_an_index_directory(tmp_path: Path) -> None:
    """A directory that nothing would be kept in is a mistake worth telling."""
    with pytest.raises(SettingsError, match="has no ranker"):
        Diary(InMemoryStore(), index_directory=tmp_path)
    Diary(InMemoryStore()).close()


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("the bank is listed")


def _fill(path: Path, numbers: Sequence[int], **options: Any) -> Recall:
    with open_provider("trajectory", path, settings={"top_k": 4}, **options) as memory:
        for number in numbers:
            memory.file(_episode(number))
        return memory.provide("red ball 3", CONTEXT)


def test_provider_when_opened_on_a_folder_then_keeps_its_index_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next block reads the index, lists no bank, and recalls what it would without one."""
    first = _fill(tmp_path, range(9))
    monkeypatch.setattr(ranked, "read_all", _refuse)
    assert _fill(tmp_path, []) == first
    _fill(tmp_path, [33])
    monkeypatch.undo()
    with ChromaStore.open(tmp_path) as store:
        expected = TrajectoryMemory(store, settings=SETTINGS).provide("red ball 3", CONTEXT)
    assert _fill(tmp_path, []) == expected


@pytest.mark.parametrize("between", ["another program", "a client", "a kill", "other settings"])
def test_provider_when_its_bank_changed_past_the_index_then_recalls_what_is_there(
    tmp_path: Path, between: str
) -> None:
    """An index that did not hear of a write is not believed."""
    _fill(tmp_path, range(5))
    if between == "another program":
        with ChromaStore.open(tmp_path) as store:
            TrajectoryMemory(store, settings=SETTINGS).file(_episode(33))
    elif between == "a client":  # past the lock of the folder, which no store of ours heard of
        client: Any = chromadb.PersistentClient(
            str(tmp_path), settings=Settings(anonymized_telemetry=False)
        )
        TrajectoryMemory(ChromaStore.from_client(client), settings=SETTINGS).file(_episode(33))
        client.close()
    elif between == "a kill":
        indexes = tmp_path / "langgraft-indexes"
        old = shutil.copytree(indexes, tmp_path.with_name("old"))
        _fill(tmp_path, [33])
        shutil.rmtree(indexes)
        (old / "as-of").unlink()  # as while a block is under way
        old.rename(indexes)
    else:
        bank = ("langgraft", "trajectory")
        with open_provider("full_history", tmp_path, namespace=bank) as memory:
            memory.file(_episode(33))
    assert "red ball 33" in _recalled(tmp_path, "33")


def _recalled(path: Path, query: str) -> str:
    with open_provider("trajectory", path) as memory:
        return memory.provide(query, CONTEXT).text


def test_provider_when_its_folder_is_open_then_says_so_and_leaves_the_index(tmp_path: Path) -> None:
    """A second owner is refused before anything of the first one's is touched."""
    _fill(tmp_path, [0])
    with open_provider("trajectory", tmp_path) as memory:
        memory.file(_episode(1))
        assert "red ball 1" in memory.provide("red", CONTEXT).text
        assert not (tmp_path / "langgraft-indexes" / "as-of").exists(), "a kill would leave it"
        with pytest.raises(StorePathError, match="open already"):
            _recalled(tmp_path, "red")
        memory.file(_episode(2))
    assert "red ball 2" in _recalled(tmp_path, "2")


def test_provider_when_an_old_index_cannot_be_deleted_then_it_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left where it is, and what is recalled is what the bank holds, later too."""
    _fill(tmp_path, range(5))
    (tmp_path / "langgraft-indexes" / "as-of").unlink()  # as after a kill
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", _fail)
        _fill(tmp_path, [33])
        assert "red ball 33" in _recalled(tmp_path, "33")
    assert "red ball 33" in _recalled(tmp_path, "33")


def _fail(*_: object, ignore_errors: bool = False) -> None:
    if not ignore_errors:
        raise OSError(1, "no")
