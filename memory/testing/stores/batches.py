"""Batches: many operations, their results in order, reads before writes."""

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
)

from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite

NAMESPACE = ("batches",)


def _value(result: Result) -> object:
    assert isinstance(result, Item)
    return result.value


class BatchCases(StoreSuite):
    """A batch reads the state before it, then writes; results come in the order asked."""

    def test_batch_when_empty_does_nothing(self, calls: Calls) -> None:
        """No operations, no results."""
        assert calls.batch([]) == []

    def test_results_when_operations_are_mixed_come_in_their_order(self, calls: Calls) -> None:
        """Each result stands where its operation stood, whatever is grouped inside."""
        calls.fill(NAMESPACE, {"a": {"n": 1}, "b": {"n": 2}})
        results = calls.batch(
            [
                GetOp(NAMESPACE, "b"),
                PutOp(NAMESPACE, "c", {"n": 3}),
                SearchOp(NAMESPACE, filter={"n": 1}),
                GetOp(NAMESPACE, "missing"),
                ListNamespacesOp((MatchCondition("prefix", NAMESPACE),)),
                PutOp(NAMESPACE, "a", None),
                GetOp(NAMESPACE, "a"),
                SearchOp(("elsewhere",)),
            ]
        )
        assert _value(results[0]) == {"n": 2}
        assert results[1] is None
        assert [item.key for item in results[2]] == ["a"]  # type: ignore[union-attr]
        assert results[3] is None
        assert results[4] == [NAMESPACE]
        assert results[5] is None
        assert _value(results[6]) == {"n": 1}
        assert results[7] == []

    def test_reads_when_writes_come_first_in_the_batch_see_the_state_before_it(
        self, calls: Calls
    ) -> None:
        """Neither gets, searches nor listings see what their own batch writes."""
        calls.put(NAMESPACE, "k", {"n": 1})
        new = (*NAMESPACE, "new")
        listed, found, got, missing = calls.batch(
            [
                PutOp(NAMESPACE, "k", {"n": 2}),
                PutOp(new, "k", {"n": 3}),
                ListNamespacesOp(),
                SearchOp(NAMESPACE),
                GetOp(NAMESPACE, "k"),
                GetOp(new, "k"),
            ]
        )[2:]
        assert _value(got) == {"n": 1}
        assert missing is None
        assert [item.value for item in found] == [{"n": 1}]  # type: ignore[union-attr]
        assert listed == [NAMESPACE]
        assert calls.value(NAMESPACE, "k") == {"n": 2}
        assert calls.value(new, "k") == {"n": 3}

    def test_write_when_repeated_in_a_batch_is_the_last_one(self, calls: Calls) -> None:
        """Of several writes to one record the last counts, be it a deletion or not."""
        calls.put(NAMESPACE, "deleted", {"n": 0})
        calls.batch(
            [
                PutOp(NAMESPACE, "k", {"n": 1}),
                PutOp(NAMESPACE, "deleted", {"n": 1}),
                PutOp(NAMESPACE, "back", None),
                PutOp(NAMESPACE, "k", {"n": 2}),
                PutOp(NAMESPACE, "deleted", None),
                PutOp(NAMESPACE, "back", {"n": 3}),
            ]
        )
        assert {item.key: item.value for item in calls.search(NAMESPACE)} == {
            "k": {"n": 2},
            "back": {"n": 3},
        }

    def test_read_when_repeated_in_a_batch_answers_each_time(self, calls: Calls) -> None:
        """Equal operations have equal results, one each."""
        calls.put(NAMESPACE, "k", {"n": 1})
        ops: list[Op] = [GetOp(NAMESPACE, "k"), SearchOp(NAMESPACE)] * 2
        first, found, second, again = calls.batch(ops)
        assert _value(first) == _value(second) == {"n": 1}
        assert [len(each) for each in (found, again)] == [1, 1]  # type: ignore[arg-type]

    def test_batch_when_given_as_an_iterator_is_carried_out(self, calls: Calls) -> None:
        """Operations come as any iterable."""
        calls.batch(PutOp(NAMESPACE, f"k{n}", {"n": n}) for n in range(3))
        assert calls.keys(NAMESPACE) == ["k0", "k1", "k2"]

    def test_batch_when_large_is_carried_out_whole(self, calls: Calls) -> None:
        """A thousand writes, and a thousand reads of them, are two batches."""
        calls.batch([PutOp(NAMESPACE, f"k{n}", {"n": n}) for n in range(1000)])
        results = calls.batch([GetOp(NAMESPACE, f"k{n}") for n in reversed(range(1000))])
        assert [_value(result) for result in results] == [{"n": n} for n in reversed(range(1000))]
