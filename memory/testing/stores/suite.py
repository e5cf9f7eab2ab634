"""What the parts of the suite share: how a store says what it does, and where it departs."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import pytest
from langgraph.store.base import BaseStore

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.stores.calls import Calls

Mode: TypeAlias = Literal["sync", "async"]

Test = TypeVar("Test", bound=Callable[..., None])

_NEEDS = "_langgraft_needs"


def needs(capability: str, *, value: bool = True) -> Callable[[Test], Test]:
    """Collect a test only for stores whose class attribute `capability` has this value.

    `sync` and `async` stand for a store that can be called that way.
    """

    def mark(test: Test) -> Test:
        setattr(test, _NEEDS, (capability, value))
        return test

    return mark


class StoreSuite:
    """Base of the suite's parts.

    A test that does not apply to a store is not collected. One in `departures` must fail: it is
    reported as an expected failure with its reason, and as an error once it passes.
    """

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
    departures: ClassVar[Mapping[str, str]] = {}
    """Test, as `test_name` or as `test_name[async]`, → why this store fails it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        tests = {name for name in dir(cls) if name.startswith("test_")}
        for name in tests:
            original = _inherited(cls, name)
            if name not in cls.__dict__ or cls.__dict__[name] is None:
                setattr(cls, name, original if cls._applies(original) else None)
        unknown = {name.partition("[")[0] for name in cls.departures} - tests
        if unknown:
            msg = f"{cls.__name__}.departures names no test of the suite: {sorted(unknown)}"
            raise SettingsError(msg)

    @classmethod
    def _applies(cls, test: Any) -> bool:
        capability, value = getattr(test, _NEEDS, (None, True))
        if capability in ("sync", "async"):
            return capability in cls.modes
        return capability is None or getattr(cls, capability) is value

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
    def runner(self) -> Iterator[asyncio.Runner]:
        """Return the event loop of the asynchronous calls, to open a store in that needs one."""
        with asyncio.Runner() as runner:
            yield runner

    @pytest.fixture
    def calls(
        self, request: pytest.FixtureRequest, store: BaseStore, runner: asyncio.Runner
    ) -> Calls:
        """Return the store, called in one of its ways."""
        return Calls(store, runner.run, synchronous=request.param == "sync")

    @pytest.fixture(autouse=True)
    def _departure(self, request: pytest.FixtureRequest) -> None:
        """Expect a declared failure."""
        names = (request.node.name, request.node.originalname)
        reasons = [self.departures[name] for name in names if name in self.departures]
        if reasons:
            request.applymarker(pytest.mark.xfail(strict=True, reason=reasons[0]))


def _inherited(cls: type, name: str) -> Any:
    """Return the test of a name that a base class wrote, whatever a base left out."""
    found = (vars(base)[name] for base in cls.__mro__ if vars(base).get(name) is not None)
    return next(found, None)
