"""What the tables of the page are made of: numbers of ours, each with the published one."""

from dataclasses import dataclass

from langgraft.benchmarks.continual.csv_tables import (
    Field,
    Table,
    metric_columns,
    metric_fields,
    spread_columns,
    spread_fields,
)
from langgraft.benchmarks.continual.metrics import Metric
from langgraft.benchmarks.continual.paper.sides import Side
from langgraft.benchmarks.continual.spreads import Spread


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of ours, and the published one."""

    ours: Metric | Spread | int | None
    published: float | None = None
    difference: bool = False
    """Whether it is a difference, in percentage points."""
    scale: float = 100.0
    """Of a spread: 100 where it is a share."""
    approximate: bool = False
    """Whether the published number is printed as about so."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a CSV table."""
        match self.ours:
            case Metric():
                numbers = metric_fields(self.ours)
            case Spread() as spread:
                numbers = (*spread_fields(spread, self.scale), spread.runs)
            case other:
                numbers = (other,)
        return (*numbers, self.published)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table of the page."""

    side: Side
    heads: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the page, which becomes a CSV file as well."""

    name: str
    """Name of the file, such as `table_3`."""
    heads: tuple[tuple[str, str], ...]
    """Name and title of the columns before the numbers."""
    numbers: tuple[tuple[str, str, str], ...]
    """Name, title and kind (`metric`, `spread`, `count`) of each number."""
    rows: tuple[Row, ...]

    def as_csv(self) -> Table:
        """Return the table as tidy CSV: `pair` first, then heads, then numbers."""
        columns = ["pair", *(name for name, _ in self.heads)]
        for name, _, kind in self.numbers:
            columns += [*_columns(name, kind), f"{name}_published"]
        width = len(columns)
        rows = tuple((row.side.name, *row.heads, *self._fields(row)) for row in self.rows)
        assert all(len(row) == width for row in rows), self.name
        return Table(self.name, tuple(columns), rows)

    @property
    def shown(self) -> frozenset[str]:
        """The heads that have a column of their own on the page; others stand below one."""
        names = {name for name, _ in self.heads}
        below = {"condition"} if "role" in names else {"kind"}
        return frozenset(names - below - {"sequence"})

    def named(self, row: Row) -> dict[str, str]:
        """Return the heads of a row by name; empty where it has no such head."""
        blank = {"sequence": "", "role": "", "condition": "", "kind": ""}
        return blank | {name: head for (name, _), head in zip(self.heads, row.heads, strict=True)}

    def _fields(self, row: Row) -> tuple[Field, ...]:
        found: list[Field] = []
        for cell, (name, _, kind) in zip(row.cells, self.numbers, strict=True):
            if cell.ours is None:
                found += [None] * len(_columns(name, kind)) + [cell.published]
            else:
                found += cell.fields
        return tuple(found)


def _columns(name: str, kind: str) -> tuple[str, ...]:
    if kind == "metric":
        return metric_columns(name)
    return (*spread_columns(name), f"{name}_runs") if kind == "spread" else (name,)
