"""What the parts of the suite share: how a store says what it does, and where it departs."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast

import pytest
from langgraph.store.base import BaseStore, Item, Op, Result, SearchItem
from typing_extensions import override

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.base import Suite

Mode: TypeAlias = Literal["sync", "async"]


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


class StoreSuite(Suite):
    """Base of the suite's parts; `sync` and `async` are capabilities too."""

    modes: ClassVar[Sequence[Mode]] = ("sync", "async")
    """Ways in which the store can be called."""
    persistent: ClassVar[bool] = False
    """Records outlive the object; needs the fixture `reopen`."""
    semantic: ClassVar[bool] = False
    """The store ranks by an `index`; needs the fixture `semantic_store`."""
    nul_characters: ClassVar[bool] = True
    """Values may hold the character NUL; if not, they must be refused."""
    dotted_filters: ClassVar[bool] = False
    """A filter may name a field inside another by a dotted path."""
    sync_inside_loop: ClassVar[bool] = True
    """Synchronous methods may be called in a running event loop."""
    examples: ClassVar[int] = 30
    """Random sequences of operations to try."""
    writes_each: ClassVar[int] = 20
    """Writes of each of 16 workers that write at once."""

    @classmethod
    @override
    def _has(cls, capability: str) -> bool:
        if capability in ("sync", "async"):
            return capability in cls.modes
        return super()._has(capability)

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return what the store is said to do, and where it departs."""
        flags = (
            "persistent",
            "semantic",
            "nul_characters",
            "dotted_filters",
            "sync_inside_loop",
        )
        return {
            "modes": list(cls.modes),
            **{name: getattr(cls, name) for name in flags},
            "departures": dict(cls.departures),
        }

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each case in every way the store can be called."""
        for name in ("calls", "ranked"):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, self.modes, indirect=True)

    @pytest.fixture
    def store(self) -> BaseStore:
        """Return an empty store: yours to write."""
        msg = f"{type(self).__name__} needs a fixture `store` that returns an empty store"
        raise SettingsError(msg)

    @pytest.fixture
    def calls(
        self, request: pytest.FixtureRequest, store: BaseStore, runner: asyncio.Runner
    ) -> Calls:
        """Return the store, called in one of its ways."""
        return Calls(store, runner.run, synchronous=request.param == "sync")
