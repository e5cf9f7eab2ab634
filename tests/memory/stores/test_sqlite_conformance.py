"""The suite of LangGraph stores, on a SQLite file of ours, bare and by rank."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from langgraft.memory.erasure.places import Wanted, found_in
from langgraft.memory.stores import SQLiteFileStore
from langgraft.testing import StoreConformance


class TestSQLiteFileStore(StoreConformance):
    """It keeps every promise, and departs nowhere."""

    persistent = True
    dotted_filters = True

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[Callable[[], BaseStore]]:
        """Return what opens the file, and close it in the end."""
        stores: list[SQLiteFileStore] = []

        def again() -> BaseStore:
            stores.append(SQLiteFileStore(tmp_path / "memory.sqlite"))
            return stores[-1]

        yield again
        for store in stores:
            store.close()

    @pytest.fixture
    def store(self, opened: Callable[[], BaseStore]) -> BaseStore:
        """Return an empty store."""
        return opened()

    @pytest.fixture
    def reopen(self, store: BaseStore, opened: Callable[[], BaseStore]) -> Callable[[], BaseStore]:
        """Return what opens the store again, beside the one that is open."""
        assert store
        return opened


@pytest.mark.parametrize("size", [1, 19, 20, 21, 45])
def test_batch_of_any_size_does_what_its_writes_do_one_by_one(tmp_path: Path, size: int) -> None:
    """New, changed and deleted records of two namespaces: order, values and times of creation."""
    first = [PutOp((f"n{i % 2}",), str(i), {"n": i}) for i in range(0, size, 2)]
    second = [
        PutOp((f"n{i % 2}",), str(i), None if i % 5 == 4 else {"n": -i, "é": i})
        for i in reversed(range(size))
    ]
    listed = []
    for whole in (True, False):
        with SQLiteFileStore(tmp_path / f"{whole}.sqlite") as store:
            store.batch(first)
            created = {item.key: item.created_at for item in store.search((), limit=size)}
            now = store.changes((), None).as_of
            for ops in [second] if whole else [[op] for op in second]:
                assert store.batch(ops) == [None] * len(ops)
            found = store.search((), limit=size)
            told = store.changes((), now).addresses
        kept = {item.key: item.created_at for item in found if item.key in created}
        assert kept == {key: created[key] for key in kept}
        assert all(item.updated_at >= item.created_at for item in found)
        assert told is not None
        listed.append(([(each.namespace, each.key, each.value) for each in found], {*told}))
    assert listed[0] == listed[1]
    assert len(listed[0][0]) == sum(op.value is not None for op in second)


def test_batch_when_it_reads_many_records_gives_each_where_it_is_asked_for(tmp_path: Path) -> None:
    """Of two namespaces, some twice, some that are not there; what is got twice is two objects."""
    asked = [((f"n{i % 2}",), str(i % 13)) for i in range(53)]
    with SQLiteFileStore(tmp_path) as store:
        store.batch([PutOp(("n1",), str(i), {"n": [i]}) for i in range(0, 13, 2)])
        found = cast("list[Item | None]", store.batch([GetOp(*address) for address in asked]))
        for (namespace, key), item in zip(asked, found, strict=True):
            kept = namespace == ("n1",) and int(key) % 2 == 0
            assert (item and (item.namespace, item.key, item.value)) == (
                (namespace, key, {"n": [int(key)]}) if kept else None
            )
        values = [item.value["n"] for item in found if item is not None]
        assert len({id(each) for each in values}) == len(values) > 10


@pytest.mark.parametrize("read", ["opened again", "searched for bytes"])
def test_file_of_a_store_that_is_read_otherwise_stays_its_own(tmp_path: Path, read: str) -> None:
    """A process that closes a file loses its locks on it: another one would take the log away."""
    path = tmp_path / "memory.sqlite"
    with SQLiteFileStore(path) as store:
        store.put(("a",), "k", {"text": "kept"})
        if read == "opened again":
            with SQLiteFileStore(path) as again:
                assert again.get(("a",), "k")
        else:
            assert found_in([path], Wanted(phrases=("nowhere",))) == []
        asking = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0); c.execute('PRAGMA journal_mode = DELETE')"
        other = subprocess.run(
            [sys.executable, "-c", asking, path], capture_output=True, text=True, check=False
        )
        assert "database is locked" in other.stderr
