"""The suite of stores on stores that are not ours, each failing exactly where a table says.

`make acceptance` runs it with pytest: what is tried here is other people's code, and ours only in
that the tables are true.
"""

import asyncio
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import ClassVar, Final

import postgres_server
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import AsyncPostgresStore
from langgraph.store.sqlite import SqliteStore
from postgres_server import Schemas

from acceptance.command import run, worker_environment
from acceptance.figure import Figure, Setting, share
from langgraft.memory.testing.stores.base import Mode
from langgraft.memory.testing.stores.reference import inmemory_departures
from langgraft.testing import StoreConformance, word_index


def measure(setting: Setting) -> list[Figure]:
    """Run the suite, and count cases by store."""
    report = setting.work / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0"]
    setting.say("the suite of stores on LangGraph's own")
    done = run(
        [*command, f"--junitxml={report}", __file__],
        folder=setting.checkout,
        environment=worker_environment(),
    )
    if done.code > 1:  # it did not run to its end
        return [Figure("the suite runs", "pytest", done.stdout[-500:], "it does", passed=False)]
    cases: dict[str, list[ET.Element]] = {store: [] for store in STORES}
    for case in ET.parse(report).iter("testcase"):
        cases[case.get("classname", "").rpartition(".")[2]].append(case)
    return [_figure(store, cases[store]) for store in STORES]


def _figure(store: str, cases: list[ET.Element]) -> Figure:
    found = Counter(part.tag for case in cases for part in case)
    promise = (
        f"LangGraph's `{store.removeprefix('Test')}` fails the suite only where its table says"
    )
    passed = len(cases) - found.total()
    # An expected failure is filed as skipped; one that passes, as a failure.
    absent = [part for case in cases for part in case.iter("skipped") if part.get("type") is None]
    failed = [
        case.get("name", "") for case in cases if {"failure", "error"} & {p.tag for p in case}
    ]
    if absent or not cases:
        said = absent[0].get("message", "") if absent else "no case"
        return Figure(promise, "langgraft.testing", said, "the table's", passed=None)
    told = f"{share(passed, len(cases), failed)} cases pass; {found['skipped']} fail as documented"
    return Figure(promise, "langgraft.testing", told, "the table's", passed=not failed)


class TestInMemoryStore(StoreConformance):
    """LangGraph's `InMemoryStore` fails exactly where `INMEMORY_DEFECTS` says."""

    semantic = True
    departures: ClassVar[Mapping[str, str]] = inmemory_departures()

    @pytest.fixture
    def store(self) -> BaseStore:
        """Return an empty store."""
        return InMemoryStore()

    @pytest.fixture
    def semantic_store(self) -> BaseStore:
        """Return an empty store with an index."""
        return InMemoryStore(index=word_index())


_OPERATORS_ONLY = "A mapping in a filter is taken for operators only, and refused otherwise."
SQLITE_DEPARTURES: Mapping[str, str] = {
    "test_record_when_put_again_keeps_when_it_was_created": (
        "A record that is put again is replaced by one created then."
    ),
    "test_times_when_read_are_in_order_and_know_their_zone": "Times are read without a zone.",
    "test_integers_when_beyond_64_bits_come_back_exact": "Integers beyond 64 bits are refused.",
    "test_eq_when_given_does_as_a_plain_value": "`$eq` never equals a list.",
    "test_ne_when_the_field_is_missing_lets_the_record_through": (
        "In SQL a missing field is neither equal nor unequal to anything."
    ),
    "test_comparison_when_the_field_holds_a_text_leaves_the_record_out_of_numbers": (
        "A text counts as the number 0."
    ),
    "test_filter_when_names_and_values_are_hostile_takes_them_literally": (
        "Filters may only name fields of letters, digits, `_`, `-` and `.`."
    ),
    "test_filter_when_a_mapping_is_given_asks_for_what_it_names": _OPERATORS_ONLY,
    "test_filter_when_conditions_are_nested_compares_inside": _OPERATORS_ONLY,
}
"""Case → what LangGraph's `SqliteStore` 3.1 does instead; all of it is outside of langgraft."""


class TestSqliteStore(StoreConformance):
    """LangGraph's `SqliteStore`, without an index, fails exactly where the table says."""

    modes: ClassVar[Sequence[Mode]] = ("sync",)  # its asynchronous calls are another class
    persistent = True
    dotted_filters = True
    departures: ClassVar[Mapping[str, str]] = SQLITE_DEPARTURES

    @pytest.fixture
    def path(self, tmp_path: Path) -> str:
        """Return where the store is."""
        return str(tmp_path / "store.sqlite")

    @pytest.fixture
    def opened(self) -> Iterator[ExitStack]:
        """Return what closes the stores that were opened."""
        with ExitStack() as opened:
            yield opened

    @pytest.fixture
    def reopen(self, path: str, opened: ExitStack) -> Callable[[], BaseStore]:
        """Return what opens the store again."""

        def reopen() -> BaseStore:
            store = opened.enter_context(SqliteStore.from_conn_string(path))
            store.setup()
            return store

        return reopen

    @pytest.fixture
    def store(self, reopen: Callable[[], BaseStore]) -> BaseStore:
        """Return an empty store."""
        return reopen()


_AS_TEXT = "`$gt`, `$gte`, `$lt` and `$lte` compare the texts of numbers: 995 comes after 1815."
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


STORES: Final = (
    "TestInMemoryStore",
    "TestSqliteStore",
    "TestPostgresStore",
    "TestAsyncPostgresStore",
)
