"""JSON and YAML of others: within bounds as ever, and beyond them one line."""

import gzip
import json
import zlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.texts import in_a_line, printable
from langgraft._core.untrusted import (
    MOST_BYTES,
    MOST_DEPTH,
    MOST_YAML_BYTES,
    check_number,
    load_json,
    load_yaml,
    unzipped,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(VALUES)
def test_json_when_within_bounds_then_is_read_as_ever(value: object) -> None:
    """What the standard library reads is read alike."""
    data = json.dumps(value).encode()
    assert load_json(data) == json.loads(data)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_yaml_when_dumped_then_is_read_back(value: dict[str, object]) -> None:
    """What PyYAML writes of plain values, without aliases, is read back."""

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    text = yaml.dump(value, Dumper=Plain, allow_unicode=True)
    assert load_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &a [1]\nb: *a\n", r"line 2, column 4: aliases are not allowed \(\*a\)"),
        ("a: &a {x: 1}\nb: {<<: *a}\n", "line 2, column 9: aliases are not allowed"),
        ("a:\n  b: 1\n  b: 2\n", "line 3, column 3: the key 'b' is given twice"),
        ("- " * 3000 + "a", f"line 1, .*nested more than {MOST_DEPTH} levels deep"),
        ("[" * 3000, f"line 1, .*nested more than {MOST_DEPTH} levels deep"),
        ("[" + "a," * 30_000 + "]", "line 1, column .*holds more than 20,000 values"),
        ("#" * (MOST_YAML_BYTES + 1), "is larger than 1,048,576"),
        ("a: " + "1:" * 10_000 + "1", "line 1, column 4: a number of 20,001 characters"),
        ("a: 2024-99-99", "month must be in"),
        ("a: !!python/object/apply:os.getcwd []", "line 1, column 4: could not determine"),
        ("? [a]\n: b", "unhashable key"),
        ("a: \0", "control characters are not allowed"),
    ],
)
def test_yaml_when_out_of_bounds_then_one_line_says_where(text: str, says: str) -> None:
    """Bombs, depth, length, tags and doubled keys are refused before anything is built."""
    with pytest.raises(ValueError, match=says) as caught:
        load_yaml(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"[" * 100_000, "nested more than 100 levels"),
        (b"[" * 101 + b"]" * 101, "nested more than 100 levels"),
        (b"[" + b"{}," * 2_000_000 + b"{}]", "holds more than 1,000,000 values"),
        (b'"' + b"x" * MOST_BYTES + b'"', "is larger than 16,777,216 bytes"),
        (b"[" + b"9" * 10_000 + b"]", "limit"),
        (b"\xff\xff", "decode"),
    ],
    ids=["deep", "a level too deep", "many", "long", "digits", "no text"],
)
def test_json_when_out_of_bounds_then_is_refused(data: bytes, says: str) -> None:
    """Depth, number and size have bounds, and a depth within them is read."""
    with pytest.raises(ValueError, match=says):
        load_json(data)
    assert load_json(b"[" * 100 + b"]" * 100)


def test_number_when_a_log_is_long_then_grows_with_it() -> None:
    """A long log of texts is no bomb; one of nothing but brackets is."""
    line = b'{"text":"' + b"x" * 100 + b'"}\n'
    check_number(line * 200_000)
    with pytest.raises(ValueError, match="holds more than"):
        check_number(b"{}\n" * 2_000_000)


def test_unzipped_when_a_bomb_then_no_more_is_unpacked_than_may_be() -> None:
    """Of a gigabyte in a megabyte, the bound and a byte are made; anything else is as it was."""
    squeezed = zlib.compressobj(wbits=31)
    bomb = b"".join(squeezed.compress(b" " * MOST_BYTES) for _ in range(8)) + squeezed.flush()
    with pytest.raises(ValueError, match="is larger than"):
        unzipped(bomb)
    with pytest.raises(ValueError, match="damaged"):
        unzipped(gzip.compress(b"text")[:-6])
    assert unzipped(gzip.compress(b"text")) == unzipped(b"text") == b"text"


@given(st.text(), st.sampled_from(["\x1b[2J", "\x1b]8;;http://x\x07", "\u202e", "\x9b2J", "\n"]))
def test_printable_when_a_text_is_anything_then_nothing_steers_a_terminal(
    text: str, escape: str
) -> None:
    """Escapes, controls and turns of direction are spelled out; what can be read stays."""
    shown = printable(text + escape)
    assert shown.isprintable()
    assert in_a_line(text + escape + "x" * 500, 80).isprintable()
    assert len(in_a_line(text + escape + "x" * 500, 80)) <= 80
    assert printable("plain \u00e9 text") == "plain \u00e9 text"
