"""Tables of documented columns: rows of numbers in, one CSV file a table out; and the columns of every comparison.

A number may take several columns: with its interval, say, and what it rests on (`Number`). What
every column means is written beside the tables as `columns.csv`. Those of every comparison are here:
`metric` and `spread`, and the tables of contrasts and of gates.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from langgraft._core.files import atomic_write
from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast
from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import Metric, Spread
from langgraft.benchmarks.comparison.verdicts import Gate
from langgraft.benchmarks.harness.progress import Spent
from langgraft.benchmarks.reporting.findings import Registration, standing

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


METRIC: Final = (
    *("value", "low", "high", "low_orders", "high_orders"),
    *("n_items", "n_replicates", "n_done", "n_planned"),
)
"""Columns of a number: the number, its two 95 % intervals, and what it rests on."""

SPREAD: Final = ("mean", "run_min", "run_max")
"""Columns of a mean over runs: the mean, and the least and the greatest value of a run."""


def metric(name: str = "") -> Number:
    """Return the columns of a number of items and runs, in percent."""
    return Number(name, METRIC, metric_fields)


def metric_fields(found: Metric) -> tuple[Field, ...]:
    """Return the fields of `METRIC`, the numbers in percent."""
    counts, estimate = (found.done, found.planned), found.estimate
    if estimate is None:
        return (*(None,) * 5, found.n_items, None, *counts)
    numbers = (estimate.value, estimate.low, estimate.high, *estimate.these_orders)
    return (*(100 * each for each in numbers), estimate.n_items, estimate.n_replicates, *counts)


def spread(name: str, scale: float = 1.0) -> Number:
    """Return the columns of a mean over runs, times `scale`: 100 for percent."""

    def fields(found: Spread) -> tuple[Field, ...]:
        return (scale * found.mean, scale * found.low, scale * found.high)

    return Number(name, SPREAD, fields)


def percent(name: str) -> Number:
    """Return the column of a share, in percent."""
    return Number("", (name,), lambda share: (100 * share,))


def contrast_table(found: Comparison) -> Table:
    """Return the family, then the re-run and the controls."""
    columns = (
        *("condition", "role", metric(), metric("success"), metric("baseline")),
        Number("", ("se", "df", "method", "seed_share", "p"), _test),
        *("p_holm", percent("detectable_80"), "detectable_note", "verdict", "noise"),
    )
    rows = [_contrast(each, "memory", "") for each in found.family]
    rows += [_contrast(each, "control", standing(found, each)) for each in found.beside]
    return Table.of("contrasts", columns, rows)


def _contrast(contrast: Contrast, role: str, standing: str) -> tuple[Any, ...]:
    numbers = (contrast.difference, contrast.success, contrast.baseline, contrast.estimate)
    effect, note = contrast.detectable, None
    if effect is not None and not math.isfinite(effect):
        effect, note = None, "no difference can be detected: too few items or runs"
    tested = (contrast.p_adjusted, effect, note, contrast.verdict, standing)
    return (contrast.condition, role, *numbers, *tested)


def _test(found: Estimate) -> tuple[Field, ...]:
    return (100 * found.se, found.df, found.method, found.seed_share, found.p)


def registered_tables(found: Registration) -> tuple[Table, ...]:
    """Return what the plan registers and what came of it; no table where it registers nothing."""
    if not found.tested:
        return ()
    columns = (
        *("registered", "claim", "measure", "family", "estimator", "margin"),
        *("registered_difference", "corrected_low", "corrected_high", "alpha_left", "p_family"),
        *("decision", "undecided_because"),
    )
    rows = []
    for each in found.tested:
        h, scale = each.hypothesis, each.difference.scale
        value = None if each.estimate is None else scale * each.estimate.value
        ends = (None, None) if each.interval is None else [scale * end for end in each.interval]
        rows.append(
            (
                *(h.name, str(h), h.measure, h.family, h.estimator, scale * h.margin),
                *(value, *ends, each.alpha, each.p_adjusted, each.verdict, each.why),
            )
        )
    return (Table.of("registered", columns, rows),)


def spending_tables(spent: Sequence[Spent]) -> tuple[Table, ...]:
    """Return what was spent by condition and node; no table where the items of a log do not say."""
    rows = [(s.condition, s.node, s.calls, s.tokens, s.dollars) for s in spent]
    columns = ("spent_by", "node", "calls", "tokens_used", "dollars")
    return (Table.of("spending", columns, rows),) if rows else ()


def gate_table(gates: Iterable[Gate]) -> Table:
    """Return the checks and how they came out."""
    rows = ((gate.name, gate.state, gate.detail) for gate in gates)
    return Table.of("gates", ("gate", "state", "detail"), rows)


PARTS: Final = {
    "value": "the number itself",
    "low": "lower end of its 95 % interval: other items and other training orders",
    "high": "upper end of its 95 % interval",
    "low_orders": "lower end of its 95 % interval for these orders: other items, the same runs",
    "high_orders": "upper end of its 95 % interval for these orders",
    "n_items": "test items it rests on",
    "n_replicates": "repetitions it rests on",
    "n_done": "episodes with a result",
    "n_planned": "episodes planned",
    "mean": "mean over repetitions",
    "run_min": "least value of a repetition",
    "run_max": "greatest value of a repetition",
    "runs": "repetitions",
}
"""Parts of a number: what stands after its name, or alone where a table has one number."""

COLUMNS: Final = {
    "alpha_left": "level of the interval: what the family's correction leaves of its own for this hypothesis",
    "calls": "replies that results rest on, those found in the cache too",
    "claim": "what the hypothesis says of the true difference; the margin in the unit of the measure",
    "corrected_high": "upper end of the interval at that level",
    "corrected_low": "lower end of the interval at that level, which the decision goes by",
    "decision": "supported, refuted or undecided, by the interval against the margin",
    "detail": "how the gate came out, in words",
    "detectable_80": "true difference found four times in five, at the first step of Holm's procedure, pp",
    "detectable_note": "why there is none",
    "df": "degrees of freedom of the order variance, pooled over the family",
    "dollars": "paid for these, failed calls included; empty where no price was known or nothing was paid",
    "estimator": "general: other items and other runs; these_runs: other items; these_items: other runs",
    "family": "hypotheses that are corrected together",
    "gate": "name of the check",
    "margin": "what the difference is held to, in the unit of the difference",
    "measure": "what is compared",
    "method": "how the interval was found",
    "node": "the graph's node that asked; empty: outside of graphs, or nobody says",
    "noise": "whether a control is equivalent to no memory, where it should be",
    "p": "two-sided p value",
    "p_holm": "the same, corrected by Holm over the family",
    "p_family": "p value of the hypothesis or of its opposite, the smaller, corrected by Holm over its family",
    "undecided_because": "why a hypothesis is undecided, where that is not the interval's doing",
    "registered": "name of a hypothesis that the plan registers",
    "registered_difference": "treated less baseline; of shares in percentage points",
    "role": "memory: in the family; control: beside it",
    "se": "standard error, pp",
    "seed_share": "share of the variance due to whole repetitions differing",
    "spent_by": "condition; its pair, agent or solver before it, where there are several",
    "state": "passed, failed, open (cannot be told) or not applicable",
    "tokens_used": "tokens of these replies, prompts included",
    "verdict": "helped, hurt, no detectable difference, unclear, too few runs, too small (no difference up to 50 points would have been found) or incomplete",
}
"""Columns of these tables that are no part of a number."""
