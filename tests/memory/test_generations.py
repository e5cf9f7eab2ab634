"""What was cleared or deleted does not come back with what began before."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from memory_cases import make_episode

from langgraft._core.errors import BankClearedError, InfrastructureError
from langgraft.memory import MemoryProvider
from langgraft.memory.banks import Banks
from langgraft.memory.controls import RandomRetrieval
from langgraft.memory.model import BankContent
from langgraft.memory.providers import InsightMemory, TrajectoryMemory
from langgraft.memory.stores import ChromaStore, SQLiteFileStore

LATE = make_episode("late")


@pytest.fixture(params=["memory", "sqlite", "langgraph's sqlite", "chroma"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[BaseStore, BaseStore]]:
    """Two stores on one database, as in two processes; where that is not possible, one store twice."""
    if request.param == "memory":
        store = InMemoryStore()
        yield store, store
    elif request.param == "sqlite":
        with SQLiteFileStore(tmp_path / "s") as one, SQLiteFileStore(tmp_path / "s") as other:
            yield one, other
    elif request.param == "chroma":
        with ChromaStore.open(tmp_path / "c") as chroma:
            yield chroma, chroma
    else:
        path = str(tmp_path / "s")
        with SqliteStore.from_conn_string(path) as one, SqliteStore.from_conn_string(path) as other:
            one.setup()
            yield one, other


@pytest.mark.parametrize("filled", [False, True])
def test_filing_when_the_bank_was_cleared_meanwhile_is_refused(
    stores: tuple[BaseStore, BaseStore], filled: bool
) -> None:
    """By whichever process, and whether the bank held anything then or not."""
    here, there = map(InsightMemory, stores)
    if filled:
        here.file(make_episode("e1"))
    began = here.generation()
    there.clear()
    with pytest.raises(BankClearedError, match="cleared or deleted after this episode began"):
        here.file(LATE, generation=began)
    assert here.content() == there.content() == BankContent()
    assert here.file(LATE, generation=here.generation())
    assert here.file(make_episode("e2"))
    assert len(there.content().items) == 2


def test_filing_when_a_users_bank_was_deleted_meanwhile_is_refused(
    stores: tuple[BaseStore, BaseStore],
) -> None:
    """That of another user is kept, and so is what begins after the deletion."""
    here, there = (Banks(store, "insight") for store in stores)
    ada, bob = here["ada"], here["bob"]
    began = {each.namespace: each.generation() for each in (ada, bob)}
    there["ada"].file(make_episode("e1"))
    there.delete("ada")
    bob.file(LATE, generation=began[bob.namespace])
    with pytest.raises(BankClearedError) as refused:
        ada.file(LATE, generation=began[ada.namespace])
    assert refused.value.namespace == ada.namespace
    assert here.users() == there.users() == ["bob"]
    ada.file(LATE, generation=ada.generation())
    assert sorted(map(str, there.users())) == ["ada", "bob"]


def test_filing_when_the_deletion_failed_halfway_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mark comes before anything is deleted, so a deletion that is begun keeps filings out."""
    banks = Banks(InMemoryStore(), "insight")
    ada = banks["ada"]
    ada.file(make_episode("e1"))
    began = ada.generation()

    def fail(_: object) -> None:
        raise InfrastructureError("the store is gone")

    with monkeypatch.context() as patched:
        patched.setattr("langgraft.memory.banks.erase", fail)
        with pytest.raises(InfrastructureError):
            banks.delete("ada")
    with pytest.raises(BankClearedError):
        ada.file(LATE, generation=began)


def test_filings_when_the_bank_is_cleared_among_them_leave_nothing_of_before(
    stores: tuple[BaseStore, BaseStore],
) -> None:
    """A filing and a clearing are one step each, in whatever order threads come to them."""
    one, other = map(TrajectoryMemory, stores)
    began = one.generation()

    def file(number: int) -> bool:
        try:
            memory = (one, other)[number % 2]
            memory.file(make_episode(f"e{number}"), generation=began)
        except BankClearedError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        filed = [pool.submit(file, number) for number in range(10)]
        cleared = pool.submit(other.clear)
        filed += [pool.submit(file, number) for number in range(10, 20)]
    cleared.result()
    assert not all(each.result() for each in filed)
    assert one.content() == BankContent()


@pytest.mark.parametrize("wrap", ["control", "layered"])
async def test_filing_when_memory_is_wrapped_is_refused_too(wrap: str) -> None:
    """Controls and layers file in the bank that they stand for."""
    banks = Banks(InMemoryStore(), "trajectory")
    ada = banks["ada"]
    memory: MemoryProvider[Any] = (
        RandomRetrieval(ada, learn=True) if wrap == "control" else banks.layered("ada", "team")
    )
    began = await memory.ageneration()
    assert began == ada.generation()
    await ada.aclear()
    with pytest.raises(BankClearedError):
        await memory.afile(LATE, generation=began)
    await memory.afile(LATE)
    assert len(ada.content().items) == 1


def test_mark_when_a_bank_is_deleted_names_nobody() -> None:
    """The store keeps a digest of where the bank was, and no label of a user."""
    store = InMemoryStore()
    Banks(store, "insight").delete("ada@example.org")
    (mark,) = store.search(())
    assert "ada" not in repr(mark)
