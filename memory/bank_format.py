"""Canonical JSONL: one memory item a line, the form in which content travels.

The file is UTF-8 without a byte-order mark, one canonical JSON object a line, each line ended
by one line feed, items in `order_index` order. It is *content* and nothing else
(memory-transplants §3.1-3.2): no settings, no notes, no vectors. `item_schema` publishes the
JSON schema of a line. Content together with where it comes from is a *bundle*
(`langgraft.memory.bundle`), which is never read in the place of this.

Lines are read as those of a stranger: whole, in UTF-8, within bounds, each error told by its row.
"""

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import BankFormatError, InputError
from langgraft._core.files import write_whole
from langgraft.memory.model import MemoryItem

SCHEMA_VERSION: Final = 1
"""Version of the line format; a file may say it in `schema_version` of each line."""
BUNDLE_START: Final = b"PK\x03\x04"
"""What a bundle begins with; no line of JSON does."""


def item_schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of one line."""
    schema = MemoryItem.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "langgraft memory item"
    schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION, "type": "integer"}
    return schema


def write_items(path: Path | str, items: Iterable[MemoryItem]) -> None:
    """Write items as canonical JSONL; the file appears whole or not at all.

    Raises:
        InputError: The path cannot be written, or an item is longer than a line may be.
    """
    write_file(Path(path), b"".join(map(item_line, items)))


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        InputError: The path cannot be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise InputError(msg) from error


def item_line(item: MemoryItem) -> bytes:
    """Return the line of an item.

    Raises:
        InputError: It is longer than a line may be.
    """
    line = (canonical_json(item.to_json()) + "\n").encode()
    if len(line) > MAX_LINE_BYTES:
        msg = f"item {item.id!r:.80} is longer than the {MAX_LINE_BYTES:,} bytes of a line"
        raise InputError(msg)
    return line


def read_items(path: Path | str, *, taken: Container[str] = ()) -> list[MemoryItem]:
    """Read a whole file of canonical JSONL, or nothing.

    Args:
        path: The file.
        taken: Ids that may not occur.

    Raises:
        BankFormatError: The file is a bundle, or a row is not an item; the message names the
            row, the field and what stood there.
    """
    path = Path(path)
    return _items(open_lines(path), path, taken)


def parse_items(file: BinaryIO, path: Path) -> list[MemoryItem]:
    """Do as `read_items` does with what is open already; `path` is for messages.

    Raises:
        BankFormatError: A row is not an item.
    """
    return _items(split_lines(file, path), path, ())


def _items(
    lines: Iterable[tuple[int, bytes]], path: Path, taken: Container[str]
) -> list[MemoryItem]:
    items: list[MemoryItem] = []
    rows: dict[str, int] = {}
    for row, line in lines:
        if row == 1 and line.startswith(BUNDLE_START):
            msg = (
                "this is a bundle, not bare canonical JSONL, which is all that a transplant reads;"
                " `langgraft memory convert BUNDLE FILE` writes its bare content"
            )
            raise BankFormatError(msg, path=path)
        item = _item(path, row, parse_line(path, row, line))
        if item.id in rows:
            msg = f"id {item.id!r:.80} is already used in row {rows[item.id]}"
            raise BankFormatError(msg, path=path, row=row)
        if item.id in taken:
            msg = f"id {item.id!r:.80} is already in the bank"
            raise BankFormatError(msg, path=path, row=row)
        rows[item.id] = row
        items.append(item)
    return items


def _item(path: Path, row: int, value: dict[str, JSON]) -> MemoryItem:
    version = value.pop("schema_version", SCHEMA_VERSION)
    if type(version) is not int or version != SCHEMA_VERSION:  # `True` and 1.0 equal 1
        msg = f"schema_version {version!r:.80} is not supported; this langgraft reads {SCHEMA_VERSION}"
        raise BankFormatError(msg, path=path, row=row)
    try:
        return MemoryItem.from_json(value)
    except InputError as error:
        raise BankFormatError(str(error), path=path, row=row) from error


# Lines of JSON, as a reader must take them that trusts nobody.

MAX_LINE_BYTES: Final = 4 * 2**20
"""Longer lines are refused: a memory is text for a prompt, and this is a million tokens."""
MAX_PARTS: Final = 20_000
"""Most texts, commas, lists and objects of one JSON value, which is read as a whole: an empty
list takes 2 bytes of a file, and 64 of memory."""

_PART: Final = re.compile(rb'"[^"]*"?|[,\[{]')


def open_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Read a file's lines with their numbers, from 1.

    Raises:
        BankFormatError: The file cannot be read, or a line is too long.
    """
    try:
        with path.open("rb") as file:
            yield from split_lines(file, path)
    except OSError as error:
        msg = f"cannot be read: {error.strerror}"
        raise BankFormatError(msg, path=path) from error


def split_lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Read the lines of what is open already; `path` is for messages.

    Raises:
        BankFormatError: A line is too long.
    """
    row = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        row += 1
        if len(line) > MAX_LINE_BYTES:
            msg = f"longer than {MAX_LINE_BYTES:,} bytes"
            raise BankFormatError(msg, path=path, row=row)
        yield row, line


def parse_line(path: Path, row: int, line: bytes, *, foreign: bool = False) -> dict[str, JSON]:
    """Read one line that holds one JSON object.

    Args:
        path: The file, for messages.
        row: The line's number, for messages.
        line: The line with what ends it.
        foreign: Written by others, who may end lines in CR LF and the last one in nothing.

    Raises:
        BankFormatError: It holds anything else; the message says what.
    """
    for wrong, msg in (
        (
            row == 1 and line.startswith(b"SQLite format 3\0"),
            f"a database, not a file of one bank: name it as a store, sqlite:{path}",
        ),
        (line.startswith(b"\xef\xbb\xbf"), "starts with a byte-order mark; save as plain UTF-8"),
        (
            not foreign and not line.endswith(b"\n"),
            "the last line is not ended: the file is truncated",
        ),
        (
            not foreign and line.endswith(b"\r\n"),
            "ends in CR LF; lines end in a single line feed",
        ),
        (not line.strip(), "the line is empty"),
    ):
        if wrong:
            raise BankFormatError(msg, path=path, row=row)
    try:
        value = parse_json(line)
    except ValueError as error:
        torn = "" if line.endswith(b"\n") else "; the last line is not ended: it may be torn"
        raise BankFormatError(f"{error}{torn}", path=path, row=row) from error
    if not isinstance(value, dict):
        msg = f"expected an object, got {type(value).__name__}"
        raise BankFormatError(msg, path=path, row=row)
    return value


def parse_json(data: bytes, most: int = MAX_PARTS) -> JSON:
    """Read JSON strictly: UTF-8, no NaN, no name twice in an object, no more than `most` parts.

    Raises:
        ValueError: It is something else; the message is one line.
    """
    if len(data) > most:
        unescaped = data.replace(rb"\\", b"").replace(rb"\"", b"")
        if next(islice(_PART.finditer(unescaped), most, None), None):
            msg = f"not JSON of a memory: more than {most:,} fields, texts and lists"
            raise ValueError(msg)
    try:
        value: JSON = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        msg = f"not UTF-8 at byte {error.start}"
        raise ValueError(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise ValueError(msg) from error
    return value


def _refuse_constant(name: str) -> None:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _unique_keys(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    value = dict(pairs)
    if len(value) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counted.items() if count > 1)
        msg = f"field {twice!r:.80} stands twice"
        raise ValueError(msg)
    return value


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
