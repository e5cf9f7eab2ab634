"""One owner of a folder, clients of a server, and what cannot be opened."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromadb
import pytest
from acceptance.chroma import open_twice
from chroma_server import chroma_server
from chromadb.api import ClientAPI
from chromadb.config import Settings

from langgraft._core.errors import (
    InfrastructureError,
    InputError,
    SettingsError,
    StorePathError,
)
from langgraft.memory.stores import ChromaStore
from langgraft.memory.stores.chroma.client import _hang_up
from langgraft.memory.stores.chroma.rows import row_id
from langgraft.memory.stores.chroma.table import FORMAT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Folder of a store."""
    return tmp_path / "deep" / "store"


def test_folder_when_open_already_is_refused_by_name(path: Path) -> None:
    """A second opening in one process says where, and what to do instead."""
    with ChromaStore.open(path) as store:
        store.put(("n",), "k", {})
        for name in (path, path / ".." / "store"):
            with pytest.raises(StorePathError, match=r"is open already.*ChromaStore.connect") as no:
                ChromaStore.open(name)
            assert no.value.path == path
        assert store.get(("n",), "k") is not None


def test_folder_when_its_name_is_a_link_has_the_same_owner(path: Path, tmp_path: Path) -> None:
    """Two names of one folder are one folder."""
    with ChromaStore.open(path):
        (tmp_path / "link").symlink_to(path)
        with pytest.raises(StorePathError, match="is open already"):
            ChromaStore.open(tmp_path / "link")


@pytest.mark.kill
def test_processes_when_two_want_one_folder_are_refused_until_a_kill(path: Path) -> None:
    """The second process is told; the third opens what the first left when it was killed."""
    done = open_twice(path)
    assert done.problems == []
    assert done.acknowledged >= 2


def test_store_when_closed_is_free_and_says_so(path: Path) -> None:
    """Closing twice is closing once; a closed store does nothing."""
    store = ChromaStore.open(path)
    store.close()
    store.close()
    with pytest.raises(InputError, match="is closed; open it again"):
        store.get(("n",), "k")
    ChromaStore.open(path).close()


async def test_store_when_closed_refuses_asynchronous_calls_alike(path: Path) -> None:
    """The same error, whichever way it is called."""
    store = ChromaStore.open(path)
    await store.aput(("n",), "k", {})
    store.close()
    with pytest.raises(InputError, match="is closed; open it again"):
        await store.aget(("n",), "k")


def test_folder_when_removed_is_opened_anew(path: Path) -> None:
    """Chroma keeps what it had open for a path; nothing of it may come back."""
    for n in range(3):
        with ChromaStore.open(path) as store:
            assert store.search(()) == []
            store.put(("n",), "k", {"n": n})
            assert store.search(())[0].value == {"n": n}
        shutil.rmtree(path)


def test_folder_when_it_is_a_file_is_refused(tmp_path: Path) -> None:
    """The path is named."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorePathError, match="file: cannot be used as a folder"):
        ChromaStore.open(tmp_path / "file")


def test_folder_when_chroma_cannot_read_it_is_free_again(path: Path) -> None:
    """A failed opening keeps no lock."""
    path.mkdir(parents=True)
    (path / "chroma.sqlite3").write_bytes(b"no database " * 1000)
    with pytest.raises(InfrastructureError, match="Chroma"):
        ChromaStore.open(path)
    (path / "chroma.sqlite3").unlink()
    ChromaStore.open(path).close()


def test_collection_when_not_ours_is_left_alone(path: Path) -> None:
    """Somebody else's documents are not written over."""
    client = chromadb.PersistentClient(str(path), Settings(anonymized_telemetry=False))
    others = client.create_collection("others", embedding_function=None)
    others.add(ids=["a"], embeddings=[1.0], documents=["theirs"])
    client.close()  # type: ignore[attr-defined]
    with pytest.raises(SettingsError, match=r"'others' .* was not made by"):
        ChromaStore.open(path, collection="others")
    with ChromaStore.open(path) as store:
        assert store.search(()) == []


def test_collection_of_format_1_is_read_and_written_on(path: Path) -> None:
    """Records of the first format stay: read, written over, found by prefix; its version is told."""
    address = (("bank", "a"), "old")
    parts: dict[str, str | int] = {
        "namespace": '["bank","a"]',
        "label0": '"bank"',
        "label1": '"a"',
        "key": '"old"',
        "created": 5_000,
        "updated": 6_000,
        "value": '{"n":1}',
        "vectors": "0:",
    }
    client = chromadb.PersistentClient(str(path), Settings(anonymized_telemetry=False))
    rows = client.create_collection(
        "langgraft", embedding_function=None, metadata={"langgraft:format": 1}
    )
    rows.add(ids=[row_id(address)], embeddings=[0.5], metadatas=[parts])
    client.close()  # type: ignore[attr-defined]
    with ChromaStore.open(path) as store:
        (found,) = store.search(("bank",))
        assert (found.namespace, found.key, found.value) == (*address, {"n": 1})
        assert found.updated_at.microsecond == 6
        store.put(*address, {"n": 2})
        store.put(("bank", "b"), "new", {"n": 3})
    with ChromaStore.open(path) as store:
        assert [each.value for each in store.search(("bank",))] == [{"n": 2}, {"n": 3}]
        assert store.search(("bank", "a"))[0].created_at == found.created_at
    client = chromadb.PersistentClient(str(path), Settings(anonymized_telemetry=False))
    assert client.get_collection("langgraft").metadata == {"langgraft:format": FORMAT}
    client.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["", "ab", "a b c", "-abc", "abc/", "é" * 5, "a" * 513])
def test_collection_when_its_name_is_impossible_is_refused(path: Path, name: str) -> None:
    """The rule for names is told."""
    with pytest.raises(SettingsError, match="collection must be 3 to 512"):
        ChromaStore.open(path, collection=name)
    ChromaStore.open(path).close()


def test_collections_when_two_are_in_one_folder_are_apart(path: Path) -> None:
    """A collection is a store of its own."""
    for name in ("one", "two"):
        with ChromaStore.open(path, collection=name) as store:
            assert store.search(()) == []
            store.put(("n",), name, {})


@pytest.mark.parametrize(
    "url", ["localhost:8000", "http://", "ftp://host", "http://host:no", "http://host/path", ""]
)
def test_url_when_it_is_none_is_refused(url: str) -> None:
    """A wrong setting is told from a server that is down."""
    with pytest.raises(SettingsError, match="url must be like"):
        ChromaStore.connect(url)


def test_server_when_there_is_none_says_how_to_start_one() -> None:
    """One error, ours, naming the address."""
    with pytest.raises(InfrastructureError, match=r"http://127.0.0.1:9: .*chroma run --path"):
        ChromaStore.connect("http://127.0.0.1:9")


def test_server_when_it_goes_away_is_an_infrastructure_failure(path: Path) -> None:
    """What was acknowledged is in its folder, which can then be opened without it."""
    with chroma_server(path) as url:
        store = ChromaStore.connect(url)
        store.put(("n",), "k", {"n": 1})
    with pytest.raises(InfrastructureError, match=f"could not read from .* at {url}"):
        store.get(("n",), "k")
    with pytest.raises(InfrastructureError, match="could not"):
        store.put(("n",), "k", {"n": 2})
    store.close()
    with ChromaStore.open(path) as opened:
        assert [item.value for item in opened.search(())] == [{"n": 1}]


def test_clients_when_two_use_a_server_see_each_other_at_once(chroma_url: str) -> None:
    """No reader is stale: not in gets, searches or listings, nor for who writes next."""
    open_one: Callable[[], ChromaStore] = lambda: ChromaStore.connect(  # noqa: E731
        chroma_url, collection="two-clients"
    )
    with open_one() as one, open_one() as two:
        one.put(("n",), "k", {"n": 1})
        assert two.search(("n",))[0].value == {"n": 1}
        two.put(("n",), "k", {"n": 2})
        two.put(("m",), "k", {"n": 3})
        assert one.search(("n",))[0].value == {"n": 2}
        assert one.list_namespaces() == [("m",), ("n",)]
        first, second = one.get(("n",), "k"), two.get(("n",), "k")
        assert first == second
        assert first is not None
        assert first.created_at < first.updated_at
        one.delete(("n",), "k")
        assert two.get(("n",), "k") is None
        assert two.search(("n",)) == []
        assert two.list_namespaces() == [("m",)]


@pytest.fixture
def client() -> Iterator[ClientAPI]:
    """Return a client in memory; those of a process share their collections."""
    client: Any = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    yield client
    client.close()


def test_client_when_its_store_is_closed_stays_open(client: ClientAPI) -> None:
    """Who made it closes it; the store says that it is closed, and its records are there."""
    name = "given-and-closed"
    with ChromaStore.from_client(client, collection=name) as store:
        assert not store.alone
        store.put(("n",), "k", {"n": 1})
    with pytest.raises(InputError, match="at memory is closed"):
        store.get(("n",), "k")
    assert client.get_collection(name).count() == 1
    with ChromaStore.from_client(client, collection=name) as again:
        assert [item.value for item in again.search(())] == [{"n": 1}]


def test_client_when_two_stores_have_it_see_each_other(client: ClientAPI) -> None:
    """Nothing is held in memory of what another store may write."""
    name = "given-twice"
    one, two = (ChromaStore.from_client(client, collection=name) for _ in range(2))
    with one, two:
        assert two.search(()) == []
        one.put(("n",), "k", {"n": 1})
        assert [item.value for item in two.search(())] == [{"n": 1}]


def test_client_when_persistent_writes_what_open_reads(path: Path) -> None:
    """It is the same store, in the client's folder, which messages name."""
    client = chromadb.PersistentClient(str(path), Settings(anonymized_telemetry=False))
    with ChromaStore.from_client(client) as store:
        store.put(("n",), "k", {"n": 1})
    client.close()  # type: ignore[attr-defined]
    with pytest.raises(InfrastructureError, match=f"could not open .* at {path}"):
        ChromaStore.from_client(client)
    with ChromaStore.open(path) as opened:
        assert [item.value for item in opened.search(())] == [{"n": 1}]


def test_client_of_a_server_when_given_is_used(chroma_url: str) -> None:
    """Its address is named where it can no longer be used."""
    host, port = chroma_url.removeprefix("http://").split(":")
    client: Any = chromadb.HttpClient(
        host, int(port), settings=Settings(anonymized_telemetry=False)
    )
    with ChromaStore.from_client(client, collection="given-http") as store:
        store.put(("n",), "k", {"n": 1})
        assert store.get(("n",), "k") is not None
    with pytest.raises(InputError, match=f"at {host}:{port} is closed"):
        store.get(("n",), "k")
    _hang_up(client)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("memories", "ChromaStore.open takes a folder"),
        ("http://localhost:8000", ".connect an address"),
        (None, "must be a chromadb client, .* got None"),
        (chromadb.EphemeralClient, "must be a chromadb client, .* got <function"),
    ],
)
def test_client_when_it_is_none_is_refused(given: Any, told: str) -> None:
    """What makes one is named, and where folders and addresses go."""
    with pytest.raises(SettingsError, match=told):
        ChromaStore.from_client(given)


async def test_client_when_asynchronous_is_refused(chroma_url: str) -> None:
    """Awaited or not: the store's own asynchronous methods need none."""
    host, port = chroma_url.removeprefix("http://").split(":")
    pending: Any = chromadb.AsyncHttpClient(host, int(port))
    with pytest.raises(SettingsError, match="got an asynchronous one: give an HttpClient"):
        ChromaStore.from_client(pending)
    client: Any = await pending
    with pytest.raises(SettingsError, match="got an asynchronous one"):
        ChromaStore.from_client(client)


def test_import_when_no_store_is_opened_loads_no_chroma() -> None:
    """Chroma takes a second to import."""
    code = (
        "import sys; from langgraft.memory.stores import ChromaStore;"
        "print('chromadb' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_scrub_that_fails_leaves_a_store_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: Chroma was closed for it, and is open again."""

    def fail(_: Path) -> None:
        raise InfrastructureError("the disk is full")

    with ChromaStore.open(tmp_path / "bank") as store:
        store.put(("a",), "k", {"n": 1})
        with monkeypatch.context() as patched:
            patched.setattr("langgraft.memory.stores.chroma.client._scrub", fail)
            with pytest.raises(InfrastructureError, match="the disk is full"):
                store.scrub()
        store.put(("a",), "l", {"n": 2})
        assert [item.value["n"] for item in store.search(("a",))] == [1, 2]
        assert store.scrub()
