"""Searching without a query: how many, from where, in which order."""

from langgraph.store.base import SearchItem

from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite

NAMESPACE = ("searching",)


class SearchCases(StoreSuite):
    """A search without a query lists records."""

    def _fill(self, calls: Calls, count: int) -> list[str]:
        # One at a time: LangGraph does not say how records of one moment are ordered.
        return sorted(calls.fill(NAMESPACE, {f"k{n:02}": {"n": n} for n in range(count)}))

    def test_search_when_nothing_is_there_finds_nothing(self, calls: Calls) -> None:
        """An unknown prefix is an empty answer, not an error."""
        assert calls.search(NAMESPACE) == []
        assert calls.search(()) == []

    def test_search_when_no_limit_is_given_returns_ten(self, calls: Calls) -> None:
        """Ten is LangGraph's default."""
        self._fill(calls, 12)
        found = calls.search(NAMESPACE)
        assert len(found) == 10
        assert all(isinstance(item, SearchItem) for item in found)

    def test_search_when_limited_returns_that_many_of_them(self, calls: Calls) -> None:
        """More is never returned, and less only where there is no more."""
        keys = self._fill(calls, 12)
        for limit in (0, 1, 11, 12, 13, 100_000):
            found = [item.key for item in calls.search(NAMESPACE, limit=limit)]
            assert len(found) == len(set(found)) == min(limit, 12)
            assert set(found) <= set(keys)

    def test_pages_when_put_together_are_all_records_each_once(self, calls: Calls) -> None:
        """Limit and offset cut one order, which does not change between two searches."""
        keys = self._fill(calls, 12)
        for size in (1, 5, 12):
            found = [
                item.key
                for offset in range(0, 15, size)
                for item in calls.search(NAMESPACE, limit=size, offset=offset)
            ]
            assert sorted(found) == keys
        assert calls.search(NAMESPACE, offset=12) == []

    def test_order_when_searched_again_is_the_same(self, calls: Calls) -> None:
        """Nothing but a write changes the order of an answer."""
        self._fill(calls, 12)
        first = [item.key for item in calls.search(NAMESPACE, limit=12)]
        for _ in range(3):
            assert [item.key for item in calls.search(NAMESPACE, limit=12)] == first

    def test_search_when_records_changed_returns_them_as_they_are(self, calls: Calls) -> None:
        """Every search sees every write before it."""
        keys = self._fill(calls, 5)
        calls.put(NAMESPACE, keys[0], {"n": "new"})
        calls.delete(NAMESPACE, keys[1])
        found = {item.key: item.value["n"] for item in calls.search(NAMESPACE)}
        assert found == {"k00": "new", "k02": 2, "k03": 3, "k04": 4}
