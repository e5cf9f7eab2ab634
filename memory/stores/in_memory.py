"""What a process keeps for a store, and the one way to LangGraph's `InMemoryStore`.

Threads may not share that one as it is: it walks its dictionaries without a lock, and even a read
may add to them. So everything of ours goes through here: one batch at a time for each store, from
whatever object, thread or task it comes. Whoever writes to the store past us holds no lock of ours:
where that disturbs a walk, the walk is made again.
"""

from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from typing import Final, Generic, TypeVar
from weakref import ref

from langgraph.store.base import BaseStore, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore

T = TypeVar("T")


class PerStore(Generic[T]):
    """One `T` for each store. Stores need be neither hashable nor changeable.

    Args:
        make: Makes what is kept, which must not refer to the store: it would never go.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._kept: dict[int, tuple[ref[BaseStore], T]] = {}

    def of(self, store: BaseStore) -> T:
        """Return what is kept for a store; any number of threads get the same."""
        found = self._kept.get(id(store))
        if found is None:
            # No lock: the garbage collector calls `forget` in the middle of anything.
            kept, key = self._kept, id(store)
            found = kept.setdefault(key, (ref(store, lambda _: kept.pop(key, None)), self._make()))
        return found[1]


_LOCKS: Final = PerStore(RLock)


def carry_out(store: BaseStore, ops: Iterable[Op]) -> list[Result]:
    """Do as `store.batch` does; a store in memory does it by itself."""
    if not isinstance(store, InMemoryStore):
        return store.batch(ops)
    operations = list(ops)
    if _embeds(store, operations):
        return _undisturbed(store, operations)
    with _LOCKS.of(store):
        return _undisturbed(store, operations)


async def acarry_out(store: BaseStore, ops: Iterable[Op]) -> list[Result]:
    """Do as `store.abatch` does; a store in memory does it by itself."""
    if not isinstance(store, InMemoryStore):
        return await store.abatch(ops)
    operations = list(ops)
    own = type(store).batch, type(store).abatch
    if own == (InMemoryStore.batch, InMemoryStore.abatch) and not _embeds(store, operations):
        # Nothing to wait for, so it can be done at once, and under a lock that threads share.
        return carry_out(store, operations)
    while True:
        try:
            return await store.abatch(operations)
        except RuntimeError as error:
            _check_walk(error)


def _undisturbed(store: InMemoryStore, operations: Sequence[Op]) -> list[Result]:
    while True:
        try:
            return store.batch(operations)
        except RuntimeError as error:
            _check_walk(error)


def _check_walk(error: RuntimeError) -> None:
    """Go on only if a walk broke off: that is before anything is written."""
    if "changed size during iteration" not in str(error):
        raise error


def _embeds(store: InMemoryStore, operations: Sequence[Op]) -> bool:
    """Say whether a model may be called, for which nobody else must wait."""
    return store.embeddings is not None and any(
        (isinstance(op, SearchOp) and op.query)
        or (isinstance(op, PutOp) and op.value is not None and op.index is not False)
        for op in operations
    )
