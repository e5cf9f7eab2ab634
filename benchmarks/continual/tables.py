"""The tables of a report as tidy CSV: one file per table, one observation per row.

Shares are in percent and differences in percentage points; an empty field means that there
is no such number.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from langgraft.benchmarks.comparison.contrasts import Contrast
from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.cells import CellKey
from langgraft.benchmarks.continual.mechanisms import collapsed
from langgraft.benchmarks.continual.probes import RunDifference
from langgraft.benchmarks.continual.retrieval import MEASURES, SHARES, FirstRecall
from langgraft.benchmarks.continual.sequences import Judged, SequenceResult
from langgraft.benchmarks.reporting.tables import (
    Field,
    Number,
    Table,
    contrast_table,
    gate_table,
    metric,
    percent,
    spread,
)
from langgraft.benchmarks.reporting.words import shortened

_CELL: Final = ("condition", "sequence", "task")
_FACTORS: Final = ("condition", "kind", "sequence", "task", "at", "replicate")


def tables(analysis: Analysis) -> tuple[Table, ...]:
    """Return all tables of a study: what came out, then why."""
    return (
        contrast_table(analysis.comparison),
        _content(analysis),
        _accuracies(analysis),
        _transfers(analysis),
        _partitions(analysis),
        _curves(analysis),
        _milestones(analysis),
        _costs(analysis),
        _costs_by_node(analysis),
        _banks(analysis),
        gate_table(analysis.gates),
        _episodes(analysis),
        _retentions(analysis),
        _nulls(analysis),
        _decomposition(analysis),
        _cross_recall(analysis),
        _first_recalls(analysis),
        _retrieval(analysis),
        _retrieval_runs(analysis),
        _dilution_tested(analysis),
        _dilution_training(analysis),
        _distillation(analysis),
        _dropped(analysis),
        _crossed_success(analysis),
        _crossed_effects(analysis),
        _remedies(analysis),
        *_sequences(analysis),
        *_mixtures(analysis),
        *_online(analysis),
    )


def _cell(key: CellKey) -> tuple[str, str, str]:
    return (key.condition, key.sequence, key.task)


def _content(analysis: Analysis) -> Table:
    rows = ((c.condition, c.control, c.difference) for c in analysis.content)
    return Table.of("content", ("condition", "control", metric()), rows)


def _accuracies(analysis: Analysis) -> Table:
    rows: list[tuple[Any, ...]] = [("none", "", *each) for each in analysis.baseline]
    rows += [(*_cell(r.key), r.accuracy) for r in analysis.retentions]
    return Table.of("accuracies", (*_CELL, metric()), rows)


def _transfers(analysis: Analysis) -> Table:
    names = ("before", "after", "transfer", "delta_rr", "delta_nl")
    rows = (
        (
            *(row.condition, row.direction, row.sequence, row.task),
            *(row.before, row.after, row.transfer, row.delta_rr, row.delta_nl),
            row.identity_gap,
        )
        for row in analysis.transfers
    )
    head = ("condition", "direction", "sequence", "task")
    return Table.of("transfers", (*head, *map(metric, names), "identity_gap"), rows)


def _partitions(analysis: Analysis) -> Table:
    columns = ("task", "domain", "baseline_runs", "n_solved", "n_failed", metric())
    rows = (
        (
            *(part.task, analysis.domains[part.task], part.runs),
            *(len(part.solved), len(part.failed), part.accuracy),
        )
        for part in analysis.partitions.values()
    )
    return Table.of("partitions", columns, rows)


def _curves(analysis: Analysis) -> Table:
    rows = (
        (curve.condition, curve.sequence, curve.task, replicate, items, rate)
        for curve in analysis.curves
        for replicate, rates in zip(curve.replicates, curve.curves, strict=True)
        for items, rate in enumerate(rates, start=1)
    )
    columns = (*_CELL, "replicate", "items", percent("cumulative_success"))
    return Table.of("learning_curves", columns, rows)


def _milestones(analysis: Analysis) -> Table:
    rows = ((*_cell(m.key), m.at, m.accuracy, m.rr, m.nl) for m in analysis.milestones)
    return Table.of("milestones", (*_CELL, "at", metric(), metric("rr"), metric("nl")), rows)


def _costs(analysis: Analysis) -> Table:
    names = (
        *("replies", "invalid_replies", "recalls", "recalled_tokens", "tokens"),
        *("questions", "by_rules"),
    )
    rows = (
        (cost.condition, cost.kind, cost.episodes, *(getattr(cost, name) for name in names))
        for cost in analysis.costs
    )
    return Table.of("costs", ("condition", "kind", "episodes", *map(spread, names)), rows)


def _costs_by_node(analysis: Analysis) -> Table:
    rows = (
        (cost.condition, cost.kind, cost.node, cost.replies, cost.tokens)
        for cost in analysis.costs_by_node
    )
    columns = ("condition", "kind", "node", spread("replies"), spread("tokens"))
    return Table.of("costs_by_node", columns, rows)


def _banks(analysis: Analysis) -> Table:
    rows = ((bank.condition, bank.sequence, bank.items.n, bank.items) for bank in analysis.banks)
    return Table.of("banks", ("condition", "sequence", "runs", spread("items")), rows)


def _episodes(analysis: Analysis) -> Table:
    columns = ("run", *_FACTORS, "position", "item", "success", "score", "replies")
    return Table.of("episodes", columns, _episode_rows(analysis))


def _episode_rows(analysis: Analysis) -> Iterator[tuple[Field, ...]]:
    for run in analysis.study.runs:
        head = [_scalar(run.spec.factors.get(name)) for name in _FACTORS]
        position = {item: number for number, item in enumerate(run.spec.item_ids, start=1)}
        for item, result in run.by_item.items():
            success = int(bool(result["success"]))
            tail = (_scalar(result.get("score")), _scalar(result.get("rounds")))
            yield (run.spec.name, *head, position[item], item, success, *tail)


def _scalar(value: object) -> Field:
    return value if isinstance(value, str | int | float) else None


# Why memory did what it did: subsets, retrieval, dilution, probes, remedies -----------------


def _retentions(analysis: Analysis) -> Table:
    numbers = [metric(name) for name in ("rr", "nl", "rr_less_rerun", "nl_less_rerun")]
    expected = (percent("rr_less_expected"), percent("nl_less_expected"))
    rows = (
        (
            *(*_cell(row.retention.key), row.retention.rr, row.retention.nl),
            *(row.rr, row.nl, row.rr_expected, row.nl_expected),
        )
        for row in analysis.beyond_null
    )
    return Table.of("retentions", (*_CELL, *numbers, *expected), rows)


def _nulls(analysis: Analysis) -> Table:
    columns = (
        *("task", metric("rerun_rr"), metric("rerun_nl"), "expectation_runs"),
        *(percent("expected_rr"), percent("expected_nl")),
    )
    rows = (
        (
            *(null.task, null.measured_rr, null.measured_nl, analysis.partitions[null.task].runs),
            *(null.expected_rr, null.expected_nl),
        )
        for null in analysis.nulls
    )
    return Table.of("null_values", columns, rows)


def _decomposition(analysis: Analysis) -> Table:
    head = ("condition", "direction", "sequence", "task")
    rows = (
        (
            *(getattr(row.transfer, name) for name in head),
            *(row.transfer.transfer, row.easy, row.hard),
        )
        for row in analysis.decompositions
    )
    return Table.of("decomposition", (*head, *map(metric, ("transfer", "easy", "hard"))), rows)


def _cross_recall(analysis: Analysis) -> Table:
    columns: list[str | Number] = [*_CELL, "subset", spread("other_first", 100)]
    for name in ("own_first", "other_first"):
        columns += [f"n_{name}", *(spread(f"{part}_{name}", 100) for part in _PARTS)]
    rows = (
        (
            *(row.condition, row.sequence, row.task, row.subset, row.other_first),
            *(row.own.episodes, *(getattr(row.own, part) for part in _PARTS)),
            *(row.other.episodes, *(getattr(row.other, part) for part in _PARTS)),
            row.nothing,
        )
        for row in analysis.cross_recalls
    )
    return Table.of("cross_recall", [*columns, "n_nothing"], rows)


def _sequences(analysis: Analysis) -> tuple[Table, ...]:
    """Return what is told of sequences of more than two tasks; nothing where there are none."""
    found = analysis.sequences
    if not found:
        return ()
    matrix = (
        (each.condition, each.sequence, e.phases, e.after, e.task, _yes(e.met), e.accuracy)
        for each in found
        for e in each.matrix
    )
    head = ("condition", "sequence")
    names = ("phases", "learned", "task", "met")
    whole = ("average", "forward", "zero_shot", "backward", "forgetting")
    rows = ((each.condition, each.sequence, *(getattr(each, n) for n in whole)) for each in found)
    return (
        Table.of("accuracy_matrix", (*head, *names, metric("accuracy")), matrix),
        Table.of("sequences", (*head, *map(metric, whole)), rows),
        _positions(found),
    )


def _positions(found: Iterable[SequenceResult]) -> Table:
    rows = (
        (
            *(each.condition, each.sequence, place.number, place.task),
            *_judged(place.forward),
            *_of_contrast(place.zero_shot),
            *_judged(place.backward),
            *(place.peak, place.forgetting or _NOTHING),
        )
        for each in found
        for place in each.positions
    )
    columns: list[str | Number] = ["condition", "sequence", "place", "task"]
    for name in ("forward", "zero_shot", "backward"):
        columns += [metric(name), f"{name}_p_holm", f"{name}_verdict"]
    return Table.of("positions", (*columns, "peak", metric("forgetting")), rows)


def _mixtures(analysis: Analysis) -> Iterator[Table]:
    if analysis.mixtures:
        yield _of_cells("mixtures", analysis.mixtures, ("before", "after", "difference"))


def _of_cells(name: str, found: Iterable[Any], metrics: Sequence[str]) -> Table:
    """Return a row a condition, stream and task, with these of its metrics."""
    rows = (
        (each.condition, each.sequence, each.task, *(getattr(each, name) for name in metrics))
        for each in found
    )
    return Table.of(name, (*_CELL, *map(metric, metrics)), rows)


def _online(analysis: Analysis) -> Iterator[Table]:
    """Return success in training beside that without memory, and regret."""
    if analysis.online:
        yield _of_cells("online", analysis.online, ("success", "without", "difference"))
        tracks = (
            (each.condition, each.sequence, replicate, items, lost)
            for each in analysis.regrets
            for replicate, curve in zip(each.replicates, each.curves, strict=True)
            for items, lost in enumerate(curve, start=1)
        )
        columns = ("condition", "sequence", "replicate", "items", "regret")
        yield Table.of("regret", columns, tracks)


_NOTHING: Final = Metric(None, 0, 0, 0)


def _judged(found: Judged | None) -> tuple[Any, ...]:
    if found is None:
        return (_NOTHING, None, None)
    return (found.transfer.transfer, found.p_adjusted, found.verdict)


def _of_contrast(found: Contrast | None) -> tuple[Any, ...]:
    return (
        (_NOTHING, None, None)
        if found is None
        else (found.difference, found.p_adjusted, found.verdict)
    )


_PARTS: Final = ("success", "before", "change")
"""What is told of the episodes that begin with their own task, or with another."""


FIRST: Final[tuple[str | Number, ...]] = (
    spread("other_first", 100),
    *("top1_key", "top1_family", "top1_items", "top1_tests", spread("top1_share", 100)),
    *(
        "part_key",
        "part_family",
        "part_items",
        "part_tests",
        percent("part"),
        metric("without_key"),
    ),
    "hangs",
)
"""Columns of what a forward transfer's tests recall first."""


def first_fields(row: FirstRecall) -> tuple[Any, ...]:
    """Return a value for each of `FIRST`."""
    top, largest = row.top, row.largest
    return (
        row.other_first,
        *(shortened(top.key, _LONGEST_KEY), top.domain, top.items, top.episodes, top.share),
        *(shortened(largest.key, _LONGEST_KEY), largest.domain, largest.items, largest.episodes),
        *(largest.part, row.without, _yes(row.hangs)),
    )


_LONGEST_KEY: Final = 300


def _first_recalls(analysis: Analysis) -> Table:
    rows = (
        (
            *(each.transfer.condition, each.transfer.sequence, each.transfer.task),
            *(each.transfer.transfer, *first_fields(each)),
        )
        for each in analysis.first_recalls
    )
    return Table.of("first_recalls", (*_CELL, metric("transfer"), *FIRST), rows)


def _retrieval(analysis: Analysis) -> Table:
    measures = (spread(name, 100 if name in SHARES else 1) for name in MEASURES)
    rows = (
        (
            *(*_cell(cell.key), cell.key.at, len(cell.runs), _yes(collapsed(cell))),
            *(cell.spread(name) for name in MEASURES),
        )
        for cell in analysis.retrievals
    )
    return Table.of("retrieval", (*_CELL, "at", "runs", "collapsed", *measures), rows)


def _yes(answer: bool | None) -> str | None:
    return None if answer is None else "yes" if answer else "no"


def _retrieval_runs(analysis: Analysis) -> Table:
    measures = (percent(name) if name in SHARES else name for name in MEASURES)
    rows = (
        (
            *(*_cell(cell.key), cell.key.at, run.replicate),
            *(getattr(run.measures, name) for name in MEASURES),
        )
        for cell in analysis.retrievals
        for run in cell.runs
    )
    return Table.of("retrieval_runs", (*_CELL, "at", "replicate", *measures), rows)


def _dilution_tested(analysis: Analysis) -> Table:
    columns = (*_CELL, "at", metric("success"), metric("own_share"), spread("bank_own", 100))
    rows = (
        (
            *(row.condition, row.sequence, row.task, row.at),
            *(row.success, row.own_share, row.bank_share),
        )
        for row in analysis.dilution.tested
    )
    return Table.of("dilution_tested", columns, rows)


def _dilution_training(analysis: Analysis) -> Table:
    shares = ("earlier_retrieved", "earlier_in_bank", "success")
    rows = (
        (
            *(row.condition, row.sequence, row.first, row.last),
            0 if row.success is None else row.success.n,
            *(getattr(row, name) for name in shares),
        )
        for row in analysis.dilution.windows
    )
    head = ("condition", "sequence", "first", "last", "runs")
    return Table.of("dilution_training", (*head, *(spread(name, 100) for name in shares)), rows)


def _distillation(analysis: Analysis) -> Table:
    names = ("drawn", "invalid", "repeated", "kept", "bank_items")
    rows = (
        (
            *(row.condition, row.sequence, row.episodes, row.drawn.n),
            *(row.drawn, row.invalid, row.repeated, row.kept, row.bank),
        )
        for row in analysis.distillations
    )
    head = ("condition", "sequence", "episodes", "runs")
    return Table.of("distillation", (*head, *map(spread, names)), rows)


def _dropped(analysis: Analysis) -> Table:
    rows = (
        (row.condition, row.sequence, *place, count)
        for row in analysis.distillations
        for place, count in row.reasons.items()
    )
    columns = ("condition", "sequence", "node", "reason", "lessons_dropped")
    return Table.of("dropped", columns, rows)


def _crossed_success(analysis: Analysis) -> Table:
    rows = (
        (crossing.task, *pair, found)
        for crossing in analysis.crossings
        for pair, found in crossing.success.items()
    )
    return Table.of("crossed_success", ("task", "retrieval", "pool", metric()), rows)


def _crossed_effects(analysis: Analysis) -> Table:
    columns = ("task", "changed", "treated", "baseline", "held_at", metric())
    rows = (
        (crossing.task, each.factor, each.treated, each.baseline, each.fixed, each.difference)
        for crossing in analysis.crossings
        for each in crossing.effects
    )
    return Table.of("crossed_effects", columns, rows)


def _remedies(analysis: Analysis) -> Table:
    columns: tuple[str | Number, ...] = (
        *("condition", "mends", "sequence", "task", metric("success"), metric("own_share")),
        *(spread("own_share_before", 100), spread("own_share_after", 100)),
        *_run_columns("context_diversity", 1),
        *_run_columns("top1_share", 100),
    )
    rows = (
        (
            *(row.condition, row.mends, row.sequence, row.task, row.success, row.own_share),
            *row.own_levels,
            *(row.context_diversity.before, row.context_diversity.after, row.context_diversity),
            *(row.top1_share.before, row.top1_share.after, row.top1_share),
        )
        for row in analysis.remedies
    )
    return Table.of("remedies", columns, rows)


def _run_columns(name: str, scale: float) -> tuple[Number, ...]:
    """Return the columns of a measure of whole runs: before, after, and the change."""

    def fields(found: RunDifference) -> tuple[Field, ...]:
        if found.estimate is None:
            return (None, None, None, 0)
        ends = (found.estimate.value, found.estimate.low, found.estimate.high)
        return (*(scale * each for each in ends), found.estimate.n_items)

    change = Number(f"{name}_change", ("value", "low", "high", "n_items"), fields)
    return (spread(f"{name}_before", scale), spread(f"{name}_after", scale), change)
