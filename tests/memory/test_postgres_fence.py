"""Writers of a bank in PostgreSQL whose lock was lost, such as when the server restarted."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from langgraph.store.base import GetOp, Op, Result
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from postgres_server import Schemas, available, own_server
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from langgraft._core.errors import BankConflictError, LanggraftError
from langgraft.memory import Episode, Outcome
from langgraft.memory.providers import SimpleRAG, TrajectoryMemory

pytestmark = pytest.mark.skipif(not available(), reason="no PostgreSQL here")

Moment = Callable[[Iterable[Op]], None]


def episode(name: str) -> Episode:
    """Return an episode."""
    return Episode(name, "door", "t1", "open the door", (), Outcome(success=True))


def once_it_reads(name: str, do: Callable[[], object]) -> Moment:
    """Do something, once, when a writer looks whether an episode was filed."""
    done = False

    def moment(ops: Iterable[Op]) -> None:
        nonlocal done
        keys = [op.key for op in ops if isinstance(op, GetOp)]
        if not done and f"state/filed/{name}" in keys:
            done = True
            do()

    return moment


class Interrupted(PostgresStore):
    """A store in which something happens while its caller works."""

    moment: Moment

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out a batch; then it happens."""
        listed = list(ops)
        results = super().batch(listed)
        self.moment(listed)
        return results


class InterruptedAsync(AsyncPostgresStore):
    """The same, asynchronously."""

    moment: Moment

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out a batch; then it happens."""
        listed = list(ops)
        results = await super().abatch(listed)
        await asyncio.to_thread(self.moment, listed)
        return results


def lose_locks(uri: str) -> None:
    """End all sessions that hold an advisory lock, as a restart does."""
    with psycopg.connect(uri, autocommit=True) as connection:
        ended = (
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks"
            " WHERE locktype = 'advisory' AND granted"
        )
        assert connection.execute(ended).fetchall()


@contextmanager
def pooled(where: str, kind: type[PostgresStore] = PostgresStore) -> Iterator[PostgresStore]:
    """Open a store on a pool, which connects again after a restart."""
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: ConnectionPool[Any] = ConnectionPool(
        where, kwargs=options, min_size=1, max_size=2, timeout=60, open=False
    )
    with pool:
        yield kind(pool)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("pool", [True, False])
def test_writer_when_its_lock_was_lost_and_another_wrote_then_is_refused(
    postgres: Schemas, *, first: bool, pool: bool
) -> None:
    """It writes nothing over what the other one wrote, and files when it is asked again."""
    where = postgres.new()
    other = SimpleRAG(postgres.store(where))
    if not first:
        other.file(episode("before"))
    opened = pooled(where, Interrupted) if pool else Interrupted.from_conn_string(where)
    with opened as store:

        def meanwhile() -> None:
            lose_locks(postgres.uri)
            other.file(episode("theirs"))

        assert isinstance(store, Interrupted)
        store.moment = once_it_reads("mine", meanwhile)
        memory = SimpleRAG(store)
        with pytest.raises(BankConflictError, match="the lock was lost"):
            memory.file(episode("mine"))
        assert "mine" not in {item.episode_id for item in other.content().items.values()}
        assert memory.file(episode("mine"))
        items = memory.content().items.values()
        assert sorted(item.order_index for item in items) == list(range(3 - first))


async def test_async_writer_when_its_lock_was_lost_and_another_wrote_then_is_refused(
    postgres: Schemas,
) -> None:
    """The same, in tasks."""
    where = postgres.new()
    other = SimpleRAG(postgres.store(where))
    async with InterruptedAsync.from_conn_string(where) as store:

        def meanwhile() -> None:
            lose_locks(postgres.uri)
            other.file(episode("theirs"))

        assert isinstance(store, InterruptedAsync)
        store.moment = once_it_reads("mine", meanwhile)
        memory = SimpleRAG(store)
        with pytest.raises(BankConflictError, match="the lock was lost"):
            await memory.afile(episode("mine"))
        assert await memory.afile(episode("mine"))
        items = (await memory.acontent()).items.values()
        assert sorted(item.order_index for item in items) == [0, 1]


def test_writer_when_its_lock_was_lost_and_nobody_wrote_then_it_files(postgres: Schemas) -> None:
    """A lost lock alone costs nothing."""
    where = postgres.new()
    postgres.store(where)
    with pooled(where, Interrupted) as store:
        assert isinstance(store, Interrupted)
        store.moment = once_it_reads("mine", lambda: lose_locks(postgres.uri))
        memory = SimpleRAG(store)
        assert memory.file(episode("mine"))
        assert memory.file(episode("next"))


def storm(restarts: int, filed_between: int) -> tuple[Counter[int], set[str], list[str]]:
    """File from two writers while the server crashes and restarts.

    Returns:
        How often each `order_index` is used, the episodes in the bank, and those acknowledged.
    """
    acknowledged: list[str] = []
    ended, counted = threading.Event(), threading.Condition()

    def write(where: str, writer: int) -> None:
        number = 0
        with pooled(where) as store:
            memory = TrajectoryMemory(store)
            while not ended.is_set():
                try:
                    memory.file(episode(f"{writer}-{number}"))
                except (LanggraftError, psycopg.Error, PoolTimeout):
                    continue
                number += 1
                with counted:
                    acknowledged.append(f"{writer}-{number - 1}")
                    counted.notify_all()

    with own_server() as (uri, restart):
        with PostgresStore.from_conn_string(uri) as store:
            store.setup()
        writers = [threading.Thread(target=write, args=(uri, number)) for number in (0, 1)]
        for thread in writers:
            thread.start()
        try:
            for _ in range(restarts):
                with counted:
                    enough = len(acknowledged) + filed_between
                    assert counted.wait_for(lambda: len(acknowledged) >= enough, 300)  # noqa: B023
                restart()
        finally:
            ended.set()
            for thread in writers:
                thread.join()
        with PostgresStore.from_conn_string(uri) as store:
            items = TrajectoryMemory(store).content().items.values()
            orders = Counter(item.order_index for item in items)
            return orders, {item.episode_id for item in items}, acknowledged


@pytest.mark.kill
def test_writers_when_the_server_restarts_then_no_index_is_used_twice_and_nothing_is_lost() -> None:
    """Two writers file on through four crashes of the server."""
    orders, there, acknowledged = storm(restarts=4, filed_between=20)
    assert set(orders.values()) == {1}
    assert sorted(orders) == list(range(len(orders)))
    assert set(acknowledged) <= there
    assert len(acknowledged) == len(set(acknowledged))
