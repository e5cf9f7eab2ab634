"""A provider whose index is kept in a directory recalls what it would without one."""

from pathlib import Path

import pytest
from diary_memory import Diary
from dict_store import DictStore
from langgraph.store.base import SearchOp
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError, SettingsError
from langgraft.memory import Episode, Outcome, RecallContext, Step
from langgraft.memory.providers import TrajectoryMemory, TrajectorySettings

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
