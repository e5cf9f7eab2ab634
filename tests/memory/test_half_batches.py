"""A store that carries out a part of a batch and fails: an episode is filed once, as if it had not."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from dict_store import DictStore
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.sqlite import SqliteStore

from langgraft._core.errors import BankConflictError
from langgraft.memory import Episode, Outcome, bank
from langgraft.memory.model import MemoryDelta, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import SimpleRAG, TrajectoryMemory
from langgraft.memory.providers.simple_rag import SimpleRAGSettings

EPISODES = 4


class Torn(DictStore):
    """Carries out so many writes of a batch and fails, for as many batches of writes as `cuts` says.

    `None` carries out all of a batch.
    """

    def __init__(self, cuts: Sequence[int | None]) -> None:
        super().__init__()
        self.cuts = list(cuts)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out a batch, or a part."""
        listed = list(ops)
        writes = [op for op in listed if isinstance(op, PutOp)]
        cut = self.cuts.pop(0) if writes and self.cuts else None
        if cut is None:
            return super().batch(listed)
        super().batch(writes[:cut])
        raise OSError("torn")


def trajectories(store: BaseStore) -> MemoryProvider[Any]:
    """A bank that only grows."""
    return TrajectoryMemory(store)


def two_items(store: BaseStore) -> MemoryProvider[Any]:
    """A bank that loses an item for each new one."""
    return SimpleRAG(store, settings=SimpleRAGSettings(max_items=2))


def episode(number: int) -> Episode:
    """Return an episode."""
    return Episode(f"e{number}", "door", "t1", f"open door {number}", (), Outcome(success=True))


@pytest.fixture(autouse=True)
def _nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bank, "PATIENCE_SECONDS", 0.0)


@pytest.mark.parametrize("make", [trajectories, two_items])
@given(
    cuts=st.lists(st.none() | st.integers(0, 8), max_size=20),
    anew=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_episode_when_a_batch_is_torn_then_is_filed_once_as_if_it_had_not_been(
    make: Callable[[BaseStore], MemoryProvider[Any]], cuts: list[int | None], *, anew: bool
) -> None:
    """Wherever batches are cut, filing again gives the bank of a store that never fails."""
    plain = make(DictStore())
    expected = [plain.file(episode(number)) for number in range(EPISODES)]
    store = Torn(cuts)
    memory, log = make(store), []
    for number in range(EPISODES):
        while True:
            try:
                log.append(memory.file(episode(number)))
                break
            except OSError:
                if anew:  # another process files it again
                    records, left = store.records, store.cuts
                    store = Torn(left)
                    store.records = records
                    memory = make(store)
    store.cuts.clear()
    assert memory.content().to_bytes() == plain.content().to_bytes() == fold(expected).to_bytes()
    # The last write may be all there when its error comes: filing again changes nothing then.
    assert all(made in (wanted, MemoryDelta()) for made, wanted in zip(log, expected, strict=True))


def test_bank_when_read_after_a_torn_batch_then_shows_what_was_there_before() -> None:
    """Half an episode is no content."""
    store = Torn([])
    memory = TrajectoryMemory(store)
    memory.file(episode(0))
    before = memory.content().to_bytes()
    store.cuts = [None, 2]
    with pytest.raises(OSError, match="torn"):
        memory.file(episode(1))
    assert memory.content().to_bytes() == before
    assert not [key for _, key in store.records if key == bank.BEFORE]


def test_langgraph_sqlite_when_it_commits_half_a_batch_then_the_episode_is_filed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LangGraph's `SqliteStore` commits what it had written when an operation fails."""
    with SqliteStore.from_conn_string(":memory:") as store:
        memory = TrajectoryMemory(store)
        memory.file(episode(0))
        whole, torn = SqliteStore.batch, [None, 2]

        def batch(self: SqliteStore, ops: Iterable[Op]) -> list[Result]:
            listed = list(ops)
            writes = [op for op in listed if isinstance(op, PutOp)]
            cut = torn.pop(0) if writes and torn else None
            if cut is None:
                return whole(self, listed)
            whole(self, writes[:cut])
            raise OSError("torn")

        monkeypatch.setattr(SqliteStore, "batch", batch)
        with pytest.raises(OSError, match="torn"):
            memory.file(episode(1))
        delta = memory.file(episode(1))
        assert [item.order_index for item in memory.content().items.values()] == [0, 1]
        assert delta


def test_writer_when_it_was_taken_for_dead_then_is_told() -> None:
    """Who writes for longer than others wait finds that out, and hides it from nobody."""
    one = DictStore()

    class Slow(DictStore):
        armed = True

        def batch(self, ops: Iterable[Op]) -> list[Result]:
            listed = list(ops)
            if self.armed and any(isinstance(op, PutOp) and op.key == bank.STAMP for op in listed):
                self.armed = False
                TrajectoryMemory(one).file(episode(7))
            return super().batch(listed)

    slow = Slow()
    slow.records = one.records
    with pytest.raises(BankConflictError, match="took so long"):
        TrajectoryMemory(slow).file(episode(1))
