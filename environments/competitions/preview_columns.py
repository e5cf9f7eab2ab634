"""What the columns of a table hold, for a competition's preview."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from langgraft.environments.competitions.preview_files import Beginning, plain, read_beginning

_READ: Final = 4 * 2**20
"""Bytes of a table that are read: 40,000 rows of a hundred characters, in about half a second."""
_ROWS: Final = 50_000
_COLUMNS: Final = 30
"""Columns that are described; of further ones the first and the last are named."""
_FEW: Final = 12
"""So many different values are listed: months and digits are (AIDE lists nine)."""
_COMMON: Final = 4
"""Of more, so many of the most frequent are, as in AIDE."""
_LONGEST_VALUE: Final = 30
_MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf")
_SEPARATORS: Final = ",\t;|"


@dataclass(frozen=True, slots=True)
class _Table:
    names: list[str]
    rows: list[list[str]]
    notes: list[str]
    whole: bool


def described_table(path: Path, name: str, *, names_only: int | None = None) -> str:
    """Describe a table: its rows and columns, and what each column holds.

    Args:
        path: A file of comma-separated values, or separated by tabs, semicolons or bars.
        name: What to call it.
        names_only: Tell only so many columns' names.

    Raises:
        OSError: It cannot be read.
    """
    table = _read(read_beginning(path, _READ))
    if not table.names:
        return f"{name}: {'; '.join(['empty', *table.notes])}"
    rows = f"{len(table.rows):,} {'row' if len(table.rows) == 1 else 'rows'}"
    seen = rows if table.whole else f"the first {rows} looked at"
    count = len(table.names)
    head = [seen, f"{count:,} {'column' if count == 1 else 'columns'}", *table.notes]
    if names_only is not None:
        listed = [plain(each) for each in table.names[:names_only]]
        more = [f"… {count - names_only:,} more"] if count > names_only else []
        return f"{name}: {', '.join(head)}: {', '.join(listed + more)}"
    columns = [
        f"  {plain(each)}: {_column([row[at] if at < len(row) else '' for row in table.rows])}"
        for at, each in enumerate(table.names[:_COLUMNS])
    ]
    if count > _COLUMNS:
        first, last = plain(table.names[_COLUMNS]), plain(table.names[-1])
        columns.append(f"  … {count - _COLUMNS:,} more columns, {first} to {last}")
    return "\n".join([f"{name}: {', '.join(head)}", *columns])


def _read(beginning: Beginning) -> _Table:
    notes = [] if beginning.encoding == "UTF-8" else [f"in {beginning.encoding}"]
    separator = _separator(beginning.text)
    if separator != ",":
        notes.append(f"separated by {separator!r}")
    reader = csv.reader(io.StringIO(beginning.text, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    whole = beginning.whole
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) > _ROWS + 1:  # with the line of names
                rows.pop()
                whole = False
                break
    except csv.Error as error:
        notes.append(f"no CSV from line {reader.line_num} on ({error})")
        whole = False
    names = rows[0] if rows else []
    longer = sum(len(row) > len(names) for row in rows)
    if longer:
        notes.append(f"{longer:,} rows with more fields than the first line")
    return _Table(names, rows[1:], notes, whole)


def _separator(text: str) -> str:
    """Return what separates the fields of the first line: most often, the comma first."""
    line = text.lstrip("\r\n").partition("\n")[0]
    return max(_SEPARATORS, key=line.count)


def _column(values: Sequence[str]) -> str:
    there = [value.strip() for value in values if value.strip().lower() not in _MISSING]
    if not there:
        return "no values" if values else "no rows"
    share = 1 - len(there) / len(values)
    missing = f", {share:.1%} missing" if len(there) < len(values) else ""
    return f"{_told(there)}{missing}"


def _told(values: Sequence[str]) -> str:
    counts = Counter(values)
    if {value.lower() for value in counts} <= {"true", "false"}:
        true = sum(count for value, count in counts.items() if value.lower() == "true")
        return f"true or false, {true / len(values):.1%} true"
    if all(_NUMBER.fullmatch(value) for value in counts):
        return _numbers(counts)
    if len(counts) <= _FEW:
        return f"text, {_few(sorted(counts, key=lambda value: (-counts[value], value)))}"
    if len(counts) == len(values):
        return f"text, all different, such as {_quoted(list(counts)[:2])}"
    common = sorted(counts, key=lambda value: (-counts[value], value))[:_COMMON]
    return f"text, {len(counts):,} different, most often {_quoted(common)}"


def _numbers(counts: Counter[str]) -> str:
    kind = "whole numbers" if all(map(_WHOLE.fullmatch, counts)) else "numbers"
    ordered = sorted(counts, key=lambda value: (float(value), value))
    if len({float(value) for value in ordered}) <= _FEW:
        return f"{kind}, {_few(ordered, plainly=True)}"
    different = ", all different" if max(counts.values()) == 1 else ""
    return f"{kind}, {plain(ordered[0])} to {plain(ordered[-1])}{different}"


def _few(values: Sequence[str], *, plainly: bool = False) -> str:
    listed = ", ".join(map(plain, values)) if plainly else _quoted(values)
    return f"only {listed}" if len(values) == 1 else f"{len(values)} values: {listed}"


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f'"{plain(value, _LONGEST_VALUE)}"' for value in values)
