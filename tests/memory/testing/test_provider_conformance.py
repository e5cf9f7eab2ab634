"""The suite of memory providers: all that are registered, in memory, and two on other stores.

What a store may get wrong does not depend on the provider. The two are those that write most: one
moves items between tiers, one replaces what it has filed; both in SQLite, one on each server, where
the suite of stores draws what they write and more. Settings that make a provider another
one, and the controls, are of the matrix too.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import psycopg
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.postgres import PostgresStore
from postgres_server import Schemas
from provider_variants import CONTROLS, REGISTERED, SETTINGS, Part, named

from langgraft.memory import LayeredMemory, MemoryProvider
from langgraft.memory.providers import SimpleRAG
from langgraft.memory.stores import ChromaStore, SQLiteFileStore
from langgraft.memory.stores.chroma.client import Connection, open_folder
from langgraft.memory.testing.providers.base import Make, NewStore, Reopen
from langgraft.testing import ProviderConformance

_numbers = itertools.count()


def suites(parts: Mapping[str, Part], where: Part) -> dict[str, Part]:
    """Return the suites of providers on one kind of store, under names that pytest collects."""
    bodies = {"__module__": __name__, "__doc__": where.__doc__}
    names = {known: f"Test_{known}_{where.__name__}" for known in parts}
    return {
        names[known]: type(names[known], (part, where), bodies) for known, part in parts.items()
    }


class InMemory(ProviderConformance):
    """In LangGraph's `InMemoryStore`."""

    examples = 12


@pytest.mark.matrix
class Varied(ProviderConformance):
    """In LangGraph's `InMemoryStore`, with fewer histories: most is as with the defaults."""

    examples = 6
    episodes = 5
    at_once = 16
    many = (
        60  # more than the smallest banks have room for; larger ones are filled with the defaults
    )


@pytest.mark.matrix
class InChroma(ProviderConformance):
    """In a folder of Chroma, where a write takes milliseconds."""

    examples = 2
    episodes = 4
    at_once = 16
    many = 60

    @pytest.fixture
    def new_store(self, chroma_folder: Connection) -> NewStore:
        """Return what makes collections of a folder that all cases share."""
        return lambda: _collection(chroma_folder, f"bank-{next(_numbers)}")

    @pytest.fixture
    def reopen(self, chroma_folder: Connection) -> Reopen:
        """Return what opens a collection again."""
        return lambda store: _collection(chroma_folder, _COLLECTIONS[id(store)])


@pytest.mark.matrix
class InPostgres(ProviderConformance):
    """In a PostgreSQL server, where a write takes milliseconds."""

    examples = 2
    episodes = 4
    at_once = 16
    many = 60

    @pytest.fixture
    def new_store(self, tables: "Tables") -> NewStore:
        """Return what hands out empty tables."""
        return tables.empty

    @pytest.fixture
    def reopen(self, tables: "Tables") -> Reopen:
        """Return what connects to the tables of a store again."""
        return tables.again


@pytest.mark.matrix
class InSQLite(ProviderConformance):
    """In a SQLite file each, shared with whoever opens it again."""

    examples = 2
    episodes = 4

    @pytest.fixture
    def new_store(self, sqlite_files: Callable[[], SQLiteFileStore]) -> NewStore:
        """Return what makes files."""
        return sqlite_files

    @pytest.fixture
    def reopen(self, sqlite_files: Callable[[Path], SQLiteFileStore]) -> Reopen:
        """Return what opens a file again."""
        return lambda store: sqlite_files(cast("SQLiteFileStore", store).path)


@pytest.fixture
def sqlite_files(tmp_path: Path) -> Iterator[Callable[..., SQLiteFileStore]]:
    """Return what opens files, which are closed in the end."""
    with ExitStack() as opened:
        yield lambda path=None: opened.enter_context(
            SQLiteFileStore(path or tmp_path / f"{next(_numbers)}.sqlite")
        )


class TestLayeredMemory(ProviderConformance):
    """A memory of two banks promises what that of its own bank does."""

    examples = 5
    departures: ClassVar[Mapping[str, str]] = {
        "test_settings_when_read_from_their_description_make_the_same_provider": (
            "Banks make it, which no settings name."
        )
    }

    @pytest.fixture
    def make(self) -> Make:
        """Return what makes one whose shared bank is empty."""
        one = named("insight", granularity="individual", top_k=3)
        return lambda store: LayeredMemory(one(store), [SimpleRAG(store, namespace=("team",))])

    def with_settings(
        self, memory: MemoryProvider[Any], store: BaseStore, **changes: Any
    ) -> MemoryProvider[Any]:
        """Change the settings of its own bank."""
        if not isinstance(memory, LayeredMemory):
            return super().with_settings(memory, store, **changes)
        own = super().with_settings(memory.own, store, **changes)
        return LayeredMemory(own, memory.shared)


_COLLECTIONS: dict[int, str] = {}


def _collection(connection: Connection, name: str) -> BaseStore:
    store = ChromaStore(replace(connection, close=lambda: None), collection=name, index=None)
    _COLLECTIONS[id(store)] = name
    return store


@pytest.fixture(scope="module")
def chroma_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """Open a folder for all cases: that takes longer than most of them."""
    connection = open_folder(tmp_path_factory.mktemp("chroma") / "store")
    yield connection
    connection.close()


class Tables:
    """Stores in PostgreSQL, emptied and handed out again: making one takes longer than a case."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._made: list[tuple[str, PostgresStore]] = []
        self._used = 0
        self._reopened = ExitStack()

    def empty(self) -> BaseStore:
        """Return a store that holds nothing, and that nobody uses in this case."""
        if self._used == len(self._made):
            place = self._schemas.new()
            self._made.append((place, self._schemas.store(place)))
        self._used += 1
        return self._made[self._used - 1][1]

    def again(self, store: BaseStore) -> BaseStore:
        """Connect to the tables of a store once more."""
        (place,) = (place for place, made in self._made if made is store)
        return self._reopened.enter_context(PostgresStore.from_conn_string(place))

    def recycle(self) -> None:
        """Empty what was used, and close what was opened again."""
        self._reopened.close()
        for place, _ in self._made[: self._used]:
            with psycopg.connect(place, autocommit=True) as connection:
                connection.execute("DELETE FROM store")
        self._used = 0


@pytest.fixture(scope="module")
def all_tables(postgres_uri: str) -> Iterator[Tables]:
    """Make stores for all cases."""
    schemas = Schemas(postgres_uri)
    yield Tables(schemas)
    schemas.close()


@pytest.fixture
def tables(all_tables: Tables) -> Iterator[Tables]:
    """Return the stores, all of them empty."""
    yield all_tables
    all_tables.recycle()


_WRITING = {name: REGISTERED[name] for name in ("lightweight", "coding")}
globals().update(
    suites(REGISTERED, InMemory)
    | suites({**SETTINGS, **CONTROLS}, Varied)
    | suites({"lightweight": REGISTERED["lightweight"]}, InChroma)
    | suites({"coding": REGISTERED["coding"]}, InPostgres)
    | suites(_WRITING, InSQLite)
)
