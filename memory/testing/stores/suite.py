"""What the parts of the suite share: how a store says what it does, and where it departs."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import pytest
from langgraph.store.base import BaseStore
from typing_extensions import override

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.suite import Suite

Mode: TypeAlias = Literal["sync", "async"]


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
