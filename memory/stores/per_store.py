"""What a process keeps for a store, whoever asks: by identity, and as long as the store lives."""

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

from langgraph.store.base import BaseStore

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
