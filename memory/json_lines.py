"""Lines of JSON as a reader must take them that trusts nobody: whole, in UTF-8, told by row."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from langgraft._core.canonical import JSON
from langgraft._core.errors import BankFormatError

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


def parse_json(data: bytes) -> JSON:
    """Read JSON strictly: UTF-8, no NaN, no name twice in an object, no more than `MAX_PARTS`.

    Raises:
        ValueError: It is something else; the message is one line.
    """
    if len(data) > MAX_PARTS:
        unescaped = data.replace(rb"\\", b"").replace(rb"\"", b"")
        if next(islice(_PART.finditer(unescaped), MAX_PARTS, None), None):
            msg = f"not JSON of a memory: more than {MAX_PARTS:,} fields, texts and lists"
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
