"""All that commands print goes through here: much of it was written by others."""

import json
import sys
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from langgraft._core.canonical import JSON
from langgraft._core.texts import printable

_WIDE: Final = 10_000
"""Columns of a terminal in which every table fits."""


def say(line: str) -> None:
    """Print a line as it is, however long."""
    Console().print(Text(printable(line)), soft_wrap=True)


def complain(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{printable(line)}\n")


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; columns of numbers are set to the right.

    Where the terminal has no room for its longest words, each row is a few lines instead.
    """
    say(title)
    table = Table(header_style="bold")
    for number, column in enumerate(columns):
        numbers = bool(rows) and all(str(row[number])[:1] in "+-.0123456789" for row in rows)
        # Folded: in a narrow terminal names that are cut could not be told apart.
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    console = Console()
    if console.measure(table, options=console.options.update_width(_WIDE)).minimum <= console.width:
        console.print(table)
        return
    room = max(map(len, columns))
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            say(f"  {column:{room}}  {cell}")
        say("")


def write_json(value: JSON) -> None:
    """Print one line of JSON in ASCII, which steers no terminal, and at once: a program may wait for it."""
    told = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
    print(told, flush=True)  # noqa: T201
