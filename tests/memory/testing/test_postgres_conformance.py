"""The suite on LangGraph's PostgreSQL stores, and on a ranked store over one."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import ClassVar

import postgres_server
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.postgres import AsyncPostgresStore
from postgres_server import Schemas

from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore
from langgraft.memory.testing.stores.suite import Mode
from langgraft.testing import StoreConformance, word_index

_AS_TEXT = "`$gt`, `$gte`, `$lt` and `$lte` compare the texts of numbers: 995 comes after 1815."
_OPERATORS_ONLY = "A mapping in a filter is taken for operators only, and refused otherwise."
POSTGRES_DEPARTURES: Mapping[str, str] = {
    "test_gt_when_given_compares_numbers": _AS_TEXT,
    "test_gte_when_given_compares_numbers": _AS_TEXT,
    "test_lt_when_given_compares_numbers": _AS_TEXT,
    "test_lte_when_given_compares_numbers": _AS_TEXT,
    "test_comparison_when_the_field_holds_a_text_leaves_the_record_out_of_numbers": _AS_TEXT,
    "test_filter_when_a_mapping_is_given_asks_for_what_it_names": _OPERATORS_ONLY,
    "test_filter_when_conditions_are_nested_compares_inside": _OPERATORS_ONLY,
    "test_ne_when_the_field_is_missing_lets_the_record_through": (
        "In SQL a missing field is neither equal nor unequal to anything."
    ),
    "test_floats_when_whole_and_large_or_negative_zero_stay_floats": (
        "`jsonb` keeps numbers as decimals: 1e16 comes back as an integer, -0.0 as 0.0."
    ),
    "test_key_when_long_names_its_record": "A key is in an index, whose rows end at 8,191 bytes.",
}
"""Case → what LangGraph's `PostgresStore` 3.2 does instead; all of it is outside of langgraft."""


class TestPostgresStore(StoreConformance):
    """LangGraph's `PostgresStore` fails exactly where the table says."""

    persistent = True
    nul_characters = False
    semantic = postgres_server.has_vectors()
    departures: ClassVar[Mapping[str, str]] = POSTGRES_DEPARTURES

    @pytest.fixture
    def place(self, postgres: Schemas) -> str:
        """Return where the store is."""
        return postgres.new()

    @pytest.fixture
    def store(self, postgres: Schemas, place: str) -> BaseStore:
        """Return an empty store."""
        return postgres.store(place)

    @pytest.fixture
    def reopen(self, postgres: Schemas, place: str) -> Callable[[], BaseStore]:
        """Return what opens the store again."""
        return lambda: postgres.store(place)

    @pytest.fixture
    def semantic_store(self, postgres: Schemas) -> BaseStore:
        """Return an empty store with an index."""
        return postgres.store(index=word_index())


class TestRankedStoreOverPostgresStore(StoreConformance):
    """A ranked store fails only what it hands on to PostgreSQL."""

    persistent = True
    nul_characters = False
    departures: ClassVar[Mapping[str, str]] = POSTGRES_DEPARTURES

    @pytest.fixture
    def place(self, postgres: Schemas) -> str:
        """Return where the store is."""
        return postgres.new()

    @pytest.fixture
    def store(self, postgres: Schemas, place: str) -> BaseStore:
        """Return an empty store."""
        return RankedStore(postgres.store(place), BM25())

    @pytest.fixture
    def reopen(self, postgres: Schemas, place: str) -> Callable[[], BaseStore]:
        """Return what opens the store again."""
        return lambda: RankedStore(postgres.store(place), BM25())


class TestAsyncPostgresStore(StoreConformance):
    """LangGraph's asynchronous store for PostgreSQL fails exactly where the table says."""

    modes: ClassVar[Sequence[Mode]] = ("async",)
    nul_characters = False
    sync_inside_loop = False
    departures: ClassVar[Mapping[str, str]] = POSTGRES_DEPARTURES

    @pytest.fixture
    def store(self, postgres: Schemas, runner: asyncio.Runner) -> Iterator[BaseStore]:
        """Return an empty store, open in the loop of the suite."""
        opened = AsyncExitStack()

        async def start() -> BaseStore:
            store = await opened.enter_async_context(
                AsyncPostgresStore.from_conn_string(postgres.new())
            )
            await store.setup()
            return store

        yield runner.run(start())
        runner.run(opened.aclose())
