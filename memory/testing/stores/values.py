"""Values: whatever JSON can hold comes back as it was, or is refused and nothing happened."""

import hashlib
import math
from typing import Any

import pytest
from langgraph.store.base import PutOp

from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite
from langgraft.memory.testing.suite import needs

NAMESPACE = ("values",)

TEXTS = (
    "",
    " ",
    "line\nbreak\ttab\r\n",
    "\x01\x1f\x7f\x85",
    "\u2028\u2029\ufeff\ufffd\uffff",
    "\u202eright to left",
    "é vs e\u0301",
    "日本語",
    "👩\u200d🔬🜁",
    "'; DROP TABLE store; --",
    '"quotes" \\ back\\slash \\u0041 \\n',
    "%_*?[a-z]$.",
    "null",
    "NaN",
)
"""Texts that something on the way to a disk tends to change."""


class ValueCases(StoreSuite):
    """What is put is what is found, to the type of a number."""

    def test_value_when_nested_comes_back_equal(self, calls: Calls) -> None:
        """Lists, mappings and scalars of all kinds survive at any depth."""
        deep: Any = "bottom"
        for n in range(30):
            deep = {"in": [deep, n]}
        value = {"deep": deep, "list": [[], [[]], {}], "none": None, "flags": [True, False]}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    def test_value_when_empty_is_no_deletion(self, calls: Calls) -> None:
        """An empty value is a record."""
        calls.put(NAMESPACE, "k", {})
        assert calls.value(NAMESPACE, "k") == {}
        assert calls.keys(NAMESPACE) == ["k"]

    def test_texts_when_hostile_come_back_unchanged(self, calls: Calls) -> None:
        """Controls, quotes, wildcards and astral characters are text like any other."""
        value = {f"field {n} {text}": text for n, text in enumerate(TEXTS)}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    def test_keys_and_labels_when_hostile_name_different_records(self, calls: Calls) -> None:
        """Any text without NUL is a key; any without NUL and period is a label."""
        keys = [f"{n}{text}" for n, text in enumerate(TEXTS)]
        for key in keys:
            calls.put((*NAMESPACE, f"l{key.replace('.', '')}"), key, {"key": key})
        for key in keys:
            assert calls.value((*NAMESPACE, f"l{key.replace('.', '')}"), key) == {"key": key}
        assert calls.keys(NAMESPACE) == sorted(keys)

    def test_integers_when_beyond_64_bits_come_back_exact(self, calls: Calls) -> None:
        """JSON sets no limit to an integer."""
        value = {"n": [0, -1, 2**53 + 1, -(2**63), 2**64, 10**30]}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    def test_numbers_when_of_different_types_keep_them(self, calls: Calls) -> None:
        """`1`, `1.0` and `True` are three things, and a float is the nearest it was."""
        numbers = [1, 1.0, True, 0, 0.0, False, 0.1, -2.5e-300, 123456.789]
        value = {"n": numbers, **{f"f{i}": number for i, number in enumerate(numbers)}}
        calls.put(NAMESPACE, "k", value)
        stored = calls.found(NAMESPACE, "k").value
        assert stored == value
        for found in (stored["n"], [stored[f"f{i}"] for i in range(len(numbers))]):
            assert [type(n) for n in found] == [type(n) for n in numbers]

    def test_floats_when_whole_and_large_or_negative_zero_stay_floats(self, calls: Calls) -> None:
        """What a number is does not depend on how it is written."""
        calls.put(NAMESPACE, "k", {"n": [1e16, -1e300, -0.0]})
        large, larger, zero = calls.found(NAMESPACE, "k").value["n"]
        assert (large, larger) == (1e16, -1e300)
        assert isinstance(large, float)
        assert isinstance(larger, float)
        assert math.copysign(1, zero) == -1

    def test_value_when_large_comes_back_whole(self, calls: Calls) -> None:
        """A megabyte of text and a thousand fields are a value."""
        value = {"text": "läng " * 200_000, **{f"f{n}": n for n in range(1000)}}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    def test_key_when_long_names_its_record(self, calls: Calls) -> None:
        """A key may be as long as a text."""
        key = "".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(200))
        calls.put(NAMESPACE, key, {"n": 1})
        assert calls.value(NAMESPACE, key) == {"n": 1}
        assert calls.get(NAMESPACE, key[:-1]) is None

    @needs("nul_characters")
    def test_text_when_it_holds_nul_comes_back_unchanged(self, calls: Calls) -> None:
        """NUL is a character of JSON like any other."""
        value = {"text": "a\x00b", "in\x00key": ["\x00"]}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    @needs("nul_characters", value=False)
    def test_text_when_it_holds_nul_is_refused_and_nothing_is_changed(self, calls: Calls) -> None:
        """What cannot be kept is not kept in part, nor without a word."""
        calls.put(NAMESPACE, "k", {"n": 1})
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the store's to say
            calls.batch(
                [PutOp(NAMESPACE, "new", {"n": 2}), PutOp(NAMESPACE, "k", {"text": "a\x00b"})]
            )
        assert calls.value(NAMESPACE, "k") == {"n": 1}
        assert calls.keys(NAMESPACE) == ["k"]

    def test_value_when_json_cannot_hold_it_is_kept_or_refused_with_its_batch(
        self, calls: Calls
    ) -> None:
        """A store keeps Python values as they are or refuses them before anything is changed."""
        calls.put(NAMESPACE, "k", {"n": 1})
        ops = [PutOp(NAMESPACE, "new", {"n": 2}), PutOp(NAMESPACE, "k", {"of": {1, 2}})]
        try:
            calls.batch(ops)
        except Exception:  # noqa: BLE001 - which one is the store's to say
            assert calls.value(NAMESPACE, "k") == {"n": 1}
            assert calls.keys(NAMESPACE) == ["k"]
        else:
            assert calls.value(NAMESPACE, "k") == {"of": {1, 2}}
            assert calls.value(NAMESPACE, "new") == {"n": 2}
