"""The suite of memory providers: all that are registered, on three stores; and the controls.

In memory every provider goes through every case. On the two stores where a write takes milliseconds
every provider goes through half of them, so that every case meets half of the providers there.
"""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

import psycopg
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.postgres import PostgresStore
from postgres_server import Schemas
from provider_variants import CONTROLS, REGISTERED, SETTINGS, Part

from langgraft.memory.stores import ChromaStore
from langgraft.memory.stores.chroma.client import Connection, open_folder
from langgraft.memory.testing.providers.suite import NewStore, Reopen
from langgraft.testing import ProviderConformance

_numbers = itertools.count()


def suites(parts: Mapping[str, Part], where: Part, left_out: int | None = None) -> dict[str, Part]:
    """Return the suites of providers on one kind of store, under names that pytest collects.

    Args:
        parts: What providers say of themselves.
        where: The kind of store.
        left_out: 0 or 1, the half of its cases that the first provider does not go through: the
            second one leaves out the other half, and so on. By default all go through all.
    """
    cases = sorted(name for name in dir(ProviderConformance) if name.startswith("test_"))
    found = {}
    for number, (known, part) in enumerate(parts.items()):
        name = f"Test_{known}_{where.__name__}"
        found[name] = type(name, (part, where), {"__module__": __name__, "__doc__": where.__doc__})
        for case in [] if left_out is None else cases[(number + left_out) % 2 :: 2]:
            setattr(found[name], case, None)
    return found


class InMemory(ProviderConformance):
    """In LangGraph's `InMemoryStore`."""

    many = 2_000


class Small(ProviderConformance):
    """In LangGraph's `InMemoryStore`, with fewer copies of one text."""

    examples = 10
    many = 500


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


globals().update(
    suites(REGISTERED, InMemory)
    | suites(SETTINGS, Small)
    | suites(CONTROLS, Small)
    | suites(REGISTERED, InChroma, left_out=0)
    | suites(REGISTERED, InPostgres, left_out=1)
)
