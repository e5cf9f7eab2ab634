"""Filters beside a query, and the fields of a record."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError
from langgraft.memory.stores.corpora import Reading
from langgraft.memory.stores.filters import check_filter, passes

RECORD: dict[str, Any] = {
    "type": "rule",
    "count": 3,
    "date": "2026-03-05",
    "flag": True,
    "nothing": None,
    "tags": ["a", "b"],
    "meta": {"domain": "math", "level": 2},
    "dotted.key": 1,
}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, True),
        ({}, True),
        ({"type": "rule"}, True),
        ({"type": "case"}, False),
        ({"type": "rule", "count": 4}, False),
        ({"nothing": None}, True),
        ({"absent": None}, True),
        ({"count": {"$eq": 3}}, True),
        ({"count": {"$ne": 3}}, False),
        ({"absent": {"$ne": 3}}, True),
        ({"count": {"$gt": 2, "$lt": 4}}, True),
        ({"count": {"$gt": 3}}, False),
        ({"count": {"$gte": 3}}, True),
        ({"count": {"$lte": 2.5}}, False),
        ({"count": {"$gt": "2"}}, True),
        ({"count": {"$lt": 10**400}}, True),
        ({"count": {"$gte": 10**400}}, False),
        ({"type": {"$lt": 10**400}}, False),
        ({"date": {"$gt": "2026-02-28", "$lte": "2026-03-05"}}, True),
        ({"date": {"$lt": "2026-01-01"}}, False),
        ({"absent": {"$gt": 0}}, False),
        ({"type": {"$gt": 0}}, False),
        ({"count": {"$lt": float("nan")}}, False),
        ({"tags": ["a", "b"]}, True),
        ({"tags": ("a", "b")}, True),
        ({"tags": ["b", "a"]}, False),
        ({"tags": ["a"]}, False),
        ({"meta": {"domain": "math"}}, True),
        ({"meta": {"level": {"$gte": 2}}}, True),
        ({"meta": {"domain": "code"}}, False),
        ({"type": {"domain": "math"}}, False),
        ({"meta.domain": "math"}, True),
        ({"meta.domain.deeper": "math"}, False),
        ({"dotted.key": 1}, True),
    ],
)
def test_passes_when_given_conditions_then_says_whether_all_are_met(
    conditions: dict[str, Any] | None, expected: bool
) -> None:
    """Equality, operators and nesting work; what cannot be compared does not pass."""
    assert passes(RECORD, conditions) is expected
    check_filter(conditions)


@pytest.mark.parametrize(
    "conditions",
    [
        {"type": "rule"},
        {"type": {"$ne": "rule"}},
        {"count": {"$gt": 2, "$lte": 3}},
        {"count": {"$lt": 3}},
        {"meta": {"level": {"$gte": 2}}},
        {"tags": ["a"]},
        {"absent": None},
    ],
)
def test_passes_when_in_memory_store_has_an_answer_then_agrees(conditions: dict[str, Any]) -> None:
    """Where LangGraph's own store does not raise, the same records pass."""
    store = InMemoryStore()
    store.put(("n",), "k", RECORD)
    assert passes(RECORD, conditions) is bool(store.search(("n",), filter=conditions))


@pytest.mark.parametrize(
    "conditions",
    [{"a": {"$in": [1]}}, {"$or": []}, {"a": {"$gt": 1, "b": 2}}, {"a": {"b": {"$regex": "x"}}}],
)
def test_check_filter_when_operator_is_unknown_then_names_it(conditions: dict[str, Any]) -> None:
    """An operator nobody knows is an error even if no record would be compared."""
    with pytest.raises(InputError, match="unknown filter operator"):
        check_filter(conditions)


def test_reading_when_value_has_no_text_then_it_is_no_document() -> None:
    """Something at the path makes a document."""
    reading = Reading(("content.key",), None)
    assert reading.text({"content": {"key": "red"}}) == "red"
    assert reading.text({"content": {"key": ""}}) == ""
    for value in ({}, {"content": "red"}, {"content": {"key": None}}):
        assert reading.text(value) is None


def test_reading_when_orders_are_compared_then_integer_and_key_or_namespace_and_key() -> None:
    """Numbered records come first, by number and key; the others by namespace and key."""
    reading = Reading(("text",), "meta.place")
    records: list[tuple[tuple[tuple[str, ...], str], dict[str, Any]]] = [
        ((("z",), "a"), {"meta": {"place": 1}}),
        ((("a",), "b"), {"meta": {"place": 1}}),
        ((("b",), "b"), {"meta": {"place": 1}}),
        ((("a",), "a"), {"meta": {"place": 2}}),
        ((("a",), "z"), {"meta": {"place": True}}),
        ((("a", "b"), "c"), {"meta": {"place": "1"}}),
        ((("b",), "a"), {}),
    ]
    orders = [reading.order(address, value) for address, value in records]
    assert orders == sorted(orders)
    assert len(set(orders)) == len(orders)
