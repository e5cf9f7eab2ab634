"""Batches, threads and tasks: nothing is lost, now or when the store is opened again."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
)

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.base import needs
from langgraft.memory.testing.stores.base import Calls, StoreSuite

NAMESPACE = ("batches",)


def _value_in(result: Result) -> object:
    assert isinstance(result, Item)
    return result.value


class BatchCases(StoreSuite):
    """A batch reads the state before it, then writes; results come in the order asked."""

    def test_batch_when_empty_does_nothing(self, calls: Calls) -> None:
        """No operations, no results."""
        assert calls.batch([]) == []

    def test_results_when_operations_are_mixed_come_in_their_order(self, calls: Calls) -> None:
        """Each result stands where its operation stood, whatever is grouped inside."""
        calls.fill(NAMESPACE, {"a": {"n": 1}, "b": {"n": 2}})
        results = calls.batch(
            [
                GetOp(NAMESPACE, "b"),
                PutOp(NAMESPACE, "c", {"n": 3}),
                SearchOp(NAMESPACE, filter={"n": 1}),
                GetOp(NAMESPACE, "missing"),
                ListNamespacesOp((MatchCondition("prefix", NAMESPACE),)),
                PutOp(NAMESPACE, "a", None),
                GetOp(NAMESPACE, "a"),
                SearchOp(("elsewhere",)),
            ]
        )
        assert _value_in(results[0]) == {"n": 2}
        assert results[1] is None
        assert [item.key for item in results[2]] == ["a"]  # type: ignore[union-attr]
        assert results[3] is None
        assert results[4] == [NAMESPACE]
        assert results[5] is None
        assert _value_in(results[6]) == {"n": 1}
        assert results[7] == []

    def test_reads_when_writes_come_first_in_the_batch_see_the_state_before_it(
        self, calls: Calls
    ) -> None:
        """Neither gets, searches nor listings see what their own batch writes."""
        calls.put(NAMESPACE, "k", {"n": 1})
        new = (*NAMESPACE, "new")
        listed, found, got, missing = calls.batch(
            [
                PutOp(NAMESPACE, "k", {"n": 2}),
                PutOp(new, "k", {"n": 3}),
                ListNamespacesOp(),
                SearchOp(NAMESPACE),
                GetOp(NAMESPACE, "k"),
                GetOp(new, "k"),
            ]
        )[2:]
        assert _value_in(got) == {"n": 1}
        assert missing is None
        assert [item.value for item in found] == [{"n": 1}]  # type: ignore[union-attr]
        assert listed == [NAMESPACE]
        assert calls.value(NAMESPACE, "k") == {"n": 2}
        assert calls.value(new, "k") == {"n": 3}

    def test_write_when_repeated_in_a_batch_is_the_last_one(self, calls: Calls) -> None:
        """Of several writes to one record the last counts, be it a deletion or not."""
        calls.put(NAMESPACE, "deleted", {"n": 0})
        calls.batch(
            [
                PutOp(NAMESPACE, "k", {"n": 1}),
                PutOp(NAMESPACE, "deleted", {"n": 1}),
                PutOp(NAMESPACE, "back", None),
                PutOp(NAMESPACE, "k", {"n": 2}),
                PutOp(NAMESPACE, "deleted", None),
                PutOp(NAMESPACE, "back", {"n": 3}),
            ]
        )
        assert {item.key: item.value for item in calls.search(NAMESPACE)} == {
            "k": {"n": 2},
            "back": {"n": 3},
        }

    def test_read_when_repeated_in_a_batch_answers_each_time(self, calls: Calls) -> None:
        """Equal operations have equal results, one each."""
        calls.put(NAMESPACE, "k", {"n": 1})
        ops: list[Op] = [GetOp(NAMESPACE, "k"), SearchOp(NAMESPACE)] * 2
        first, found, second, again = calls.batch(ops)
        assert _value_in(first) == _value_in(second) == {"n": 1}
        assert [len(each) for each in (found, again)] == [1, 1]  # type: ignore[arg-type]

    def test_batch_when_given_as_an_iterator_is_carried_out(self, calls: Calls) -> None:
        """Operations come as any iterable."""
        calls.batch(PutOp(NAMESPACE, f"k{n}", {"n": n}) for n in range(3))
        assert calls.keys(NAMESPACE) == ["k0", "k1", "k2"]

    def test_batch_when_large_is_carried_out_whole(self, calls: Calls) -> None:
        """A thousand writes, and a thousand reads of them, are two batches."""
        calls.batch([PutOp(NAMESPACE, f"k{n}", {"n": n}) for n in range(1000)])
        results = calls.batch([GetOp(NAMESPACE, f"k{n}") for n in reversed(range(1000))])
        assert [_value_in(result) for result in results] == [
            {"n": n} for n in reversed(range(1000))
        ]


WORKERS = 16


def _expected(each: int) -> dict[str, int]:
    return {f"{worker}/{n}": worker for worker in range(WORKERS) for n in range(each)}


def _gets(worker: int, each: int) -> list[GetOp]:
    return [GetOp(NAMESPACE, f"{worker}/{n}") for n in range(each)]


def _workers(results: list[Result]) -> set[int]:
    assert all(isinstance(item, Item) for item in results)
    return {item.value["worker"] for item in results if isinstance(item, Item)}


class ConcurrencyCases(StoreSuite):
    """A store may be shared by 16 threads, or by 16 tasks of one event loop."""

    @needs("sync")
    def test_records_when_put_by_threads_are_all_there(self, store: BaseStore) -> None:
        """No write is lost, and each batch gets its own results."""

        def work(worker: int) -> set[int]:
            for n in range(self.writes_each):
                store.put(NAMESPACE, f"{worker}/{n}", {"worker": worker})
            return _workers(store.batch(_gets(worker, self.writes_each)))

        with ThreadPoolExecutor(WORKERS) as pool:
            assert list(pool.map(work, range(WORKERS))) == [{n} for n in range(WORKERS)]
        found = {item.key: item.value["worker"] for item in store.search(NAMESPACE, limit=1000)}
        assert found == _expected(self.writes_each)

    @needs("async")
    def test_records_when_put_by_tasks_are_all_there(
        self, store: BaseStore, runner: asyncio.Runner
    ) -> None:
        """No write is lost, and each batch gets its own results."""

        async def work(worker: int) -> set[int]:
            for n in range(self.writes_each):
                await store.aput(NAMESPACE, f"{worker}/{n}", {"worker": worker})
            return _workers(await store.abatch(_gets(worker, self.writes_each)))

        async def main() -> None:
            done = await asyncio.gather(*map(work, range(WORKERS)))
            assert done == [{n} for n in range(WORKERS)]
            items = await store.asearch(NAMESPACE, limit=1000)
            assert {item.key: item.value["worker"] for item in items} == _expected(self.writes_each)

        runner.run(main())

    @needs("sync")
    def test_record_when_threads_overwrite_it_is_one_of_theirs_whole(
        self, store: BaseStore
    ) -> None:
        """Writes to one record do not mix, and leave one record."""

        def work(worker: int) -> None:
            for _ in range(self.writes_each):
                store.put(NAMESPACE, "k", {"a": worker, "b": [worker] * 5})
                item = store.get(NAMESPACE, "k")
                assert item is not None
                assert item.value["b"] == [item.value["a"]] * 5

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(work, range(WORKERS)))
        assert len(store.search(NAMESPACE)) == 1

    @needs("sync")
    def test_records_when_threads_put_and_delete_end_as_the_last_of_each_left_them(
        self, store: BaseStore
    ) -> None:
        """Deletions are as safe as writes."""

        def work(worker: int) -> None:
            for n in range(self.writes_each):
                store.batch([PutOp((*NAMESPACE, str(worker)), f"k{n}", {"n": n})])
                store.delete((*NAMESPACE, str(worker)), f"k{n - 1}")

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(work, range(WORKERS)))
        found = store.search(NAMESPACE, limit=1000)
        assert {item.key for item in found} == {f"k{self.writes_each - 1}"}
        assert len(found) == len(store.list_namespaces()) == WORKERS

    @needs("sync_inside_loop")
    def test_call_when_synchronous_inside_an_event_loop_works(
        self, store: BaseStore, runner: asyncio.Runner
    ) -> None:
        """A synchronous node of an asynchronous graph may use the store."""

        async def main() -> None:
            store.put(NAMESPACE, "k", {"n": 1})
            assert store.get(NAMESPACE, "k") is not None

        runner.run(main())

    @needs("sync_inside_loop", value=False)
    def test_call_when_synchronous_inside_an_event_loop_is_refused(
        self, store: BaseStore, runner: asyncio.Runner
    ) -> None:
        """What would block the loop for good raises instead of hanging."""

        async def main() -> None:
            store.get(NAMESPACE, "k")

        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the store's to say
            runner.run(main())

    @needs("async")
    def test_task_when_cancelled_leaves_the_store_usable(self, calls: Calls) -> None:
        """A write that was given up is there or not; what comes after it works."""

        async def main() -> None:
            task = asyncio.ensure_future(calls.store.aput(NAMESPACE, "given up", {"n": 1}))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        calls.run(main())
        calls.put(NAMESPACE, "k", {"n": 2})
        assert calls.value(NAMESPACE, "k") == {"n": 2}


class PersistenceCases(StoreSuite):
    """Opening a store again gives all that was acknowledged."""

    @pytest.fixture
    def reopen(self) -> Callable[[], BaseStore]:
        """Return what closes the store and opens it again: yours, if `persistent`."""
        msg = f"{type(self).__name__} says `persistent = True`: it needs a fixture `reopen`"
        raise SettingsError(msg)

    @needs("persistent")
    def test_store_when_reopened_holds_what_it_held(
        self, calls: Calls, reopen: Callable[[], BaseStore]
    ) -> None:
        """Records, their times and their namespaces outlive the object; deletions do too."""
        calls.fill(NAMESPACE, {f"k{n}": {"n": n, "text": "é"} for n in range(20)})
        calls.put(("gone",), "k", {"n": 1})
        calls.put(NAMESPACE, "k0", {"n": "again"})
        calls.delete(NAMESPACE, "k1")
        calls.delete(("gone",), "k")
        before = {item.key: item.dict() for item in calls.search((), limit=100)}
        listed = calls.namespaces()
        reopened = calls.over(reopen())
        assert {item.key: item.dict() for item in reopened.search((), limit=100)} == before
        assert reopened.namespaces() == listed == [NAMESPACE]

    @needs("persistent")
    def test_store_when_reopened_goes_on(
        self, calls: Calls, reopen: Callable[[], BaseStore]
    ) -> None:
        """What was written before can be overwritten and deleted after."""
        calls.fill(NAMESPACE, {"a": {"n": 1}, "b": {"n": 1}})
        created = calls.found(NAMESPACE, "a").created_at
        reopened = calls.over(reopen())
        reopened.put(NAMESPACE, "a", {"n": 2})
        reopened.delete(NAMESPACE, "b")
        assert reopened.found(NAMESPACE, "a").value == {"n": 2}
        assert reopened.found(NAMESPACE, "a").created_at == created
        assert reopened.keys(NAMESPACE) == ["a"]
