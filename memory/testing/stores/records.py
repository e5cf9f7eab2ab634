"""Records: put, get, delete, put again, and when that was."""

import time
from datetime import datetime

from langgraph.store.base import Item, PutOp

from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite

NAMESPACE = ("records",)


class RecordCases(StoreSuite):
    """What is put is what is found."""

    def test_get_when_nothing_was_put_finds_nothing(self, calls: Calls) -> None:
        """A record that is not there is `None`, not an error."""
        assert calls.get(NAMESPACE, "k") is None

    def test_record_when_put_is_found_as_it_was(self, calls: Calls) -> None:
        """A record comes back with its value, key and namespace, as an `Item`."""
        calls.put(("a", "b"), "k", {"text": "hello", "n": 1})
        item = calls.found(("a", "b"), "k")
        assert isinstance(item, Item)
        assert (item.namespace, item.key) == (("a", "b"), "k")
        assert item.value == {"text": "hello", "n": 1}
        assert isinstance(item.namespace, tuple)

    def test_record_when_put_again_is_replaced_as_a_whole(self, calls: Calls) -> None:
        """There is one record afterwards, and no field of the old value is left."""
        calls.put(NAMESPACE, "k", {"old": 1, "both": {"x": 1, "y": 2}})
        calls.put(NAMESPACE, "k", {"both": {"x": 3}})
        assert calls.value(NAMESPACE, "k") == {"both": {"x": 3}}
        assert [item.value for item in calls.search(NAMESPACE)] == [{"both": {"x": 3}}]

    def test_record_when_deleted_is_gone(self, calls: Calls) -> None:
        """A deleted record is neither got nor found, and its neighbor is."""
        calls.fill(NAMESPACE, {"k": {"n": 1}, "other": {"n": 2}})
        calls.delete(NAMESPACE, "k")
        assert calls.get(NAMESPACE, "k") is None
        assert calls.keys(NAMESPACE) == ["other"]

    def test_record_when_nothing_is_put_as_its_value_is_deleted(self, calls: Calls) -> None:
        """A `PutOp` of `None` deletes."""
        calls.put(NAMESPACE, "k", {"n": 1})
        assert calls.batch([PutOp(NAMESPACE, "k", None)]) == [None]
        assert calls.get(NAMESPACE, "k") is None

    def test_delete_when_nothing_is_there_changes_nothing(self, calls: Calls) -> None:
        """Deleting twice is deleting once."""
        calls.put(NAMESPACE, "other", {"n": 2})
        calls.delete(NAMESPACE, "k")
        calls.delete(("elsewhere",), "other")
        assert calls.keys(()) == ["other"]

    def test_records_when_keys_are_equal_and_namespaces_differ_are_different(
        self, calls: Calls
    ) -> None:
        """A record is named by its namespace and its key together."""
        namespaces = [("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "b", "a")]
        for namespace in namespaces:
            calls.put(namespace, "k", {"of": list(namespace)})
        for namespace in namespaces:
            assert calls.value(namespace, "k") == {"of": list(namespace)}
        calls.delete(("a",), "k")
        assert [calls.get(namespace, "k") is None for namespace in namespaces] == [
            True,
            *[False] * 4,
        ]

    def test_record_when_put_again_keeps_when_it_was_created(self, calls: Calls) -> None:
        """Overwriting is no second creation."""
        calls.put(NAMESPACE, "k", {"n": 0})
        created = calls.found(NAMESPACE, "k").created_at
        self._put_until_later(calls)
        assert calls.found(NAMESPACE, "k").created_at == created

    def test_record_when_put_again_moves_when_it_was_updated(self, calls: Calls) -> None:
        """The time of the update never goes back, and goes on."""
        calls.put(NAMESPACE, "k", {"n": 0})
        first = calls.found(NAMESPACE, "k").updated_at
        assert self._put_until_later(calls) > first

    def _put_until_later(self, calls: Calls) -> datetime:
        """Put a record again until its update is told as later; return when that was."""
        first = last = calls.found(NAMESPACE, "k").updated_at
        given_up = time.monotonic() + 10  # some databases tell whole seconds
        while last == first and time.monotonic() < given_up:
            calls.put(NAMESPACE, "k", {"n": 1})
            updated = calls.found(NAMESPACE, "k").updated_at
            assert updated >= last
            last = updated
        return last

    def test_record_when_deleted_and_put_again_is_a_new_one(self, calls: Calls) -> None:
        """What comes after a deletion was created after it."""
        calls.put(NAMESPACE, "k", {"n": 1})
        old = calls.found(NAMESPACE, "k")
        calls.delete(NAMESPACE, "k")
        calls.put(NAMESPACE, "k", {"n": 2})
        new = calls.found(NAMESPACE, "k")
        assert new.value == {"n": 2}
        assert new.created_at >= old.updated_at

    def test_times_when_read_are_in_order_and_know_their_zone(self, calls: Calls) -> None:
        """Nothing is updated before it is created; times of different machines compare."""
        calls.put(NAMESPACE, "k", {"n": 1})
        item = calls.found(NAMESPACE, "k")
        assert item.created_at <= item.updated_at
        assert item.created_at.utcoffset() is not None
        assert item.updated_at.utcoffset() is not None

    def test_record_when_found_by_search_is_the_one_that_is_got(self, calls: Calls) -> None:
        """Both ways to read agree in all they say."""
        calls.put(("a", "b"), "k", {"n": [1, {"x": None}]})
        (found,) = calls.search(("a",))
        item = calls.found(("a", "b"), "k")
        assert (found.namespace, found.key, found.value) == (item.namespace, item.key, item.value)
        assert (found.created_at, found.updated_at) == (item.created_at, item.updated_at)
