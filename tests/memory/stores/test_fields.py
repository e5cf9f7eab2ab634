"""The fields of a corpus tell which documents pass a filter, exactly as their records do."""

import re
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.memory.stores import filters as judging
from langgraft.memory.stores.filters import MOST_KEYS, FieldIndex, field_of, passes
from langgraft.memory.stores.programs import Address

NAN = float("nan")
_scalars = st.sampled_from([None, True, False, 0, 1, 2, -0.0, 1.0, 2.5, NAN, "", "1", "a", "b"])
values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
    ),
    max_leaves=4,
)
records = st.fixed_dictionaries({}, optional={"a": values, "b": values, "a.x": values})
_comparisons = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
conditions = values | st.dictionaries(_comparisons, values, min_size=1, max_size=2)
keys = st.sampled_from(["a", "b", "a.x", "b.x.y"])
filters = st.dictionaries(keys, conditions, min_size=1, max_size=2)
histories = st.lists(st.tuples(st.integers(0, 5), st.none() | records), max_size=20)


def _address(number: int) -> Address:
    return ("bank",), str(number)


@given(history=histories, filters=st.lists(filters, max_size=8))
def test_matching_when_records_came_and_went_then_is_what_passes(
    history: list[tuple[int, dict[str, Any] | None]], filters: list[dict[str, Any]]
) -> None:
    """Operators, paths, nesting, lists, missing fields and numbers of all types agree."""
    index = FieldIndex(["a", "b", "a.x", "b.x.y"])
    present: dict[Address, dict[str, Any]] = {}
    for number, record in history:
        address = _address(number)
        if record is None:
            present.pop(address, None)
            index.remove(address)
        else:
            present[address] = record
            index.put(address, record)
    for each in filters:
        found = index.matching(each)
        assert found is not None
        expected = {address for address, record in present.items() if passes(record, each)}
        assert set(found) == expected
        assert len(found) == len(expected)
        assert {address for address in present if address in found} == expected


@given(history=histories, filters=st.lists(filters, max_size=8), more=histories)
def test_matching_when_fields_were_saved_then_is_as_before(
    history: list[tuple[int, dict[str, Any] | None]],
    filters: list[dict[str, Any]],
    more: list[tuple[int, dict[str, Any] | None]],
) -> None:
    """Fields that JSON cannot give back, such as those with tuples, are lacking, and all others equal."""
    index = FieldIndex(["a", "b", "a.x", "b.x.y"])
    _enter(index, history)
    with TemporaryDirectory() as folder:
        index.save(Path(folder) / "fields")
        opened = FieldIndex.load(Path(folder) / "fields")
    _enter(opened, more)
    _enter(index, more)
    for each in filters:
        lacking = set(opened.unread(each))
        assert lacking == {key for key in each if _is_no_json(history, key)}
        if not lacking:
            assert set(opened.matching(each) or ()) == set(index.matching(each) or ())


def _enter(index: FieldIndex, history: list[tuple[int, dict[str, Any] | None]]) -> None:
    for number, record in history:
        if record is None:
            index.remove(_address(number))
        else:
            index.put(_address(number), record)


def _is_no_json(history: list[tuple[int, dict[str, Any] | None]], key: str) -> bool:
    latest = dict(history).values()
    present = [field_of(record, key) for record in latest if record is not None]
    return any(re.search(r"\(|nan", repr(value)) for value in present)


def test_matching_when_a_value_is_not_json_then_only_records_can_tell() -> None:
    """A key under which anything else was seen is given up for good; other keys are not."""
    index = FieldIndex(["a", "b"])
    index.put(_address(1), {"a": 1, "b": 1})
    index.put(_address(2), {"a": datetime(2026, 1, 1, tzinfo=UTC), "b": 1})
    index.remove(_address(2))
    assert index.matching({"a": 1}) is None
    assert index.matching({"a": 1, "b": 1}) is None
    assert index.matching({"b": 1}) == {_address(1)}
    assert index.unread({"a": 1}) == []


def test_matching_when_values_are_too_many_then_equality_is_told_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plain value is looked up; comparing each of very many values would take too long."""
    monkeypatch.setattr(judging, "MOST_VALUES", 3)
    index = FieldIndex(["a"])
    for number in range(4):
        index.put(_address(number), {"a": number})
    assert index.matching({"a": 2.0}) == {_address(2)}
    assert index.matching({"a": {"$gt": 2}}) is None
    index.remove(_address(0))
    assert index.matching({"a": {"$gt": 2}}) == {_address(3)}


def test_matching_when_a_value_changes_in_place_then_is_as_entered() -> None:
    """What a store does to a list it handed out does not reach other documents."""
    index = FieldIndex(["a"])
    first = ["red"]
    index.put(_address(1), {"a": first})
    index.put(_address(2), {"a": ["red"]})
    first.append("blue")
    index.remove(_address(1))
    assert index.matching({"a": ["red"]}) == {_address(2)}


def test_unread_when_keys_would_be_too_many_then_names_none() -> None:
    """Filters may name any number of fields; only some are kept."""
    index = FieldIndex(str(i) for i in range(MOST_KEYS - 1))
    assert index.unread({"0": 1, "x": 1}) == ["x"]
    assert index.unread({"x": 1, "y": 1}) == ()
    index.adopt(FieldIndex(["x", "0"]))
    assert index.unread({"y": 1}) == ()
    assert index.matching({"y": 1}) is None
