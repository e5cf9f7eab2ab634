"""Canonical JSONL: one memory item a line, the form in which content travels.

The file is UTF-8 without a byte-order mark, one canonical JSON object a line, each line ended
by one line feed, items in `order_index` order. It is *content* and nothing else
(memory-transplants §3.1-3.2): no settings, no notes, no vectors. `item_schema` publishes the
JSON schema of a line.
"""

import json
import os
import secrets
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory.items import MemoryItem

SCHEMA_VERSION: Final = 1
"""Version of the line format; a file may say it in `schema_version` of each line."""
MAX_LINE_BYTES: Final = 16 * 2**20
"""Longer lines are refused: a memory is text for a prompt."""


def item_schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of one line."""
    schema = MemoryItem.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "langgraft memory item"
    schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION, "type": "integer"}
    return schema


def write_items(path: Path, items: Iterable[MemoryItem]) -> None:
    """Write items as canonical JSONL; the file appears whole or not at all.

    Raises:
        InputError: The path cannot be written, or an item is longer than a line may be.
    """
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            for item in items:
                file.write(_line(item))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise InputError(msg) from error
    finally:
        with suppress(OSError):  # it is in place, or never came to be
            temporary.unlink()


def _line(item: MemoryItem) -> bytes:
    line = (canonical_json(item.to_json()) + "\n").encode()
    if len(line) > MAX_LINE_BYTES:
        msg = f"item {item.id!r:.80} is longer than the {MAX_LINE_BYTES:,} bytes of a line"
        raise InputError(msg)
    return line


def read_items(path: Path, *, taken: Container[str] = ()) -> list[MemoryItem]:
    """Read a whole file of canonical JSONL, or nothing.

    Args:
        path: The file.
        taken: Ids that may not occur.

    Raises:
        BankFormatError: A row is not an item; the message names the row, the field and what
            stood there.
    """
    items: list[MemoryItem] = []
    rows: dict[str, int] = {}
    for row, line in _lines(path):
        item = _read_line(path, row, line)
        if item.id in rows:
            msg = f"id {item.id!r} is already used in row {rows[item.id]}"
            raise BankFormatError(msg, path=path, row=row)
        if item.id in taken:
            msg = f"id {item.id!r} is already in the bank"
            raise BankFormatError(msg, path=path, row=row)
        rows[item.id] = row
        items.append(item)
    return items


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    row = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                row += 1
                if len(line) > MAX_LINE_BYTES:
                    msg = f"longer than {MAX_LINE_BYTES:,} bytes"
                    raise BankFormatError(msg, path=path, row=row)
                yield row, line
    except OSError as error:
        msg = f"cannot be read: {error.strerror}"
        raise BankFormatError(msg, path=path) from error


def _read_line(path: Path, row: int, line: bytes) -> MemoryItem:
    for wrong, msg in (
        (line.startswith(b"\xef\xbb\xbf"), "starts with a byte-order mark; save as plain UTF-8"),
        (not line.endswith(b"\n"), "the last line is not ended: the file is truncated"),
        (line.endswith(b"\r\n"), "ends in CR LF; lines end in a single line feed"),
        (not line.strip(), "the line is empty"),
    ):
        if wrong:
            raise BankFormatError(msg, path=path, row=row)
    try:
        text = line.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except UnicodeDecodeError as error:
        msg = f"not UTF-8 at byte {error.start}"
        raise BankFormatError(msg, path=path, row=row) from error
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise BankFormatError(msg, path=path, row=row) from error
    return _read_item(path, row, value)


def _read_item(path: Path, row: int, value: JSON) -> MemoryItem:
    if not isinstance(value, dict):
        msg = f"expected an object, got {type(value).__name__}"
        raise BankFormatError(msg, path=path, row=row)
    version = value.pop("schema_version", SCHEMA_VERSION)
    if type(version) is not int or version != SCHEMA_VERSION:  # `True` and 1.0 equal 1
        msg = f"schema_version {version!r:.80} is not supported; this langgraft reads {SCHEMA_VERSION}"
        raise BankFormatError(msg, path=path, row=row)
    try:
        return MemoryItem.from_json(value)
    except InputError as error:
        raise BankFormatError(str(error), path=path, row=row) from error


def _refuse_constant(name: str) -> None:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _unique_keys(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        msg = f"field {twice!r} stands twice"
        raise ValueError(msg)
    return value
