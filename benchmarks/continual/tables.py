"""The tables of a report as tidy CSV: one file per table, one observation per row.

Shares are in percent and differences in percentage points; an empty field means that there
is no such number.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.contrasts import Contrast
from langgraft.benchmarks.continual.costs import Spread
from langgraft.benchmarks.continual.metrics import Metric
from langgraft.benchmarks.harness.files import atomic_write

Field: TypeAlias = str | int | float | None

_DIGITS = 6
"""Digits after the point: more than any interval is worth, and no float noise."""

METRIC = ("value", "low", "high", "n_items", "n_replicates", "n_done", "n_planned")
"""Columns of a number: the number, its 95 % interval, and what it rests on."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that becomes one CSV file."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]

    def to_csv(self) -> str:
        """Return the table as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_field(value) for value in row] for row in self.rows)
        return text.getvalue()


def _field(value: Field) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, float):
        rounded = round(value, _DIGITS)
        return repr(rounded or 0.0)
    return str(value)


def write_tables(analysis: Analysis, folder: Path) -> tuple[Path, ...]:
    """Write all tables to `folder`.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    paths = []
    for table in tables(analysis):
        path = folder / f"{table.name}.csv"
        atomic_write(path, table.to_csv().encode())
        paths.append(path)
    return tuple(paths)


def tables(analysis: Analysis) -> tuple[Table, ...]:
    """Return all tables of a study."""
    return (
        _contrasts(analysis),
        _content(analysis),
        _accuracies(analysis),
        _transfers(analysis),
        _partitions(analysis),
        _retentions(analysis),
        _curves(analysis),
        _milestones(analysis),
        _costs(analysis),
        _banks(analysis),
        _gates(analysis),
        _episodes(analysis),
    )


def _metric(metric: Metric) -> tuple[Field, ...]:
    counts = (metric.done, metric.planned)
    estimate = metric.estimate
    if estimate is None:
        return (None, None, None, metric.n_items, None, *counts)
    numbers = (100 * estimate.value, 100 * estimate.low, 100 * estimate.high)
    return (*numbers, estimate.n_items, estimate.n_replicates, *counts)


def _prefixed(*prefixes: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{column}" for prefix in prefixes for column in METRIC)


def _contrasts(analysis: Analysis) -> Table:
    columns = (
        *("condition", "role", *METRIC, *_prefixed("success", "baseline")),
        *("se", "df", "method", "seed_share", "p", "p_holm"),
        *("detectable_80", "detectable_note", "verdict", "noise"),
    )
    rows = [_contrast(c, "memory", "") for c in analysis.family]
    rows += [_contrast(c, "control", _standing(analysis, c)) for c in analysis.beside]
    return Table("contrasts", columns, tuple(rows))


def _standing(analysis: Analysis, control: Contrast) -> str:
    """Say whether a control is within the noise of the re-run."""
    noise = analysis.noise
    if control is noise.rerun or noise.band is None or control.verdict == "incomplete":
        return ""
    within = noise.holds(control)
    return "cannot be told" if within is None else "within" if within else "outside"


def _detectable(contrast: Contrast) -> tuple[Field, Field]:
    effect = contrast.detectable
    if effect is None:
        return None, None
    if not math.isfinite(effect):
        return None, "no difference can be detected: too few items or runs"
    return 100 * effect, None


def _contrast(contrast: Contrast, role: str, standing: str) -> tuple[Field, ...]:
    estimate = contrast.estimate
    spread: tuple[Field, ...] = (None, None, None, None, None)
    if estimate is not None:
        spread = (
            100 * estimate.se,
            estimate.df,
            estimate.method,
            estimate.seed_share,
            estimate.p,
        )
    head = (contrast.condition, role, *_metric(contrast.difference))
    pair = (*_metric(contrast.success), *_metric(contrast.baseline))
    test = (*spread, contrast.p_adjusted, *_detectable(contrast))
    return (*head, *pair, *test, contrast.verdict, standing)


def _content(analysis: Analysis) -> Table:
    rows = ((c.condition, c.control, *_metric(c.difference)) for c in analysis.content)
    return Table("content", ("condition", "control", *METRIC), tuple(rows))


def _accuracies(analysis: Analysis) -> Table:
    rows: list[tuple[Field, ...]] = [
        ("none", "", task, *_metric(metric)) for task, metric in analysis.baseline
    ]
    rows += [
        (r.key.condition, r.key.sequence, r.key.task, *_metric(r.accuracy))
        for r in analysis.retentions
    ]
    return Table("accuracies", ("condition", "sequence", "task", *METRIC), tuple(rows))


def _transfers(analysis: Analysis) -> Table:
    columns = ("condition", "direction", "sequence", "task")
    metrics = _prefixed("before", "after", "transfer", "delta_rr", "delta_nl")
    rows = (
        (
            row.condition,
            row.direction,
            row.sequence,
            row.task,
            *_metric(row.before),
            *_metric(row.after),
            *_metric(row.transfer),
            *_metric(row.delta_rr),
            *_metric(row.delta_nl),
            row.identity_gap,
        )
        for row in analysis.transfers
    )
    return Table("transfers", (*columns, *metrics, "identity_gap"), tuple(rows))


def _partitions(analysis: Analysis) -> Table:
    rows = (
        (
            part.task,
            analysis.domains[part.task],
            part.runs,
            len(part.solved),
            len(part.failed),
            *_metric(part.accuracy),
        )
        for part in analysis.partitions.values()
    )
    columns = ("task", "domain", "baseline_runs", "n_solved", "n_failed", *METRIC)
    return Table("partitions", columns, tuple(rows))


def _retentions(analysis: Analysis) -> Table:
    columns = ("condition", "sequence", "task", *_prefixed("rr", "nl"))
    rows = (
        (r.key.condition, r.key.sequence, r.key.task, *_metric(r.rr), *_metric(r.nl))
        for r in analysis.retentions
    )
    return Table("retentions", columns, tuple(rows))


def _curves(analysis: Analysis) -> Table:
    rows = (
        (curve.condition, curve.sequence, curve.task, replicate, items, 100 * rate)
        for curve in analysis.curves
        for replicate, rates in zip(curve.replicates, curve.curves, strict=True)
        for items, rate in enumerate(rates, start=1)
    )
    columns = ("condition", "sequence", "task", "replicate", "items", "cumulative_success")
    return Table("learning_curves", columns, tuple(rows))


def _milestones(analysis: Analysis) -> Table:
    rows = (
        (m.key.condition, m.key.sequence, m.key.task, m.at, *_metric(m.accuracy))
        for m in analysis.milestones
    )
    return Table("milestones", ("condition", "sequence", "task", "at", *METRIC), tuple(rows))


def _spread(spread: Spread | None) -> tuple[Field, ...]:
    if spread is None:
        return (None, None, None)
    return (spread.mean, spread.low, spread.high)


def _costs(analysis: Analysis) -> Table:
    names = ("replies", "invalid_replies", "recalls", "recalled_tokens", "tokens")
    columns = [f"{name}_{part}" for name in names for part in ("mean", "run_min", "run_max")]
    rows = (
        (
            cost.condition,
            cost.kind,
            cost.episodes,
            *_spread(cost.replies),
            *_spread(cost.invalid_replies),
            *_spread(cost.recalls),
            *_spread(cost.recalled_tokens),
            *_spread(cost.tokens),
        )
        for cost in analysis.costs
    )
    return Table("costs", ("condition", "kind", "episodes", *columns), tuple(rows))


def _banks(analysis: Analysis) -> Table:
    rows = (
        (bank.condition, bank.sequence, bank.items.runs, *_spread(bank.items))
        for bank in analysis.banks
    )
    columns = ("condition", "sequence", "runs", "items_mean", "items_min", "items_max")
    return Table("banks", columns, tuple(rows))


def _gates(analysis: Analysis) -> Table:
    rows = ((gate.name, gate.state, gate.detail) for gate in analysis.gates)
    return Table("gates", ("gate", "state", "detail"), tuple(rows))


def _episodes(analysis: Analysis) -> Table:
    names = ("condition", "kind", "sequence", "task", "at", "replicate")
    columns = ("run", *names, "position", "item", "success", "score", "replies")
    return Table("episodes", columns, tuple(_episode_rows(analysis)))


def _episode_rows(analysis: Analysis) -> Iterator[tuple[Field, ...]]:
    names: Sequence[str] = ("condition", "kind", "sequence", "task", "at", "replicate")
    for run in analysis.study.runs:
        factors = run.spec.factors
        head = [_scalar(factors.get(name)) for name in names]
        position = {item: number for number, item in enumerate(run.spec.item_ids, start=1)}
        for item, result in run.by_item.items():
            success = int(bool(result["success"]))
            tail = (_scalar(result.get("score")), _scalar(result.get("rounds")))
            yield (run.spec.name, *head, position[item], item, success, *tail)


def _scalar(value: object) -> Field:
    return value if isinstance(value, str | int | float) else None
