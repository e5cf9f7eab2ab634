"""A store whose database may go away."""

from collections.abc import Iterable

import pytest
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from langgraft._core.errors import InfrastructureError
from langgraft.memory.stores.named import GuardedStore


class Failing(InMemoryStore):
    """Raises what it is told to."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise self._error

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        raise self._error


async def test_failure_when_it_is_the_worlds_then_is_told_as_one() -> None:
    """What the driver raises of a lost database is an infrastructure error, in one line."""
    store = GuardedStore(Failing(TimeoutError("no\nanswer")), (TimeoutError,), name="there")
    with pytest.raises(InfrastructureError, match="store there does not answer: no answer"):
        store.get(("a",), "k")
    with pytest.raises(InfrastructureError, match="store there does not answer: no answer"):
        await store.aget(("a",), "k")


async def test_failure_when_it_is_the_programs_then_stays_what_it_is() -> None:
    """A wrong call is not taken for a database that is down."""
    store = GuardedStore(Failing(ValueError("wrong")), (TimeoutError,), name="there")
    with pytest.raises(ValueError, match="wrong"):
        store.get(("a",), "k")
    with pytest.raises(ValueError, match="wrong"):
        await store.aget(("a",), "k")


async def test_operations_when_all_is_well_then_reach_the_store() -> None:
    """A guarded store is the store it guards."""
    inner = InMemoryStore()
    store = GuardedStore(inner, (TimeoutError,), name="there")
    store.put(("a",), "k", {"n": 1})
    found = await store.aget(("a",), "k")
    assert found == inner.get(("a",), "k")
