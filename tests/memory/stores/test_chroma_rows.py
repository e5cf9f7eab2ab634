"""How a record becomes a row, and what cannot become one."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError
from langgraft.memory.stores.chroma.rows import Packed, Row, row_id
from langgraft.memory.stores.programs import MAX_DEPTH, check_address, encode, moment

_texts = st.text(st.characters(exclude_categories=()), max_size=8).filter(
    lambda text: text == json.loads(json.dumps(text))
)
_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _texts
_values = st.dictionaries(
    _texts,
    st.recursive(
        _scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
ADDRESS = (("a", "b"), "k")


class _Color(Enum):
    RED = "red"


@dataclass(frozen=True)
class _Point:
    x: int


@given(value=_values, namespace=st.lists(_texts, max_size=4), key=_texts, data=st.binary())
def test_row_when_read_back_is_as_it_was_written(
    value: dict[str, Any], namespace: list[str], key: str, data: bytes
) -> None:
    """Any JSON value at any address survives, as ASCII text."""
    address = check_address(namespace, key)
    row = Row(*address, created=1, updated=2, value=encode(value, address), packed=Packed(3, data))
    metadata = row.metadata()
    assert all(part.isascii() and "\0" not in part for part in metadata.values())
    assert Row.from_metadata(metadata) == row
    assert row.content() == value
    assert json.dumps(row.content()) == json.dumps(value)


def test_metadata_when_records_differ_has_the_same_names() -> None:
    """Chroma merges what is written again with what was there, so nothing may be left out."""
    plain = Row(("a",), "k", 1, 2, "{}")
    full = Row(("a",), "k", 1, 3, '{"f":1}', Packed(1, b"\0\0\0\0"))
    assert list(plain.metadata()) == list(full.metadata())


def test_row_id_when_labels_and_keys_are_cut_elsewhere_differs() -> None:
    """No two addresses share a row."""
    addresses = [(("a",), "b"), (("a", "b"), ""), ((), "ab"), (("a", ""), "b"), ((), '["a","b"]')]
    assert len({row_id(address) for address in addresses}) == len(addresses)


def test_value_when_not_a_number_comes_back_so() -> None:
    """NaN and infinities are no JSON, but Python reads and writes them."""
    value = Row(*ADDRESS, 1, 2, encode({"n": [math.nan, math.inf]}, ADDRESS)).content()
    assert math.isnan(value["n"][0])
    assert value["n"][1] == math.inf


def test_value_when_it_has_tuples_comes_back_with_lists() -> None:
    """JSON has one kind of sequence."""
    assert Row(*ADDRESS, 1, 2, encode({"t": (1, (2,))}, ADDRESS)).content() == {"t": [1, [2]]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "must be a mapping, got list"),
        ({"f": {1}}, "holds a set"),
        ({"f": datetime(2026, 1, 1, tzinfo=UTC)}, "holds a datetime"),
        ({"f": b"x"}, "holds a bytes"),
        ({"f": UUID(int=1)}, "holds a UUID"),
        ({"f": [_Color.RED]}, "holds a _Color"),
        ({"f": {"g": _Point(1)}}, "holds a _Point"),
        ({"f": {1: "x"}}, "key 1; keys must be strings"),
        ({"f": "\ud83d" + "\ude00"}, "split into two surrogates"),
        ({"\ud83d" + "\ude00": 1}, "split into two surrogates"),
        ({"f": 10**5000}, "cannot be written as JSON"),
    ],
)
def test_encode_when_json_does_not_give_a_value_back_then_says_so(value: Any, message: str) -> None:
    """What would come back as something else is refused, naming the record."""
    with pytest.raises(InputError, match=message) as raised:
        encode(value, ADDRESS)
    assert "'k' in ('a', 'b')" in str(raised.value)


def test_encode_when_nested_too_deep_is_refused() -> None:
    """What can be written can be read from any depth of calls."""
    deep: Any = 1
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    assert encode({"f": deep}, ADDRESS)
    with pytest.raises(InputError, match=f"deeper than {MAX_DEPTH} levels"):
        encode({"f": [[deep]]}, ADDRESS)


@pytest.mark.parametrize(
    ("namespace", "key", "message"),
    [
        ("ab", "k", "a namespace must be a tuple of strings"),
        (("a", 1), "k", "a namespace must be a tuple of strings"),
        (("a",), 1, "a key must be a string, got 1"),
        (("\ud83d" + "\ude00",), "k", "split into two surrogates"),
        (("a",), "\ud83d" + "\ude00", "split into two surrogates"),
    ],
)
def test_address_when_it_cannot_be_one_is_refused(namespace: Any, key: Any, message: str) -> None:
    """Two addresses that JSON writes alike would be one record."""
    with pytest.raises(InputError, match=message):
        check_address(namespace, key)


def test_moment_when_given_nanoseconds_is_exact_to_the_microsecond() -> None:
    """No float is on the way."""
    assert moment(1_700_000_000_123_456_789) == datetime(
        2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC
    )
