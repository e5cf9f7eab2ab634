"""What a process has once of each bank, whichever providers, threads and tasks use it.

A provider may be made anew for every request: with all others over the same bank it shares one
lock and one set of indexes, so that it neither reads the bank again nor misses what they wrote.

Which bank is the same: that of one namespace in one store, seen through `ReadOnlyStore` and
`RankedStore` as well; a fork's is that of its overlay over its base. Two store objects on one
database are two stores, as they are in two processes.

Where others may write too, a record in the bank says who wrote last, and how often it was written.
Reading it shows what became out of date. There is one writer of a bank at a time: in this process,
and, where a store allows it, beyond (`langgraft.memory.writers`).

Where others cannot be kept out, a writer that finds the record moved since its own last write raises
`BankConflictError` and writes nothing; the record is read once more right before a write, which leaves the
time between the two for what stays unseen.
"""

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar, cast
from weakref import WeakValueDictionary, ref

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result

from langgraft._core.effects import relay
from langgraft._core.errors import BankConflictError
from langgraft.memory.bank import STAMP
from langgraft.memory.embedders.base import EmbeddingRequest
from langgraft.memory.stores.corpora import SharedIndexes
from langgraft.memory.stores.drive import Address, Namespace, PerStore, Program, Step
from langgraft.memory.stores.forked import ForkedStore, ReadOnlyStore
from langgraft.memory.stores.named import GuardedStore
from langgraft.memory.stores.ranked import RankedStore
from langgraft.memory.writers import OtherProcesses, OtherWriters, other_writers

T = TypeVar("T")

_POLL_SECONDS: Final = 0.001
_POLL_OTHERS_SECONDS: Final = 0.005

MOST_IDLE: Final = 128
"""Banks of a store whose indexes are kept while no provider has them open: the latest."""


class WriterLock:
    """Makes the reads and writes of one filing one step.

    Threads and tasks may use it together. A thread that runs an event loop must not wait in
    it for one of its own tasks, so a blocking wait there is refused instead of hanging.

    Args:
        others: A lock that other processes respect, if there is one.
    """

    def __init__(self, others: OtherProcesses | None = None) -> None:
        self._lock = threading.Lock()
        self._others = others

    @contextmanager
    def held(self, *, here: bool = False) -> Iterator[None]:
        """Hold the lock in a thread.

        Args:
            here: Hold it in this process alone.

        Raises:
            RuntimeError: It would have to wait inside a running event loop.
            InfrastructureError: The lock that other processes respect cannot be had.
        """
        others = None if here else self._others
        if not self._lock.acquire(blocking=False):
            _check_may_wait()
            self._lock.acquire()
        try:
            while others is not None and not others.attempt().result():
                _check_may_wait()
                time.sleep(_POLL_OTHERS_SECONDS)
            try:
                yield
            finally:
                if others is not None:
                    others.release().result()
        finally:
            self._lock.release()

    @asynccontextmanager
    async def aheld(self, *, here: bool = False) -> AsyncIterator[None]:
        """Hold the lock in a task, which may be canceled at any time."""
        others = None if here else self._others
        while not self._lock.acquire(blocking=False):  # noqa: ASYNC110
            # The holder may be a thread, which no `asyncio` primitive can wait for.
            await asyncio.sleep(_POLL_SECONDS)
        try:
            if others is not None:
                await _enter(others)
            try:
                yield
            finally:
                if others is not None:
                    # Given back even if the task is canceled; a blocking writer may be next.
                    await asyncio.shield(asyncio.wrap_future(others.release()))
        finally:
            self._lock.release()


def _check_may_wait() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    msg = (
        "memory is being written, and this thread runs an event loop that a wait would block:"
        " use the async method"
    )
    raise RuntimeError(msg)


async def _enter(others: OtherProcesses) -> None:
    """Wait for a lock; where nobody waits any more, what comes of the last attempt is given back."""
    while True:
        attempt = others.attempt()
        try:
            if await asyncio.wrap_future(attempt):
                return
        except asyncio.CancelledError:
            attempt.add_done_callback(lambda done: _got(done) and others.release())
            raise
        await asyncio.sleep(_POLL_OTHERS_SECONDS)


def _got(attempt: "Future[bool]") -> bool:
    return not attempt.cancelled() and attempt.exception() is None and attempt.result()


class OpenBank:
    """One bank, as this process has it open.

    Attributes:
        alone: Nobody else writes to it.
        lock: Who holds it is the bank's only writer.
        indexes: All that rank its items.
    """

    def __init__(self, namespace: Namespace, others: OtherWriters) -> None:
        self.lock = WriterLock(others.lock)
        self.indexes = SharedIndexes()
        self._namespace = namespace
        self.alone = others.alone
        self._detects_conflicts = not others.alone and others.lock is None
        self._name = uuid.uuid4().hex
        self._wrote = False
        self._looked = False
        self._seen: dict[str, Any] | None = None

    def refresh(self) -> None:
        """Forget what was read, and that others wrote."""
        self._wrote = False
        self.indexes.clear()

    def reading(self, program: Program[T]) -> Program[T]:
        """Run a program that sees what others have written; where there are none, it may run by itself."""
        yield from self._catch_up()
        return (yield from program)

    def writing(self, program: Program[T]) -> Program[T]:
        """Run a program that may write, under the lock; what it sees is as `reading` shows it.

        Raises:
            BankConflictError: Somebody who cannot be kept out writes too; nothing was written.
        """
        seen = None if self.alone else (yield from self._catch_up())

        def answer(step: Step) -> Program[list[Result]]:
            nonlocal seen
            touched = [] if isinstance(step, EmbeddingRequest) else list(_touched(step))
            if not touched:
                return (yield step)
            if self._detects_conflicts:
                yield from self._check_alone(seen)
            # A provider without a ranker writes past all that have one.
            with self.indexes.writing(touched):
                if self.alone:
                    return (yield step)
                number = (seen or {}).get("number", 0) + 1
                seen = {"number": number, "writer": self._name}
                stamp = PutOp(self._namespace, STAMP, seen, index=False)
                results = yield [*cast("Sequence[Op]", step), stamp]
            self._seen, self._wrote = seen, True
            return results[:-1]

        return (yield from relay(program, answer))

    def _check_alone(self, seen: dict[str, Any] | None) -> Program[None]:
        """Refuse to write after somebody else."""
        stamp = yield from self._stamp()
        if stamp != seen or (self._wrote and (stamp or {}).get("writer") != self._name):
            who = f"writer {stamp['writer'][:8]}" if stamp else "somebody who emptied it"
            msg = (
                f"{who} wrote to it since this process did, and the store offers no lock; nothing"
                " was written. Let one process write, or call `refresh` and file again"
            )
            raise BankConflictError(msg, namespace=self._namespace)

    def _catch_up(self) -> Program[dict[str, Any] | None]:
        """Read who wrote last, and forget what was read before."""
        stamp = yield from self._stamp()
        # What is written here, all indexes hear of.
        own = stamp is not None and stamp["writer"] == self._name
        if self._looked and stamp != self._seen and not own:
            self.indexes.clear()
        self._looked, self._seen = True, stamp
        return stamp

    def _stamp(self) -> Program[dict[str, Any] | None]:
        results = yield [GetOp(self._namespace, STAMP)]
        record = cast("Item | None", results[0])
        return None if record is None else dict(record.value)


def _touched(ops: Iterable[Op]) -> Iterator[Address]:
    """Yield the records that operations write."""
    for op in ops:
        if isinstance(op, PutOp):
            yield tuple(op.namespace), op.key


class _Banks:
    """The banks of one store: those in use, and the latest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: WeakValueDictionary[Hashable, OpenBank] = WeakValueDictionary()
        self._latest: dict[Hashable, OpenBank] = {}

    def of(self, key: Hashable, make: Callable[[], OpenBank]) -> OpenBank:
        with self._lock:
            bank = self._open.get(key) or make()
            self._open[key] = bank
            self._latest.pop(key, None)
            self._latest[key] = bank
            while len(self._latest) > MOST_IDLE:
                del self._latest[next(iter(self._latest))]
            return bank


_BANKS: Final = PerStore(_Banks)


def open_bank(store: BaseStore, namespace: Namespace) -> OpenBank:
    """Return what this process has of a bank.

    Args:
        store: The store, in whatever it is wrapped.
        namespace: The exact namespace of the bank's records.
    """
    kept, *below = _backing_stores(store)
    key = (namespace, *map(ref, below))
    return _BANKS.of(kept).of(key, lambda: OpenBank(namespace, other_writers(kept, namespace)))


def _backing_stores(store: BaseStore) -> list[BaseStore]:
    """Return the stores that records are kept in; the first is the one that is written to."""
    match store:
        case RankedStore() | ReadOnlyStore() | GuardedStore():
            return _backing_stores(store.store)
        case ForkedStore():
            return [*_backing_stores(store.overlay), *_backing_stores(store.base)]
        case _:
            return [store]
