"""What all suites share: cases that apply to some parts only, and declared departures."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import pytest

from langgraft._core.errors import SettingsError

Test = TypeVar("Test", bound=Callable[..., None])

_NEEDS = "_langgraft_needs"


def needs(capability: str, *, value: bool = True) -> Callable[[Test], Test]:
    """Collect a test only for parts whose class attribute `capability` has this value."""

    def mark(test: Test) -> Test:
        setattr(test, _NEEDS, {**getattr(test, _NEEDS, {}), capability: value})
        return test

    return mark


class Suite:
    """Base of the suites.

    A test that does not apply to a part is not collected. One in `departures` must fail: it is
    reported as an expected failure with its reason, and as an error once it passes.
    """

    departures: ClassVar[Mapping[str, str]] = {}
    """Test, as `test_name` or as `test_name[parameter]`, → why this part fails it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        tests = {name for name in dir(cls) if name.startswith("test_")}
        for name in sorted(tests):
            original = _inherited(cls, name)
            if name not in cls.__dict__ or cls.__dict__[name] is None:
                setattr(cls, name, original if cls._applies(original) else None)
        unknown = {name.partition("[")[0] for name in cls.departures} - tests
        if unknown:
            msg = f"{cls.__name__}.departures names no test of the suite: {sorted(unknown)}"
            raise SettingsError(msg)

    @classmethod
    def _applies(cls, test: Any) -> bool:
        asked: Mapping[str, bool] = getattr(test, _NEEDS, {})
        return all(cls._has(capability) is value for capability, value in asked.items())

    @classmethod
    def _has(cls, capability: str) -> bool:
        """Return whether the part can do something."""
        return bool(getattr(cls, capability))

    @pytest.fixture
    def runner(self) -> Iterator[asyncio.Runner]:
        """Return the event loop of the asynchronous calls, to open what needs one in."""
        with asyncio.Runner() as runner:
            yield runner

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
