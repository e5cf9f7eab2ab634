"""No event loop waits for the files of memory, as `langgraph dev` sees to it, by the same package."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from memory_cases import asking, make_episode

from langgraft import Banks, ChromaStore, TrajectoryMemory
from langgraft.memory.stores import SQLiteFileStore
from langgraft.memory.stores.corpora import LEAST_KEPT

OPENERS: dict[str, Callable[[Path], BaseStore]] = {
    "sqlite": lambda folder: SQLiteFileStore(folder / "memory.sqlite"),
    "chroma": lambda folder: ChromaStore.open(folder / "chroma"),
}


class Watch:
    """Raises where an event loop would wait, inside a `with` block."""

    def __init__(self, detector: Any) -> None:
        self._detector = detector
        # A thread that starts, and a lock that is held for a moment, are waited for by asyncio too.
        for name in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
            detector.functions.pop(name, None)

    def __enter__(self) -> None:
        self._detector.activate()

    def __exit__(self, *error: object) -> None:
        self._detector.deactivate()


@pytest.fixture
def watch() -> Watch:
    """Return what raises where an event loop would wait for a file, a socket or a database."""
    reason = "what detects blocking calls is not installed: pip install blockbuster"
    return Watch(pytest.importorskip("blockbuster", reason=reason).BlockBuster())


@pytest.fixture(params=OPENERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """Return a store beside which indexes are kept."""
    with OPENERS[request.param](tmp_path) as opened:  # type: ignore[attr-defined]
        yield opened


async def test_watch_when_a_file_is_read_in_the_loop_raises(watch: Watch, tmp_path: Path) -> None:
    """What the other tests rely on."""
    (tmp_path / "a").mkdir()
    with watch, pytest.raises(Exception, match="Blocking call"):
        (tmp_path / "a").rename(tmp_path / "b")


async def test_banks_when_opened_closed_and_deleted_block_no_loop(
    watch: Watch, store: BaseStore
) -> None:
    """Indexes are saved as banks are closed, loaded as they are opened again, and deleted, in threads."""
    with Banks(store, max_open=1) as banks, watch:
        for number in range(2):
            for user in ("ada", "bob"):
                await banks[user].afile(make_episode(f"e{number}"))
                assert (await banks[user].aprovide("the red door", asking())).items
        assert await banks.adelete("ada") > 0
        assert await banks.ausers() == ["bob"]


async def test_index_when_due_is_saved_without_blocking_the_loop(
    watch: Watch, store: BaseStore
) -> None:
    """An index of which much has changed is written by a search, in a thread."""
    memory = TrajectoryMemory(store)
    with watch:
        for number in range(LEAST_KEPT + 1):
            await memory.afile(make_episode(f"e{number}"))
        assert (await memory.aprovide("the red door", asking())).items
    path: Path = store.indexes.path  # type: ignore[attr-defined]
    assert any(path.glob("*/*-1"))  # noqa: ASYNC240


async def test_index_directory_when_a_bank_is_opened_is_read_without_blocking_the_loop(
    watch: Watch, tmp_path: Path
) -> None:
    """The same for an index that a provider is told to keep."""
    store = InMemoryStore()
    with TrajectoryMemory(store, index_directory=tmp_path / "index") as memory:
        await memory.afile(make_episode())
        await memory.aprovide("the red door", asking())
    with TrajectoryMemory(store, index_directory=tmp_path / "index") as memory, watch:
        assert (await memory.aprovide("the red door", asking())).items


async def test_lock_of_langgraphs_sqlite_store_when_taken_blocks_no_loop(
    watch: Watch, tmp_path: Path
) -> None:
    """The file beside the database is opened in a thread, at first and later."""
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "lg.sqlite")) as store:
        await store.setup()
        memory = TrajectoryMemory(store)
        with watch:
            for number in range(2):
                await memory.afile(make_episode(f"e{number}"))
            assert (await memory.aprovide("the red door", asking())).items
