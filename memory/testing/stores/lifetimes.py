"""Lifetimes: stores that let records expire, and stores that say they do not."""

import pytest

from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite

NAMESPACE = ("lifetimes",)


class LifetimeCases(StoreSuite):
    """A store that does not support a time to live refuses one; it never forgets it silently."""

    def test_put_when_given_a_time_to_live_is_kept_or_refused(self, calls: Calls) -> None:
        """A record with an hour to live is there now; without support, nothing is written."""
        if calls.store.supports_ttl:
            calls.put(NAMESPACE, "k", {"n": 1}, ttl=60)
            assert calls.value(NAMESPACE, "k") == {"n": 1}
            assert calls.keys(NAMESPACE, refresh_ttl=True) == ["k"]
            calls.put(NAMESPACE, "k", {"n": 2}, ttl=None)
            assert calls.value(NAMESPACE, "k") == {"n": 2}
        else:
            with pytest.raises(NotImplementedError):
                calls.put(NAMESPACE, "k", {"n": 1}, ttl=60)
            assert calls.get(NAMESPACE, "k") is None

    def test_read_when_it_refreshes_changes_no_update_time(self, calls: Calls) -> None:
        """Reading is not writing."""
        calls.put(NAMESPACE, "k", {"n": 1})
        before = calls.found(NAMESPACE, "k").updated_at
        calls.search(NAMESPACE, refresh_ttl=True)
        assert calls.found(NAMESPACE, "k").updated_at == before
