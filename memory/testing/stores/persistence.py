"""Persistence: what was written is there when the store is opened again."""

from collections.abc import Callable

import pytest
from langgraph.store.base import BaseStore

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite
from langgraft.memory.testing.suite import needs

NAMESPACE = ("persistence",)


class PersistenceCases(StoreSuite):
    """Opening a store again gives all that was acknowledged."""

    @pytest.fixture
    def reopen(self) -> Callable[[], BaseStore]:
        """Return what closes the store and opens it again: yours, if `persistent`."""
        msg = f"{type(self).__name__} says `persistent = True`: it needs a fixture `reopen`"
        raise SettingsError(msg)

    @needs("persistent")
    def test_store_when_reopened_holds_what_it_held(
        self, calls: Calls, reopen: Callable[[], BaseStore]
    ) -> None:
        """Records, their times and their namespaces outlive the object; deletions do too."""
        calls.fill(NAMESPACE, {f"k{n}": {"n": n, "text": "é"} for n in range(20)})
        calls.put(("gone",), "k", {"n": 1})
        calls.put(NAMESPACE, "k0", {"n": "again"})
        calls.delete(NAMESPACE, "k1")
        calls.delete(("gone",), "k")
        before = {item.key: item.dict() for item in calls.search((), limit=100)}
        listed = calls.namespaces()
        reopened = calls.over(reopen())
        assert {item.key: item.dict() for item in reopened.search((), limit=100)} == before
        assert reopened.namespaces() == listed == [NAMESPACE]

    @needs("persistent")
    def test_store_when_reopened_goes_on(
        self, calls: Calls, reopen: Callable[[], BaseStore]
    ) -> None:
        """What was written before can be overwritten and deleted after."""
        calls.fill(NAMESPACE, {"a": {"n": 1}, "b": {"n": 1}})
        created = calls.found(NAMESPACE, "a").created_at
        reopened = calls.over(reopen())
        reopened.put(NAMESPACE, "a", {"n": 2})
        reopened.delete(NAMESPACE, "b")
        assert reopened.found(NAMESPACE, "a").value == {"n": 2}
        assert reopened.found(NAMESPACE, "a").created_at == created
        assert reopened.keys(NAMESPACE) == ["a"]
