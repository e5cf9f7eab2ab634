"""A `ChromaStore` goes on where its collection was made again."""

from collections.abc import Iterator
from pathlib import Path

import chromadb
import pytest
from chroma_server import chroma_server, own_port
from chromadb.api import ClientAPI
from chromadb.config import Settings
from memory_cases import asking, make_episode

from langgraft._core.errors import SettingsError
from langgraft.memory.providers import TrajectoryMemory
from langgraft.memory.stores import ChromaStore


@pytest.fixture
def client() -> Iterator[ClientAPI]:
    """Return a client whose collections are its own."""
    client = chromadb.EphemeralClient(settings=Settings(anonymized_telemetry=False))
    yield client
    for each in client.list_collections():
        client.delete_collection(each.name)


def test_store_when_its_server_comes_back_with_a_new_volume_goes_on(tmp_path: Path) -> None:
    """It is empty then: reads and writes of the same handle succeed, and so does recall."""
    with own_port() as port:
        with chroma_server(tmp_path / "one", port) as url:
            store = ChromaStore.connect(url)
            store.put(("a",), "k", {"n": 1})
            memory = TrajectoryMemory(store)
            memory.file(make_episode("before"))
            assert memory.provide("open the red door", asking()).items
        with chroma_server(tmp_path / "two", port), store:
            assert store.get(("a",), "k") is None
            assert store.search(("a",)) == []
            assert not memory.provide("open the red door", asking()).items
            memory.refresh()
            memory.file(make_episode("after"))
            store.put(("a",), "k", {"n": 2})
            found = store.get(("a",), "k")
            assert found is not None
            assert found.value == {"n": 2}
            (item,) = memory.provide("open the red door", asking()).items
            assert item.episode_id == "after"


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made again"])
@pytest.mark.parametrize("first", ["get", "search", "put", "delete", "namespaces"])
def test_store_when_its_collection_was_deleted_goes_on_whatever_comes_first(
    client: ClientAPI, first: str, again: bool
) -> None:
    """The collection of the name is fetched, or made, and the call is made once more."""
    store = ChromaStore.from_client(client, collection="mine")
    store.put(("a",), "k", {"n": 1})
    client.delete_collection("mine")
    if again:
        ChromaStore.from_client(client, collection="mine").put(("a",), "other", {"n": 2})
    match first:
        case "get":
            assert store.get(("a",), "k") is None
        case "search":
            assert [each.key for each in store.search(("a",))] == (["other"] if again else [])
        case "put":
            store.put(("a",), "k", {"n": 3})
        case "delete":
            store.delete(("a",), "k")
        case "namespaces":
            assert store.list_namespaces() == ([("a",)] if again else [])
    store.put(("a",), "k", {"n": 4})
    found = store.get(("a",), "k")
    assert found is not None
    assert found.value == {"n": 4}


def test_store_when_the_new_collection_is_somebody_elses_says_so(
    client: ClientAPI,
) -> None:
    """It is neither read nor written."""
    store = ChromaStore.from_client(client, collection="mine")
    client.delete_collection("mine")
    client.create_collection("mine", embedding_function=None)
    with pytest.raises(SettingsError, match="was not made by this version of ChromaStore"):
        store.put(("a",), "k", {"n": 1})
