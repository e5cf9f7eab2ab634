"""Writes to Chroma: whole or not at all, whoever dies and however many write."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acceptance.chroma import kill_while_writing, write_from_many
from langgraph.store.base import GetOp, IndexConfig, PutOp

from langgraft._core.errors import InfrastructureError, InputError, SettingsError
from langgraft.memory.stores import ChromaStore
from langgraft.memory.stores.chroma import table
from langgraft.memory.stores.chroma.rows import Index

INDEX: IndexConfig = {
    "dims": 2,
    "embed": lambda texts: [[1.0, float(len(text))] for text in texts],
    "fields": ["t"],
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChromaStore]:
    """An empty store with an index."""
    with ChromaStore.open(tmp_path / "store", index=INDEX) as store:
        yield store


@pytest.mark.kill
def test_writer_when_killed_again_and_again_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """After each `kill -9`, what was acknowledged is there, and every record and batch is whole."""
    done = kill_while_writing(tmp_path / "store", steps=60, kills=4, seed=11)
    assert done.problems == []
    assert done.acknowledged >= 60
    assert done.kills == 4


def test_threads_and_tasks_when_they_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """16 threads and 16 tasks of one store; a reader sees whole batches only."""
    done = write_from_many(tmp_path / "store", each=4)
    assert done.problems == []
    assert done.acknowledged == 32 * 4


async def test_loop_when_a_batch_waits_goes_on(store: ChromaStore) -> None:
    """An asynchronous call never holds up the event loop."""
    with store._lock:
        task = asyncio.create_task(store.aput(("n",), "k", {"n": 1}))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not task.done()
    await task
    assert await store.aget(("n",), "k") is not None


async def test_calls_when_a_thousand_are_gathered_are_carried_out_together(
    store: ChromaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits costs one reading and one writing, is answered in its order, and is all there."""
    asked = Counter[str]()

    def counted(name: str) -> Callable[..., Any]:
        whole: Callable[..., Any] = getattr(table.Table, name)

        def carried_out(*args: Any) -> Any:
            asked[name] += 1
            return whole(*args)

        return carried_out

    for name in ("read", "write"):
        monkeypatch.setattr(table.Table, name, counted(name))
    with store._lock:
        writes = [store.aput(("n",), f"{n % 400}", {"n": n}) for n in range(1_000)]
        tasks = [asyncio.create_task(call) for call in writes]
        await asyncio.sleep(0)
        before = threading.active_count()
    await asyncio.gather(*tasks)
    assert asked["write"] <= 3
    assert asked["read"] <= 6
    assert threading.active_count() <= before
    found = await asyncio.gather(*(store.aget(("n",), f"{key}") for key in range(400)))
    assert [item and item.value["n"] for item in found] == [
        key + (800 if key < 200 else 400) for key in range(400)
    ]


async def test_search_when_it_is_wrong_fails_alone(store: ChromaStore) -> None:
    """Batches that are carried out together do not share their errors."""
    await store.aput(("n",), "k", {"t": "x"})
    store._directory.forget()
    with store._lock:
        store._index = Index(3, store._index.embeddings, ("t",)) if store._index else None
        store._directory._index = store._index  # type: ignore[attr-defined]
        calls = [store.asearch(("n",)), store.aget(("n",), "k")]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0)
    wrong, right = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(wrong, SettingsError)
    assert right is not None
    assert not isinstance(right, BaseException)


async def test_task_when_cancelled_leaves_whole_records(store: ChromaStore) -> None:
    """A write that was begun is finished."""
    with store._lock:
        tasks = [
            asyncio.create_task(store.aput(("n",), f"{n}", {"t": "x" * n, "n": n}))
            for n in range(8)
        ]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    found = {item.key: item.value for item in await store.asearch(("n",))}
    assert {f"{n}" for n in range(1, 8, 2)} <= found.keys()
    assert all(value["t"] == "x" * value["n"] for value in found.values())


def test_record_when_written_without_vectors_has_none(store: ChromaStore) -> None:
    """Chroma's `upsert` keeps what it is not given; vectors of old texts must go."""
    store.put(("n",), "k", {"t": "abc"})
    assert store.search(("n",), query="abc")[0].score == 1.0
    for value, index in (({"t": "abc"}, False), ({"other": 1}, None), ({"t": None}, None)):
        store.put(("n",), "k", {"t": "abc"})
        store.put(("n",), "k", value, index=index)  # type: ignore[arg-type]
        assert store.search(("n",), query="abc")[0].score is None


def test_record_when_put_with_more_texts_than_before_is_found_by_all(store: ChromaStore) -> None:
    """Several vectors of a record are one row."""
    store.put(("n",), "k", {"a": "x", "b": "yyyy"}, index=["a", "b"])
    for query in ("x", "yyyy"):
        assert store.search(("n",), query=query)[0].score == 1.0
    store.put(("n",), "k", {"a": "x", "b": "yyyy"}, index=["a"])
    assert store.search(("n",), query="yyyy")[0].score != 1.0


def test_batch_when_an_operation_is_impossible_changes_nothing(store: ChromaStore) -> None:
    """All is checked before anything is written."""
    store.put(("n",), "k", {"n": 1})
    good = [PutOp(("n",), "k", {"n": 2}), PutOp(("n",), "new", {})]
    for bad in (PutOp(("n",), "b", {"f": {1}}), PutOp(("n", 1), "b", {}), "no operation"):  # type: ignore[arg-type]
        with pytest.raises(InputError):
            store.batch([*good, bad])  # type: ignore[list-item]
    assert [(item.key, item.value) for item in store.search(())] == [("k", {"n": 1})]


def test_batch_when_chroma_fails_midway_is_seen_as_it_is(
    store: ChromaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure the store looks again at what Chroma has."""
    store.put(("n",), "old", {})
    assert len(store.search(())) == 1

    def fail(**_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(store._table._rows, "delete", fail)
        with pytest.raises(InfrastructureError, match=r"could not delete .* no space left"):
            store.batch([PutOp(("n",), "new", {}), PutOp(("n",), "old", None)])
    assert [item.key for item in store.search(())] == ["old", "new"]


def test_batch_when_larger_than_chroma_takes_is_carried_out(store: ChromaStore) -> None:
    """Chroma takes 5,461 rows at once, and SQLite reads 32,766 at once."""
    keys = [f"k{n}" for n in range(5_500)]
    store.batch([PutOp(("n",), key, {"key": key}, index=False) for key in keys])
    results = store.batch([GetOp(("n",), key) for key in keys])
    assert [item.value["key"] for item in results] == keys  # type: ignore[union-attr]
    assert [item.key for item in store.search(("n",), limit=10_000)] == keys
    store.batch([PutOp(("n",), key, None) for key in keys[1:]])
    assert [item.key for item in store.search((), limit=10_000)] == keys[:1]


def test_rows_when_read_and_written_in_small_pages_are_the_same(
    store: ChromaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages are cut where rows or bytes are enough, and nothing is lost at an edge."""
    monkeypatch.setattr(table, "_PAGE", 3)
    monkeypatch.setattr(table, "_BYTES", 700)
    monkeypatch.setattr(store._table, "_most", 4)
    values = {f"k{n}": {"t": "x" * (n * 300 % 1000)} for n in range(13)}
    store.batch([PutOp(("n",), key, value) for key, value in values.items()])
    store._directory.forget()
    assert {item.key: item.value for item in store.search((), limit=100)} == values
    store.batch([PutOp(("n",), key, None) for key in values])
    assert store.search(()) == []


def test_item_when_changed_by_its_reader_is_stored_as_it_was(store: ChromaStore) -> None:
    """What is given out is a copy."""
    value = {"list": [1]}
    store.put(("n",), "k", value)
    value["list"].append(2)
    item = store.get(("n",), "k")
    assert item is not None
    item.value["list"].append(3)
    assert store.search(("n",))[0].value == {"list": [1]}
