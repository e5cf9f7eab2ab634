"""One store, called synchronously or asynchronously, so that each case is written once."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from langgraph.store.base import BaseStore, Item, Op, Result, SearchItem

T = TypeVar("T")

Namespace: TypeAlias = tuple[str, ...]

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end."""


class Calls:
    """Calls a store's methods, or their asynchronous twins in the loop of `run`.

    Args:
        store: The store.
        run: How to run a coroutine.
        synchronous: Whether to call the synchronous methods.
    """

    def __init__(self, store: BaseStore, run: Run, *, synchronous: bool) -> None:
        self.store = store
        self.run = run
        self.synchronous = synchronous

    def over(self, store: BaseStore) -> "Calls":
        """Return another store, called in the same way."""
        return Calls(store, self.run, synchronous=self.synchronous)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations."""
        return cast("list[Result]", self._call("batch", ops))

    def get(self, namespace: Namespace, key: str) -> Item | None:
        """Return a record, or `None`."""
        return cast("Item | None", self._call("get", namespace, key))

    def found(self, namespace: Namespace, key: str) -> Item:
        """Return a record that must be there."""
        item = self.get(namespace, key)
        assert item is not None, f"{key!r} is not in {namespace!r}"
        return item

    def value(self, namespace: Namespace, key: str) -> dict[str, Any] | None:
        """Return what a record holds, or `None` where there is none."""
        item = self.get(namespace, key)
        return None if item is None else item.value

    def put(self, namespace: Namespace, key: str, value: Mapping[str, Any], **options: Any) -> None:
        """Write a record."""
        self._call("put", namespace, key, value, **options)

    def delete(self, namespace: Namespace, key: str) -> None:
        """Remove a record."""
        self._call("delete", namespace, key)

    def search(self, prefix: Namespace, **options: Any) -> list[SearchItem]:
        """Search under a prefix."""
        return cast("list[SearchItem]", self._call("search", prefix, **options))

    def keys(self, prefix: Namespace, **options: Any) -> list[str]:
        """Return the keys a search finds, sorted."""
        return sorted(item.key for item in self.search(prefix, **{"limit": 1000, **options}))

    def namespaces(self, **options: Any) -> list[Namespace]:
        """List namespaces."""
        return cast("list[Namespace]", self._call("list_namespaces", **options))

    def fill(self, namespace: Namespace, values: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
        """Put records one at a time and return their keys."""
        for key, value in values.items():
            self.put(namespace, key, value)
        return list(values)

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        if self.synchronous:
            return getattr(self.store, name)(*args, **options)
        return self.run(getattr(self.store, f"a{name}")(*args, **options))
