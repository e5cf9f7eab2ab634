"""Tables of documented columns: rows of numbers in, one CSV file a table out.

A number may take several columns: with its interval, say, and what it rests on (`Number`). What
every column means is written beside the tables as `columns.csv`.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from langgraft._core.files import atomic_write

Field: TypeAlias = str | int | float | None

_DIGITS = 6
"""Digits after the point: more than any interval is worth, and no float noise."""


@dataclass(frozen=True, slots=True)
class Number:
    """The columns that a number takes."""

    name: str
    """What stands before the names of its parts; empty where a table has one such number."""
    parts: tuple[str, ...]
    fields: Callable[[Any], Sequence[Field]]
    """Takes a number that is there apart; all fields of one that is not are empty."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(f"{self.name}_{part}" if self.name else part for part in self.parts)


@dataclass(frozen=True, slots=True)
class Table:
    """A table that becomes one CSV file."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]

    @classmethod
    def of(
        cls, name: str, columns: Sequence[str | Number], rows: Iterable[Sequence[Any]]
    ) -> "Table":
        """Make a table of rows that have one value for each column, or number of several.

        Args:
            name: Of the file.
            columns: A name each, or a number.
            rows: A value for each of `columns`.
        """
        numbers = [
            Number("", (each,), _alone) if isinstance(each, str) else each for each in columns
        ]
        names = tuple(column for each in numbers for column in each.columns)
        return cls(name, names, tuple(_row(numbers, row) for row in rows))

    def to_csv(self) -> str:
        """Return the table as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_written(value) for value in row] for row in self.rows)
        return text.getvalue()


def _alone(value: Field) -> tuple[Field]:
    return (value,)


def _row(numbers: Sequence[Number], values: Sequence[Any]) -> tuple[Field, ...]:
    found: list[Field] = []
    for each, value in zip(numbers, values, strict=True):
        found += [None] * len(each.parts) if value is None else each.fields(value)
    return tuple(found)


def _written(value: Field) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, float):
        rounded = round(value, _DIGITS)
        return repr(rounded or 0.0)
    return str(value)


@dataclass(frozen=True)
class Meanings:
    """What the columns of a study's tables mean."""

    columns: Mapping[str, str]
    """By the name of a column, or of a number."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """By the part of a number: what stands after its name, or alone."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """By what stands before the name of a column."""

    def of(self, column: str) -> str | None:
        """Return what a column means; `None` for one that is not known."""
        for prefix, words in self.prefixes.items():
            if column.startswith(prefix):
                known = self.columns.get(column.removeprefix(prefix))
                return f"{words}: {known}" if known else None
        if column in self.columns or column in self.parts:
            return self.columns.get(column) or self.parts[column]
        for part, words in self.parts.items():
            name = column.removesuffix(f"_{part}")
            if name != column and name in self.columns:
                return f"{self.columns[name]}: {words}"
        return None

    def table(self, tables: Sequence[Table]) -> Table:
        """Return the table that explains the columns of the others."""
        rows = tuple(
            (table.name, name, self.of(name)) for table in tables for name in table.columns
        )
        return Table("columns", ("table", "column", "meaning"), rows)


def write_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write tables to a folder that is there.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    for table in tables:
        atomic_write(folder / f"{table.name}.csv", table.to_csv().encode())
