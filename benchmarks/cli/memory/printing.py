"""Texts of others on a terminal: what is stored in a bank may be anything."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from langgraft._core.canonical import JSON


def printable(text: str) -> str:
    r"""Return a text in which nothing steers a terminal: `\x1b`, `\u202e` … are spelled out."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def in_a_line(text: str, width: int) -> str:
    """Return the beginning of a text, printable, in at most `width` characters."""
    line = printable(" ".join(text[: 4 * width].split()))
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"


def say(line: str) -> None:
    """Print a line as it is, however long."""
    Console().print(Text(printable(line)), soft_wrap=True)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; columns of numbers are set to the right."""
    say(title)
    table = Table(header_style="bold")
    for number, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[number], int | float) for row in rows)
        table.add_column(column, justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    Console().print(table)


def write_json(value: JSON) -> None:
    """Print one line of JSON in ASCII, which steers no terminal."""
    print(json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")))  # noqa: T201
