"""A bank in a process, and in several: one writer at a time, and nobody reads what is old."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from acceptance import banks
from acceptance.banks import UnhurriedStore
from acceptance.command import worker_environment
from acceptance.fold import plain_store
from dict_store import DictStore
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from memory_cases import asking, make_episode
from postgres_server import Schemas
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from langgraft._core.errors import BankConflictError, InfrastructureError
from langgraft.memory.bank import BEFORE, MOST_IDLE, WriterLock, open_bank, records_namespace
from langgraft.memory.model import Add, MemoryDelta, fold
from langgraft.memory.provider import EPISODES, MemoryProvider
from langgraft.memory.providers import InsightMemory, SimpleRAG, TrajectoryMemory, make_provider
from langgraft.memory.providers.simple_rag import SimpleRAGSettings
from langgraft.memory.providers.trajectory import TrajectorySettings
from langgraft.memory.rankers import BM25, Dense
from langgraft.memory.stores import ChromaStore, RankedStore, ReadOnlyStore
from langgraft.memory.writers import other_writers

BANK = records_namespace(("b",))
TASK = "open the red door"


class CountingStore(InMemoryStore):
    """Counts the listings it is asked for."""

    listings = 0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Count, and do."""
        listed = list(ops)
        self.listings += sum(isinstance(op, SearchOp) for op in listed)
        return super().batch(listed)


class FailingStore(InMemoryStore):
    """Refuses writes as a database does that went away."""

    down = False

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Fail, or do."""
        listed = list(ops)
        if self.down and any(isinstance(op, PutOp) for op in listed):
            raise InfrastructureError("down")
        return super().batch(listed)


def orders(memory: MemoryProvider[Any]) -> list[int]:
    """Return the numbers of a bank's items."""
    return sorted(item.order_index for item in memory.content().items.values())


def twins() -> tuple[DictStore, DictStore]:
    """Return two stores on one database, as two processes have them."""
    one, other = DictStore(), DictStore()
    other.records = one.records
    return one, other


# In one process ---------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(limit=st.integers(1, 4), count=st.integers(1, 8))
def test_file_when_upkeep_is_due_writes_both_in_one_batch(limit: int, count: int) -> None:
    """There is no moment at which a bank holds an episode without the upkeep it makes due."""
    store = DictStore()
    memory = SimpleRAG(store, settings=SimpleRAGSettings(max_items=limit))
    log: list[MemoryDelta] = []
    for number in range(count):
        store.log.clear()
        log.append(memory.file(make_episode(f"e{number}")))
        keys = [[op.key for op in batch if isinstance(op, PutOp)] for batch in store.log]
        writes = [batch for batch in keys if {*batch} - {BEFORE}]
        assert len(writes) == 1
        assert fold(log) == memory.content()
        assert not memory.manage(dry_run=True)
    assert len(memory.content().items) == min(limit, count)


def test_file_when_the_store_fails_leaves_the_episode_to_be_filed_again() -> None:
    """What is not in the log is not in the bank."""
    store = FailingStore()
    memory = SimpleRAG(store, settings=SimpleRAGSettings(max_items=1))
    log = [memory.file(make_episode("a"))]
    store.down = True
    with pytest.raises(InfrastructureError):
        memory.file(make_episode("b"))
    store.down = False
    assert fold(log) == memory.content()
    log.append(memory.file(make_episode("b")))
    assert fold(log) == memory.content()


@pytest.mark.parametrize("file", [banks.by_threads, banks.by_tasks, banks.by_loops])
def test_bank_when_filed_in_from_all_sides_is_the_fold(
    file: Callable[[BaseStore, str, str, list[str]], list[MemoryDelta]],
) -> None:
    """Threads, tasks and event loops, each with providers of their own, each episode twice."""
    rounds = banks.in_process(file, 8)
    assert (rounds.made, rounds.wrong) == (8, [])


def test_provider_when_made_for_each_turn_sees_all_and_lists_the_bank_once() -> None:
    """It is fresh without `refresh`, also where nobody held the bank open in between."""
    store = CountingStore()
    listings = set()
    for number in range(8):
        memory = TrajectoryMemory(store, settings=TrajectorySettings(top_k=50))
        memory.file(make_episode(f"e{number}", task=f"{TASK} {number}"))
        found = TrajectoryMemory(store, settings=TrajectorySettings(top_k=50)).provide(
            TASK, asking()
        )
        assert len(found.items) == number + 1
        listings.add(store.listings)
        del memory, found
        gc.collect()
    assert len(listings) == 1


def test_providers_when_their_settings_differ_see_what_each_writes() -> None:
    """Another ranker has another index, and a provider without one writes past none."""
    store = InMemoryStore()
    where = ("b",)
    ranked = TrajectoryMemory(store, namespace=where)
    dense = TrajectoryMemory(
        store, namespace=where, settings=TrajectorySettings(ranker=Dense("hashing"), top_k=9)
    )
    frozen = TrajectoryMemory(ReadOnlyStore(store), namespace=where)
    full = make_provider("full_history", store, namespace=where, settings={})
    for number, memory in enumerate((ranked, dense, full)):
        memory.file(make_episode(f"e{number}", task=f"{TASK} {number}"))
        for reader in (ranked, frozen):
            assert [i.episode_id for i in reader.provide(TASK, asking()).items] == [f"e{number}"]
        assert len(dense.provide(TASK, asking()).items) == number + 1


def test_bank_when_seen_through_wrappers_is_the_same() -> None:
    """Whoever could write to the same records has the same lock."""
    store = InMemoryStore()
    bank = open_bank(store, BANK)
    assert open_bank(ReadOnlyStore(store), BANK) is bank
    assert open_bank(RankedStore(ReadOnlyStore(store), BM25()), BANK) is bank
    others = [
        open_bank(store, records_namespace(("other",))),
        open_bank(InMemoryStore(), BANK),
    ]
    assert len({id(each) for each in (bank, *others)}) == 1 + len(others)


def test_banks_when_many_are_opened_do_not_pile_up() -> None:
    """A tenant each: the latest indexes are kept, a bank in use always, and a store lets go."""
    store = InMemoryStore()
    used = open_bank(store, records_namespace(("used",)))
    first = weakref.ref(open_bank(store, records_namespace(("first",))).indexes)
    kept = [open_bank(store, records_namespace((f"tenant {n}",))) for n in range(MOST_IDLE)]
    assert open_bank(store, records_namespace(("used",))) is used
    assert id(open_bank(store, records_namespace(("tenant 5",)))) == id(kept[5])
    kept.clear()
    gc.collect()
    assert first() is None
    del store, used
    gc.collect()
    left = [each for each in gc.get_objects() if type(each).__name__ == "OpenBank"]
    assert not [each for each in left if each._namespace[0].startswith("tenant ")]


@pytest.mark.parametrize("moment", range(12))
async def test_task_when_canceled_at_any_moment_leaves_lock_and_recall_sound(moment: int) -> None:
    """Canceled while it waits or writes: the next one files, and finds what is there."""
    store = UnhurriedStore()
    memory = TrajectoryMemory(store, settings=TrajectorySettings(top_k=9))
    await memory.afile(make_episode("before"))
    await memory.aprovide(TASK, asking())
    tasks = [asyncio.create_task(memory.afile(make_episode(f"e{n}"))) for n in range(3)]
    for _ in range(moment):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(120):
        await TrajectoryMemory(store).afile(make_episode("after"))
    content = await memory.acontent()
    assert len(content.items) == content.state[EPISODES]
    recall = await memory.aprovide(TASK, asking())
    assert {item.id for item in recall.items} == set(content.items)


# In several processes ---------------------------------------------------------------------


@contextmanager
def two_sqlite_stores(path: Path) -> Iterator[tuple[BaseStore, BaseStore]]:
    """Open a file twice."""
    with plain_store(path) as one, plain_store(path) as other:
        yield one, other


def check_two_writers(one: BaseStore, other: BaseStore) -> None:
    """File from both at once, and hold the bank to the deltas."""
    sides = [SimpleRAG(one), SimpleRAG(other)]
    for number in range(4):  # each has an index that the other makes old
        sides[number % 2].file(make_episode(f"first {number}", task=f"{TASK} {number}"))
        found = {item.episode_id for item in sides[1 - number % 2].provide(TASK, asking()).items}
        assert f"first {number}" in found

    def work(number: int) -> MemoryDelta:
        return sides[number % 2].file(make_episode(f"e{number}"))

    with ThreadPoolExecutor(4) as pool:
        deltas = list(pool.map(work, range(24)))
    assert orders(sides[0]) == list(range(28))
    assert sides[0].content() == sides[1].content()
    assert sides[0].content().state[EPISODES] == 28
    added = [c.item.order_index for delta in deltas for c in delta if isinstance(c, Add)]
    assert sorted(added) == list(range(4, 28))


def test_sqlite_when_two_stores_share_a_file_makes_writers_wait(tmp_path: Path) -> None:
    """A lock file beside the database; what the other one wrote shows at once."""
    with two_sqlite_stores(tmp_path / "bank.sqlite") as (one, other):
        check_two_writers(one, other)
    assert (tmp_path / "bank.sqlite.langgraft.lock").exists()


@pytest.mark.kill
def test_sqlite_when_two_processes_file_is_the_fold(tmp_path: Path) -> None:
    """The same from processes, with upkeep in nearly every filing."""
    rounds = banks.at_once(f"sqlite:{tmp_path / 'bank.sqlite'}", 2)
    assert (rounds.made, rounds.told, rounds.wrong) == (2, 0, [])


def test_postgres_when_two_stores_share_a_database_makes_writers_wait(postgres: Schemas) -> None:
    """An advisory lock, on a connection of its own."""
    where = postgres.new()
    check_two_writers(postgres.store(where), postgres.store(where))


def test_postgres_when_its_pool_has_one_connection_does_not_wait_for_itself(
    postgres: Schemas,
) -> None:
    """The lock takes none of the pool's."""
    where = postgres.new()
    one = postgres.store(where, pool_config={"min_size": 1, "max_size": 1})
    check_two_writers(one, postgres.store(where))


def test_postgres_when_its_connections_are_cut_files_over_new_ones(postgres: Schemas) -> None:
    """A pool that checks its connections, and the one for locks, outlive a restart of the database."""
    where = make_conninfo(postgres.new(), application_name="cut")
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    checked = ConnectionPool.check_connection
    pool: Any = ConnectionPool(where, min_size=1, kwargs=options, check=checked)
    with pool:
        store = PostgresStore(pool)
        store.setup()
        memory = SimpleRAG(store)
        memory.file(make_episode("before"))
        with psycopg.connect(postgres.uri, autocommit=True) as other:
            cut = (
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE application_name = %s"
            )
            assert other.execute(cut, ["cut"]).fetchall() == [(True,)] * 2, "they have ended"
        memory.file(make_episode("after"))
        assert len(memory.content().items) == 2


async def test_postgres_when_asynchronous_waits_for_others(postgres: Schemas) -> None:
    """A task waits for another process without holding up its event loop, and may be canceled."""
    where = postgres.new()
    holder = open_bank(postgres.store(where), records_namespace(("langgraft", "simple_rag")))
    async with AsyncPostgresStore.from_conn_string(where) as store:
        memory = SimpleRAG(store)
        with holder.lock.held():
            waiting = [asyncio.create_task(memory.afile(make_episode(f"e{n}"))) for n in range(3)]
            await asyncio.sleep(0.05)
            assert not any(task.done() for task in waiting)
            waiting[0].cancel()
            await asyncio.sleep(0.05)
        async with asyncio.timeout(120):
            await asyncio.gather(*waiting, return_exceptions=True)
            await memory.afile(make_episode("later"))
        assert len((await memory.acontent()).items) == 3
    with holder.lock.held():
        pass


async def test_sqlite_when_asynchronous_waits_for_others_and_gives_back_what_it_got(
    tmp_path: Path,
) -> None:
    """A task waits without holding up its event loop; canceled, it leaves the file unlocked."""
    path = tmp_path / "bank.sqlite"
    with plain_store(path) as one:
        holder = open_bank(one, records_namespace(("langgraft", "simple_rag")))
        async with AsyncSqliteStore.from_conn_string(str(path)) as store:
            memory = SimpleRAG(store)
            await memory.afile(make_episode("first"))
            async with holder.lock.aheld():
                waiting = [asyncio.create_task(memory.afile(make_episode(n))) for n in "abc"]
                await asyncio.sleep(0.05)
                assert not any(task.done() for task in waiting)
                waiting[0].cancel()
                await asyncio.sleep(0.02)
            async with asyncio.timeout(120):
                await asyncio.gather(*waiting, return_exceptions=True)
                await memory.afile(make_episode("later"))
            assert len((await memory.acontent()).items) == 4
        with holder.lock.held():
            pass
        assert len(SimpleRAG(one).content().items) == 4


async def test_sqlite_when_asynchronous_and_in_memory_needs_no_file() -> None:
    """There is nothing to lie beside."""
    async with AsyncSqliteStore.from_conn_string(":memory:") as store:
        memory = SimpleRAG(store)
        await asyncio.gather(*(memory.afile(make_episode(n)) for n in "abc"))
        assert len((await memory.acontent()).items) == 3


def test_thread_when_it_runs_an_event_loop_is_not_made_to_wait_for_another_store(
    tmp_path: Path,
) -> None:
    """The holder may be a task of that loop."""
    with two_sqlite_stores(tmp_path / "bank.sqlite") as (one, other):
        memory = SimpleRAG(other)

        async def live() -> None:
            async with open_bank(one, records_namespace(("langgraft", "simple_rag"))).lock.aheld():
                with pytest.raises(RuntimeError, match="use the async method"):
                    memory.file(make_episode("sync"))

        asyncio.run(live())
        assert memory.file(make_episode("sync"))


def test_store_when_it_offers_no_lock_tells_a_second_writer() -> None:
    """Nothing is written by whoever is told; after `refresh` it goes on, on what is there."""
    here, there = map(SimpleRAG, twins())
    log = [here.file(make_episode("a")), there.file(make_episode("b"))]
    before = there.content()
    for refused in (
        lambda: here.file(make_episode("c")),
        lambda: here.restore(fold([])),
    ):
        with pytest.raises(BankConflictError, match="wrote to it since this process did"):
            refused()
    assert here.content() == there.content() == before
    here.refresh()
    log.append(here.file(make_episode("c")))
    assert fold(log) == there.content()
    assert orders(there) == [0, 1, 2]
    assert len(there.provide(TASK, asking()).items) == 3


async def test_store_when_another_writer_comes_in_between_refuses_to_write() -> None:
    """What was read last is read again right before a write."""
    one, other = twins()

    class Interrupted(DictStore):
        armed = True

        def batch(self, ops: Iterable[Op]) -> list[Result]:
            listed = list(ops)
            if (
                self.armed
                and GetOp(
                    ("langgraft-bank", "langgraft", "simple_rag", "langgraft-bank"), "state/filed/b"
                )
                in listed
            ):
                self.armed = False
                SimpleRAG(one).file(make_episode("a"))
            return super().batch(listed)

    store = Interrupted()
    store.records = one.records
    memory = SimpleRAG(store)
    with pytest.raises(BankConflictError):
        memory.file(make_episode("b"))
    assert [item.episode_id for item in SimpleRAG(other).content().items.values()] == ["a"]
    assert await memory.afile(make_episode("b"))
    assert orders(memory) == [0, 1]


def test_stamp_when_a_bank_is_read_moved_or_kept_in_memory_is_no_content(tmp_path: Path) -> None:
    """Who wrote last is no part of what is remembered; where nobody else can write, it is not kept."""
    store, plain = DictStore(), InMemoryStore()
    memory, alone = TrajectoryMemory(store), TrajectoryMemory(plain)
    for number in range(3):
        assert memory.file(make_episode(f"e{number}")) == alone.file(make_episode(f"e{number}"))
    assert memory.content().to_bytes() == alone.content().to_bytes()
    stamps = [[key for _, key in store.records].count("stamp"), plain.get(alone.namespace, "stamp")]
    assert stamps == [1, None]
    memory.restore(alone.content())
    assert memory.content() == alone.content()
    assert len(memory.provide(TASK, asking()).items) == 1


def test_company_when_a_store_has_none_is_none(tmp_path: Path) -> None:
    """What only this process can reach needs no lock and no stamp."""
    assert other_writers(InMemoryStore(), BANK).alone
    with SqliteStore.from_conn_string(":memory:") as store:
        assert other_writers(store, BANK).alone
    with SqliteStore.from_conn_string(str(tmp_path / "bank.sqlite")) as store:
        assert not other_writers(store, BANK).alone
        assert other_writers(store, BANK).lock is not None
    assert other_writers(DictStore(), BANK) == other_writers(
        store, BANK
    )  # closed: it tells no path


def test_lock_when_the_database_of_locks_is_gone_says_so(postgres: Schemas) -> None:
    """One error, and a free lock."""
    store: PostgresStore = postgres.store()
    others = other_writers(store, BANK)
    assert others.lock is not None
    others.lock.address["host"] = "/nowhere"  # type: ignore[attr-defined]
    lock = WriterLock(others.lock)
    for _ in range(2):
        with pytest.raises(InfrastructureError, match="cannot be asked to lock"), lock.held():
            pass


def test_insight_when_asked_beside_recall_sees_what_others_wrote() -> None:
    """What is asked about a bank is as fresh as what is recalled from it."""
    store = InMemoryStore()
    settings = {"attempts": 3}
    reader = make_provider("insight", store, settings=settings)
    assert isinstance(reader, InsightMemory)
    assert reader.counterpart(make_episode("new")) is None
    make_provider("insight", store, settings=settings).file(make_episode("old", task=TASK))
    failed = make_episode("new", task=TASK, outcome=type(make_episode().outcome)(success=False))
    assert reader.counterpart(failed) is not None


def test_process_when_it_ends_leaves_no_lock_on_a_file(tmp_path: Path) -> None:
    """A lock of a process that was killed is nobody's."""
    path = tmp_path / "bank.sqlite"
    code = (
        "import os, sys\n"
        "from acceptance.fold import plain_store\n"
        "from langgraft.memory.bank import open_bank\n"
        "from pathlib import Path\n"
        "with plain_store(Path(sys.argv[1])) as store:\n"
        "    with open_bank(store, ('langgraft-bank', 'langgraft', 'simple_rag', 'langgraft-bank')).lock.held():\n"
        "        os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    ended = subprocess.run(command, env=worker_environment(), check=False)
    assert ended.returncode == -9
    with plain_store(path) as store:
        assert SimpleRAG(store).file(make_episode("a"))


@pytest.mark.parametrize("before", [0, 1])
def test_server_when_two_clients_write_at_once_then_one_is_told_or_waits(
    chroma_url: str, before: int
) -> None:
    """First writes too: an index is used once, and whatever was acknowledged is there."""
    for attempt in range(3):
        namespace = (f"clash {before} {attempt}",)
        started, filed, refused = threading.Barrier(2), [], []
        with ChromaStore.connect(chroma_url) as one, ChromaStore.connect(chroma_url) as other:
            sides = [SimpleRAG(each, namespace=namespace) for each in (one, other)]
            for number in range(before):
                sides[0].file(make_episode(f"before {number}"))

            def write(number: int) -> None:
                started.wait()  # noqa: B023
                try:
                    sides[number].file(make_episode(f"e{number}"))  # noqa: B023
                    filed.append(f"e{number}")  # noqa: B023
                except BankConflictError:
                    refused.append(number)  # noqa: B023

            threads = [threading.Thread(target=write, args=(number,)) for number in (0, 1)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for number in refused:
                sides[number].refresh()
                sides[number].file(make_episode(f"e{number}"))
            items = sides[0].content().items.values()
            assert filed
            assert sorted(item.order_index for item in items) == list(range(2 + before))
            assert {"e0", "e1"} <= {item.episode_id for item in items}
