"""The suite of LangGraph stores, on Chroma in a folder and on a server."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore

from langgraft.memory.stores import ChromaStore
from langgraft.memory.stores.chroma.client import Connection, connect, open_folder
from langgraft.memory.stores.chroma.rows import Index
from langgraft.testing import StoreConformance, word_index

pytestmark = pytest.mark.matrix  # one suite, two ways to one store

_numbers = itertools.count()


@pytest.fixture(scope="module")
def open_chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """Open a folder for all tests."""
    connection = open_folder(tmp_path_factory.mktemp("chroma") / "store")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def connected_chroma(chroma_url: str) -> Iterator[Connection]:
    """Connect to the server once for all tests."""
    connection = connect(chroma_url)
    yield connection
    connection.close()


class ChromaConformance(StoreConformance):
    """What all ways to Chroma can do.

    Opening takes longer than most tests: those that do not open again share a connection, each
    with a collection of its own.
    """

    persistent = True
    semantic = True
    dotted_filters = True
    examples = 8  # a write takes milliseconds
    writes_each = 4

    @pytest.fixture
    def new_store(self, connection: Connection) -> Callable[[Index | None], ChromaStore]:
        """Return what makes an empty store."""
        shared = replace(connection, close=lambda: None)
        return lambda index: ChromaStore(
            shared, collection=f"conformance-{next(_numbers)}", index=index
        )

    @pytest.fixture
    def store(
        self,
        request: pytest.FixtureRequest,
        new_store: Callable[[Index | None], ChromaStore],
        opened: Callable[[], ChromaStore],
    ) -> Iterator[BaseStore]:
        """Return an empty store, alone where it is to be opened again."""
        with opened() if "reopen" in request.fixturenames else new_store(None) as store:
            yield store

    @pytest.fixture
    def semantic_store(
        self, new_store: Callable[[Index | None], ChromaStore]
    ) -> Iterator[BaseStore]:
        """Return an empty store with an index."""
        with new_store(Index.from_config(word_index())) as store:
            yield store

    @pytest.fixture
    def reopen(
        self, store: ChromaStore, opened: Callable[[], ChromaStore]
    ) -> Iterator[Callable[[], BaseStore]]:
        """Close the store, and open it again."""
        stores = [store]

        def again() -> BaseStore:
            stores[-1].close()
            stores.append(opened())
            return stores[-1]

        yield again
        stores[-1].close()


class TestChromaFolder(ChromaConformance):
    """Chroma in this process."""

    @pytest.fixture
    def connection(self, open_chroma: Connection) -> Connection:
        """Return what the tests share."""
        return open_chroma

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Callable[[], ChromaStore]:
        """Return what opens a test's own folder."""
        return lambda: ChromaStore.open(tmp_path / "store")


class TestChromaServer(ChromaConformance):
    """Chroma in another process.

    Where that is makes no difference to how a batch is awaited, which is tried in a folder.
    """

    modes = ("sync",)
    examples = 4  # each write is a request

    @pytest.fixture
    def connection(self, connected_chroma: Connection) -> Connection:
        """Return what the tests share."""
        return connected_chroma

    @pytest.fixture
    def opened(self, chroma_url: str) -> Callable[[], ChromaStore]:
        """Return what connects to a test's own collection."""
        collection = f"opened-{next(_numbers)}"
        return lambda: ChromaStore.connect(chroma_url, collection=collection)
