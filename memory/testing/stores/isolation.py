"""Isolation: a store holds values, not references to the caller's."""

from typing import Any

from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite

NAMESPACE = ("isolation",)


def _value() -> dict[str, Any]:
    return {"n": 1, "list": [1, 2], "inner": {"x": [1]}}


class IsolationCases(StoreSuite):
    """Changing what was put, or what was read, changes nothing in the store."""

    def test_value_when_changed_after_it_was_put_is_stored_as_it_was(self, calls: Calls) -> None:
        """The caller may go on to use what it put."""
        value = _value()
        calls.put(NAMESPACE, "k", value)
        value["n"] = 2
        value["list"].append(3)
        value["inner"]["x"].clear()
        assert calls.value(NAMESPACE, "k") == _value()

    def test_value_when_changed_after_it_was_got_is_stored_as_it_was(self, calls: Calls) -> None:
        """The caller may change what it got, at any depth."""
        calls.put(NAMESPACE, "k", _value())
        got = calls.found(NAMESPACE, "k").value
        got["new"] = True
        got["list"].append(3)
        got["inner"]["x"].clear()
        assert calls.value(NAMESPACE, "k") == _value()

    def test_value_when_changed_after_it_was_searched_is_stored_as_it_was(
        self, calls: Calls
    ) -> None:
        """The caller may change what it found, at any depth."""
        calls.put(NAMESPACE, "k", _value())
        (found,) = calls.search(NAMESPACE)
        found.value["new"] = True
        found.value["list"].append(3)
        found.value["inner"]["x"].clear()
        assert calls.value(NAMESPACE, "k") == _value()

    def test_item_when_read_before_an_overwrite_stays_as_it_was_read(self, calls: Calls) -> None:
        """A result is a picture of its moment."""
        calls.put(NAMESPACE, "k", _value())
        before = calls.found(NAMESPACE, "k")
        calls.put(NAMESPACE, "k", {"n": 2})
        assert before.value == _value()
