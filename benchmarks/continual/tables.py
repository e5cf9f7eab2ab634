"""The tables of a report as tidy CSV: one file per table, one observation per row.

Shares are in percent and differences in percentage points; an empty field means that there
is no such number.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.columns import columns_table
from langgraft.benchmarks.continual.contrasts import Contrast
from langgraft.benchmarks.continual.csv_tables import (
    METRIC,
    Field,
    Table,
    metric_columns,
    metric_fields,
    spread_columns,
    spread_fields,
)
from langgraft.benchmarks.continual.mechanism_tables import mechanism_tables
from langgraft.benchmarks.harness.files import atomic_write


def write_tables(analysis: Analysis, folder: Path) -> tuple[Path, ...]:
    """Write all tables to `folder`.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    paths = []
    found = tables(analysis)
    for table in (*found, columns_table(found)):
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
        _curves(analysis),
        _milestones(analysis),
        _costs(analysis),
        _costs_by_node(analysis),
        _banks(analysis),
        _gates(analysis),
        _episodes(analysis),
        *mechanism_tables(analysis),
    )


def _contrasts(analysis: Analysis) -> Table:
    columns = (
        *("condition", "role", *METRIC, *metric_columns("success", "baseline")),
        *("se", "df", "method", "seed_share", "p", "p_holm"),
        *("detectable_80", "detectable_note", "verdict", "noise"),
    )
    rows = [_contrast(c, "memory", "") for c in analysis.family]
    rows += [_contrast(c, "control", _standing(analysis, c)) for c in analysis.beside]
    return Table("contrasts", columns, tuple(rows))


def _standing(analysis: Analysis, control: Contrast) -> str:
    """Say whether a control, or the re-run, is equivalent to no memory."""
    if not control.inert or control.verdict == "incomplete":
        return ""
    words = {True: "equivalent", False: "differs", None: "cannot be told"}
    return words[analysis.noise.holds(control)]


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
    head = (contrast.condition, role, *metric_fields(contrast.difference))
    pair = (*metric_fields(contrast.success), *metric_fields(contrast.baseline))
    test = (*spread, contrast.p_adjusted, *_detectable(contrast))
    return (*head, *pair, *test, contrast.verdict, standing)


def _content(analysis: Analysis) -> Table:
    rows = ((c.condition, c.control, *metric_fields(c.difference)) for c in analysis.content)
    return Table("content", ("condition", "control", *METRIC), tuple(rows))


def _accuracies(analysis: Analysis) -> Table:
    rows: list[tuple[Field, ...]] = [
        ("none", "", task, *metric_fields(metric)) for task, metric in analysis.baseline
    ]
    rows += [
        (r.key.condition, r.key.sequence, r.key.task, *metric_fields(r.accuracy))
        for r in analysis.retentions
    ]
    return Table("accuracies", ("condition", "sequence", "task", *METRIC), tuple(rows))


def _transfers(analysis: Analysis) -> Table:
    columns = ("condition", "direction", "sequence", "task")
    metrics = metric_columns("before", "after", "transfer", "delta_rr", "delta_nl")
    rows = (
        (
            row.condition,
            row.direction,
            row.sequence,
            row.task,
            *metric_fields(row.before),
            *metric_fields(row.after),
            *metric_fields(row.transfer),
            *metric_fields(row.delta_rr),
            *metric_fields(row.delta_nl),
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
            *metric_fields(part.accuracy),
        )
        for part in analysis.partitions.values()
    )
    columns = ("task", "domain", "baseline_runs", "n_solved", "n_failed", *METRIC)
    return Table("partitions", columns, tuple(rows))


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
        (
            *(m.key.condition, m.key.sequence, m.key.task, m.at),
            *metric_fields(m.accuracy),
            *metric_fields(m.rr),
            *metric_fields(m.nl),
        )
        for m in analysis.milestones
    )
    columns = ("condition", "sequence", "task", "at", *METRIC, *metric_columns("rr", "nl"))
    return Table("milestones", columns, tuple(rows))


def _costs(analysis: Analysis) -> Table:
    names = (
        *("replies", "invalid_replies", "recalls", "recalled_tokens", "tokens"),
        *("questions", "by_rules"),
    )
    rows = (
        (
            cost.condition,
            cost.kind,
            cost.episodes,
            *spread_fields(cost.replies),
            *spread_fields(cost.invalid_replies),
            *spread_fields(cost.recalls),
            *spread_fields(cost.recalled_tokens),
            *spread_fields(cost.tokens),
            *spread_fields(cost.questions),
            *spread_fields(cost.by_rules),
        )
        for cost in analysis.costs
    )
    return Table("costs", ("condition", "kind", "episodes", *spread_columns(*names)), tuple(rows))


def _costs_by_node(analysis: Analysis) -> Table:
    rows = (
        (
            cost.condition,
            cost.kind,
            cost.node,
            *spread_fields(cost.replies),
            *spread_fields(cost.tokens),
        )
        for cost in analysis.costs_by_node
    )
    columns = ("condition", "kind", "node", *spread_columns("replies", "tokens"))
    return Table("costs_by_node", columns, tuple(rows))


def _banks(analysis: Analysis) -> Table:
    rows = (
        (bank.condition, bank.sequence, bank.items.runs, *spread_fields(bank.items))
        for bank in analysis.banks
    )
    columns = ("condition", "sequence", "runs", *spread_columns("items"))
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
