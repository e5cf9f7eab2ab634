"""What is no store, ranker or folder is refused where it is handed in."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import SettingsError
from langgraft.memory import Episode, Outcome, RecallContext, Step
from langgraft.memory.providers import InsightMemory, TrajectoryMemory
from langgraft.memory.rankers import BM25
from langgraft.memory.stores import ChromaStore, RankedStore


@pytest.mark.parametrize("given", ["memories", None, InMemoryStore])
def test_store_when_it_is_none_is_refused_by_everything_that_takes_one(given: Any) -> None:
    """A name, nothing, or the class instead of an object: each is told by its value."""
    for make in (
        lambda: InsightMemory(given),
        lambda: RankedStore(given, BM25()),
    ):
        with pytest.raises(SettingsError, match="must be a BaseStore, such as InMemoryStore"):
            make()


@pytest.mark.parametrize("given", ["bm25", None, BM25])
def test_ranker_when_it_is_none_is_refused(given: Any) -> None:
    """A name, nothing, or the class instead of an object."""
    with pytest.raises(SettingsError, match=r"such as BM25\(\)"):
        RankedStore(InMemoryStore(), given)


@pytest.mark.parametrize("path", ["", "http://localhost:8000", "https://chroma"])
def test_chroma_folder_when_it_is_none_is_refused_and_not_made(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address or nothing would be an empty memory in a folder of that name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="must be a folder"):
        ChromaStore.open(path)
    assert list(tmp_path.iterdir()) == []


def test_directory_when_given_as_text_keeps_the_index(tmp_path: Path) -> None:
    """Paths may be texts everywhere."""
    with RankedStore(InMemoryStore(), BM25(), directory=str(tmp_path / "index")) as store:
        store.put(("a",), "k", {"text": "red door"})
        assert [hit.key for hit in store.search(("a",), query="door")] == ["k"]
    assert (tmp_path / "index").is_dir()


def test_recall_when_another_provider_wrote_finds_it_after_a_refresh() -> None:
    """A bank has one writer; a reader beside it says when to look again."""
    store = InMemoryStore()
    writer, reader = TrajectoryMemory(store), TrajectoryMemory(store)
    context = RecallContext(domain="d", task_id="t", episode_id="now")
    assert not reader.provide("open the red door", context)
    writer.file(
        Episode(
            id="e",
            domain="d",
            task_id="t",
            task="open the red door",
            steps=(Step("", "toggle", "it is open"),),
            outcome=Outcome(success=True),
        )
    )
    reader.refresh()
    assert reader.provide("open the red door", context)
