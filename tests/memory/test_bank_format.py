"""Canonical JSONL: what is written, what is read, and what is refused at which row."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from memory_cases import items, make_item

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory import bank_format
from langgraft.memory.bank_format import item_schema, read_items, write_items
from langgraft.memory.model import MemoryItem

lists_of_items = st.lists(items(), max_size=4, unique_by=lambda item: item.id)


def line_of(item: MemoryItem, **fields: Any) -> bytes:
    """Write the line of an item, with fields changed."""
    return (canonical_json({**item.to_json(), **fields}) + "\n").encode()


GOOD = line_of(make_item("first")) + line_of(make_item("second", order_index=1))


@given(lists_of_items)
def test_file_when_read_and_written_again_is_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, listed: list[MemoryItem]
) -> None:
    """Any items survive a file, whatever their texts hold, and the file is canonical."""
    folder = tmp_path_factory.mktemp("bank")
    first, second = folder / "first.jsonl", folder / "second.jsonl"
    write_items(first, listed)
    again = read_items(first)
    write_items(second, again)
    assert again == listed
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().count(b"\n") == len(listed)


@given(items())
def test_schema_when_a_line_is_written_accepts_it(item: MemoryItem) -> None:
    """The published schema describes what is written, with or without a version."""
    validator = Draft202012Validator(item_schema())
    validator.validate(json.loads(line_of(item)))
    validator.validate(json.loads(line_of(item, schema_version=1)))


def test_schema_when_published_is_itself_a_valid_schema() -> None:
    """Other tools can load it."""
    Draft202012Validator.check_schema(item_schema())


MISSING = type("MISSING", (), {"__repr__": lambda self: "MISSING"})()
WRONG_FIELDS: list[dict[str, Any]] = [
    {"schema_version": 2},
    {"schema_version": "1"},
    {"schema_version": True},
    {"vector": [1.0]},
    {"text": 5},
    {"text": MISSING},
    {"success": "true"},
    {"success": MISSING},
    {"type": "insight"},
    {"order_index": -1},
    {"order_index": 0.5},
    {"id": ""},
    {"metadata": {"nested": {}}},
    {"metadata": []},
]


@pytest.mark.parametrize("fields", WRONG_FIELDS, ids=str)
def test_line_when_a_field_is_wrong_is_refused_by_schema_and_reader_alike(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    """Schema and reader agree, and the reader names row and field."""
    row = {**make_item("third").to_json(), **fields}
    row = {name: value for name, value in row.items() if value is not MISSING}
    assert not Draft202012Validator(item_schema()).is_valid(row)
    path = tmp_path / "bank.jsonl"
    path.write_bytes(GOOD + json.dumps(row).encode() + b"\n")
    with pytest.raises(BankFormatError, match=next(iter(fields))) as caught:
        read_items(path)
    assert caught.value.row == 3
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}, row 3: ")


DAMAGED: dict[str, tuple[bytes, int, str]] = {
    "truncated": (GOOD[:-9], 2, "not ended: the file is truncated"),
    "cut between lines": (GOOD + b"{", 3, "not ended"),
    "byte-order mark": (b"\xef\xbb\xbf" + GOOD, 1, "byte-order mark"),
    "database": (b"SQLite format 3\0" + GOOD, 1, "name it as a store, sqlite:"),
    "UTF-16": (GOOD.decode().encode("utf-16"), 1, "not UTF-8 at byte 0"),
    "CR LF": (GOOD.replace(b"\n", b"\r\n"), 1, "CR LF"),
    "bad UTF-8": (GOOD.replace(b"text of second", b"text \xff"), 2, "not UTF-8 at byte"),
    "NUL byte": (GOOD.replace(b"text of second", b"text \x00"), 2, "not JSON: .*control character"),
    "only NUL": (GOOD + b"\x00" * 8 + b"\n", 3, "not JSON"),
    "NaN": (line_of(make_item()).replace(b'"order_index":0', b'"order_index":NaN'), 1, "NaN"),
    "infinity": (line_of(make_item()).replace(b":0", b":-Infinity"), 1, "-Infinity is not JSON"),
    "too large a number": (line_of(make_item()).replace(b":0", b":1e999"), 1, "order_index"),
    "endless digits": (line_of(make_item()).replace(b":0", b":" + b"1" * 9999), 1, "not JSON"),
    "duplicate id": (GOOD + line_of(make_item("first")), 3, "'first' is already used in row 1"),
    "duplicate key": (GOOD.replace(b'{"', b'{"id":"x","', 1), 1, "field 'id' stands twice"),
    "empty line": (GOOD + b"\n" + GOOD, 3, "the line is empty"),
    "blank line": (GOOD + b" \t\n", 3, "the line is empty"),
    "array": (GOOD + b"[]\n", 3, "expected an object, got list"),
    "null": (b"null\n", 1, "expected an object, got NoneType"),
    "two objects": (GOOD.replace(b"}\n{", b"}{"), 1, "not JSON: Extra data"),
    "nested too deeply": (GOOD + b"[" * 200_000 + b"\n", 3, "not JSON"),
    "lone surrogate": (GOOD.replace(b"text of first", b"\\ud800"), 1, "surrogates not allowed"),
    "surrogate in a name": (GOOD.replace(b'{"', b'{"\\ud800":1,"', 1), 1, "ud800"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_file_when_damaged_is_refused_at_the_row_in_one_printable_line(
    tmp_path: Path, damage: str
) -> None:
    """Every kind of damage is found where it is, and said in a line."""
    content, row, said = DAMAGED[damage]
    path = tmp_path / "bank.jsonl"
    path.write_bytes(content)
    with pytest.raises(BankFormatError, match=said) as caught:
        read_items(path)
    assert caught.value.row == row
    assert len(str(caught.value).encode().splitlines()) == 1
    assert path.read_bytes() == content


HEAVY: dict[str, bytes] = {
    "lists": b'{"a":[' + b"[]," * 1_000_000 + b"[]]}\n",
    "objects": b'{"a":[' + b"{}," * 1_000_000 + b"{}]}\n",
    "texts": b'{"a":[' + b'"",' * 1_000_000 + b'""]}\n',
    "escaped quotes between": b'{"a":["' + rb"\\\"" * 500_000 + b'"' + b",[]" * 30_000 + b"]}\n",
    "names": b"{" + b",".join(b'"%d":1' % number for number in range(200_000)) + b"}\n",
    "wrong metadata": line_of(make_item())[:-2]
    + b',"metadata":{'
    + b",".join(b'"%d":[]' % number for number in range(9_000))
    + b"}}\n",
    "a long id twice": line_of(make_item("x" * 2**20)) * 2,
    "a long name twice": b'{"' + b"x" * 2**20 + b'":1,"' + b"x" * 2**20 + b'":1}\n',
}


@pytest.mark.parametrize("weight", HEAVY)
def test_line_when_it_is_heavier_to_read_than_to_write_costs_little(
    tmp_path: Path, weight: str
) -> None:
    """A few megabytes of a file never become hundreds in memory, nor a message of their length."""
    path = tmp_path / "bank.jsonl"
    path.write_bytes(HEAVY[weight])
    tracemalloc.start()
    try:
        with pytest.raises(BankFormatError) as caught:
            read_items(path)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 4_000


class _Name(str):
    """A field's name that counts how often it is compared."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        type(self).compared += 1
        return str.__eq__(self, other)


def test_field_when_it_stands_twice_among_many_is_found_without_comparing_all() -> None:
    """Each name is looked at a few times, however many there are."""
    pairs: list[tuple[str, JSON]] = [(_Name(number), 1) for number in range(9_000)]
    with pytest.raises(ValueError, match="field '8999' stands twice"):
        bank_format._unique_keys([*pairs, (_Name(8999), 1)])
    assert _Name.compared < 10 * len(pairs)


def test_text_when_it_is_full_of_brackets_and_commas_is_read(tmp_path: Path) -> None:
    """What stands inside of a text is not counted."""
    item = make_item(text='[{",\\' * 100_000)
    write_items(tmp_path / "bank.jsonl", [item])
    assert read_items(tmp_path / "bank.jsonl") == [item]


def test_line_when_longer_than_allowed_is_refused_without_reading_it_whole(tmp_path: Path) -> None:
    """A sparse line of 100 MB is refused after the limit."""
    path = tmp_path / "bank.jsonl"
    path.write_bytes(GOOD)
    with path.open("r+b") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(BankFormatError, match="row 3: longer than 4,194,304 bytes"):
        read_items(path)


def test_item_when_too_long_for_a_line_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be read back is refused at once, and no file appears."""
    monkeypatch.setattr(bank_format, "MAX_LINE_BYTES", 200)
    with pytest.raises(InputError, match="item 'long' is longer than the 200 bytes"):
        write_items(tmp_path / "bank.jsonl", [make_item("short"), make_item("long", text="a" * 99)])
    assert list(tmp_path.iterdir()) == []


def test_id_when_already_in_the_bank_is_refused(tmp_path: Path) -> None:
    """An import never replaces what is there."""
    path = tmp_path / "bank.jsonl"
    path.write_bytes(GOOD)
    with pytest.raises(BankFormatError, match="row 2: id 'second' is already in the bank"):
        read_items(path, taken={"second"})


def test_file_when_empty_holds_no_items(tmp_path: Path) -> None:
    """An empty bank is a bank."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [])
    assert path.read_bytes() == b""
    assert read_items(path) == []


def test_line_when_written_by_hand_may_have_spaces_and_any_key_order(tmp_path: Path) -> None:
    """Strict about content, lenient about layout; the version may be named."""
    path = tmp_path / "bank.jsonl"
    row = {"schema_version": 1, **dict(reversed(make_item().to_json().items()))}
    path.write_text(json.dumps(row) + "\n")
    assert read_items(path) == [make_item()]


def test_text_when_it_holds_line_separators_stays_on_one_line(tmp_path: Path) -> None:
    """Only line feeds separate lines, and none stands raw in a text."""
    path = tmp_path / "bank.jsonl"
    item = make_item(text="a\u2028b\u2029c\u0085d\ne\r\nf\x00g\u202eh")
    write_items(path, [item])
    assert path.read_bytes().count(b"\n") == 1
    assert read_items(path) == [item]


def test_path_when_it_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A missing file and a folder are reported as a whole, without a row."""
    for path, said in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(BankFormatError, match=f"cannot be read: {said}") as caught:
            read_items(path)
        assert caught.value.row is None


def test_path_when_it_cannot_be_written_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    """No folder, a folder in the place of the file, a file in the place of the folder."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for name in ("none/bank.jsonl", "folder", "file/bank.jsonl"):
        with pytest.raises(InputError, match="cannot be written: "):
            write_items(tmp_path / name, [make_item()])
    assert {each.name for each in tmp_path.iterdir()} == {"file", "folder"}


def test_file_when_written_over_another_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    """A failure while writing leaves the old file, and success the new one."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item("old")])

    def failing() -> Any:
        yield make_item("new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_items(path, failing())
    assert [item.id for item in read_items(path)] == ["old"]
    write_items(path, [make_item("new")])
    assert [item.id for item in read_items(path)] == ["new"]
    assert [each.name for each in tmp_path.iterdir()] == ["bank.jsonl"]


def test_file_when_written_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    """A bank can be shared as the user's umask says."""
    write_items(tmp_path / "bank.jsonl", [])
    (tmp_path / "other").touch()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1
