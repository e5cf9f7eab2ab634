"""Stores by name: what opens, what is refused, and what is never told."""

import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from postgres_server import Schemas
from psycopg.conninfo import conninfo_to_dict

from langgraft._core.errors import InfrastructureError, InputError, MissingExtraError, SettingsError
from langgraft.memory.stores.named import open_store, shown, store_kind

SECRETS = (
    "postgresql://bob:s3cret@127.0.0.1:1/bank",
    "postgresql://bob:s3cret@127.0.0.1:1/bank?application_name=s3cret",
    "postgresql://127.0.0.1:1/bank?password=s3cret",
    "postgresql://bob:x/s3cret@127.0.0.1/bank",
    "postgresql://bob:x@s3cret@127.0.0.1:1/bank",
    "postgresql://bob:1#s3cret@127.0.0.1/bank",
    "postgresql://bob:1?s3cret@127.0.0.1/bank",
    "postgresql://bob@127.0.0.1/bank?no_such_option=s3cret",
    "postgresql://bob@127.0.0.1:s3cret/bank",
    "http://bob:s3cret@127.0.0.1:1",
    "redis://bob:s3cret@127.0.0.1:1",
    "postgresql:bob:s3cret@127.0.0.1/bank",
    "host=127.0.0.1 password=s3cret dbname=bank",
)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("memory", "memory"),
        ("chroma:bank", "chroma"),
        ("sqlite:bank.sqlite", "sqlite"),
        ("http://localhost:8000", "chroma-server"),
        ("https://chroma.example", "chroma-server"),
        ("postgresql://localhost/bank", "postgresql"),
        ("postgres://localhost/bank", "postgresql"),
    ],
)
def test_name_when_known_then_stands_for_a_kind_of_store(spec: str, kind: str) -> None:
    """What a name stands for is told without opening anything."""
    assert store_kind(spec) == kind


@pytest.mark.parametrize(
    "spec", ["", "chroma", "chroma:", "sqlite:", "memory:1", "redis", "http://", "postgresql:x"]
)
def test_name_when_unknown_then_is_refused_with_those_there_are(spec: str) -> None:
    """The line says what was asked for and what there is instead."""
    with pytest.raises(
        SettingsError, match=r"no store is called .*memory, chroma:PATH, http"
    ) as no:
        open_store(spec)
    assert repr(spec) in str(no.value)


@pytest.mark.parametrize("spec", SECRETS)
def test_url_when_it_cannot_be_opened_then_no_secret_is_told(spec: str) -> None:
    """However a password was typed, no message shows it, nor does one that a message rests on."""
    assert "s3cret" not in shown(spec)
    with pytest.raises(InputError) as refused, open_store(spec):
        pass
    error: BaseException | None = refused.value
    while error is not None:
        assert "s3cret" not in str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("spec", ["postgresql://127.0.0.1:1/bank", "http://127.0.0.1:1"])
def test_server_when_it_does_not_answer_then_is_one_line(spec: str) -> None:
    """An address at which nobody listens is the user's to mend."""
    with pytest.raises(SettingsError, match=r"127\.0\.0\.1:1") as refused, open_store(spec):
        pass
    assert "\n" not in str(refused.value)


def test_extra_when_not_installed_then_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the line to install it is what is told."""
    monkeypatch.setitem(sys.modules, "langgraph.store.postgres", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'langgraft\[postgres\]'"),
        open_store("postgresql://localhost/bank"),
    ):
        pass


def test_memory_when_opened_twice_then_is_two_stores() -> None:
    """Nothing is shared behind the caller's back."""
    with open_store("memory") as one, open_store("memory") as two:
        one.put(("a",), "k", {"n": 1})
        assert two.get(("a",), "k") is None


def test_chroma_when_opened_again_then_has_what_was_kept(tmp_path: Path) -> None:
    """A folder is opened as one store at a time, and keeps its records."""
    spec = f"chroma:{tmp_path / 'bank'}"
    with open_store(spec) as store:
        store.put(("a",), "k", {"n": 1})
        with pytest.raises(InputError, match="open already"), open_store(spec):
            pass
    with open_store(spec) as store:
        found = store.get(("a",), "k")
        assert found is not None
        assert found.value == {"n": 1}


def test_chroma_when_the_path_is_a_file_then_is_one_line(tmp_path: Path) -> None:
    """A file in the way is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"), open_store(f"chroma:{tmp_path / 'file'}"):
        pass


def test_sqlite_when_opened_again_or_beside_then_has_what_was_kept(tmp_path: Path) -> None:
    """A file is opened any number of times at once; its missing folder is made."""
    spec = f"sqlite:{tmp_path / 'folder' / 'bank.sqlite'}"
    with open_store(spec) as store, open_store(spec) as other:
        store.put(("a",), "k", {"n": 1})
        assert other.search(("a",))[0].value == {"n": 1}
    with open_store(f"sqlite:{tmp_path}") as store:
        store.put(("a",), "k", {"n": 2})
    assert (tmp_path / "memory.sqlite").exists(), "a folder stands for a file in it"


def test_sqlite_when_the_file_is_something_else_then_is_one_line(tmp_path: Path) -> None:
    """What is no store of ours is named and left as it is; a database in memory has another name."""
    (tmp_path / "file").write_text("no database, whatever it is called by")
    (tmp_path / "folder").mkdir()
    foreign = sqlite3.connect(tmp_path / "other.sqlite")
    foreign.execute("CREATE TABLE theirs (n)")
    foreign.close()
    for name, told in (("file", "file"), ("other.sqlite", "not a memory store"), ("file/x", "x")):
        with pytest.raises(InputError, match=told) as no, open_store(f"sqlite:{tmp_path / name}"):
            pass
        assert "\n" not in str(no.value)
    with pytest.raises(SettingsError, match="in a file"), open_store("sqlite::memory:"):
        pass


def test_postgres_when_opened_then_has_its_tables_and_keeps_records(postgres_uri: str) -> None:
    """A database is made ready on first use, and holds what was put there."""
    for number in range(2):
        with open_store(postgres_uri) as store:
            store.put(("named",), str(number), {"n": number})
            assert len(store.search(("named",))) == number + 1
    with open_store(postgres_uri) as store:
        for number in range(2):
            store.delete(("named",), str(number))


def test_postgres_when_many_open_it_at_first_gives_each_a_store(
    postgres_uri: str, postgres: Schemas
) -> None:
    """Tables that several processes make at the same time are made once, and fail nobody."""
    named = urlsplit(postgres_uri)
    place = quote(str(conninfo_to_dict(postgres.new())["options"]))
    url = named._replace(query=f"{named.query}&options={place}").geturl()

    def opened(number: int) -> None:
        with open_store(url) as store:
            store.put(("many",), str(number), {"n": number})

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(opened, range(6)))
    with open_store(url) as store:
        assert len(store.search(("many",))) == 6


def test_postgres_when_the_database_does_not_exist_then_is_one_line(postgres_uri: str) -> None:
    """What the server says stands in the refusal."""
    spec = urlsplit(postgres_uri)._replace(path="/no_such_database").geturl()
    with pytest.raises(SettingsError, match='"no_such_database" does not exist'), open_store(spec):
        pass


async def test_postgres_when_its_connection_is_lost_then_the_infrastructure_failed(
    postgres_uri: str,
) -> None:
    """A server that goes away is no bug of whoever used the store."""
    named = urlsplit(postgres_uri)
    options = "&".join(filter(None, [named.query, "application_name=to_be_lost"]))
    with open_store(named._replace(query=options).geturl()) as store:
        await store.aget(("lost",), "k")
        with psycopg.connect(postgres_uri, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE application_name = 'to_be_lost'"
            )
        with pytest.raises(InfrastructureError, match=r"store postgresql://.* does not answer"):
            store.get(("lost",), "k")
        with pytest.raises(InfrastructureError, match="does not answer"):
            await store.aget(("lost",), "k")
