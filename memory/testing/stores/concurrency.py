"""Concurrency: threads and tasks lose nothing, and get their own answers."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, Result

from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite
from langgraft.memory.testing.suite import needs

NAMESPACE = ("concurrency",)
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
