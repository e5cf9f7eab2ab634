"""CSV tables of why memory did what it did: subsets, retrieval, dilution, probes, remedies."""

from collections.abc import Iterator

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.cross_recall import Origin
from langgraft.benchmarks.continual.csv_tables import (
    METRIC,
    Field,
    Table,
    metric_columns,
    metric_fields,
    spread_columns,
    spread_fields,
)
from langgraft.benchmarks.continual.mechanisms import collapsed
from langgraft.benchmarks.continual.metrics import Metric
from langgraft.benchmarks.continual.remedies import RunDifference
from langgraft.benchmarks.continual.retrieval import MEASURES, SHARES
from langgraft.benchmarks.continual.spreads import Spread


def mechanism_tables(analysis: Analysis) -> tuple[Table, ...]:
    """Return the tables."""
    return (
        _retentions(analysis),
        _nulls(analysis),
        _decomposition(analysis),
        _cross_recall(analysis),
        _retrieval(analysis),
        _retrieval_runs(analysis),
        _dilution_tested(analysis),
        _dilution_training(analysis),
        _distillation(analysis),
        _dropped(analysis),
        _crossed_success(analysis),
        _crossed_effects(analysis),
        _remedies(analysis),
    )


def _retentions(analysis: Analysis) -> Table:
    columns = ("condition", "sequence", "task", *metric_columns("rr", "nl"))
    beyond = metric_columns("rr_less_rerun", "nl_less_rerun")
    rows = (
        (
            *(row.retention.key.condition, row.retention.key.sequence, row.retention.key.task),
            *metric_fields(row.retention.rr),
            *metric_fields(row.retention.nl),
            *_optional(row.rr),
            *_optional(row.nl),
            _percent(row.rr_expected),
            _percent(row.nl_expected),
        )
        for row in analysis.beyond_null
    )
    expected = ("rr_less_expected", "nl_less_expected")
    return Table("retentions", (*columns, *beyond, *expected), tuple(rows))


def _optional(metric: Metric | None) -> tuple[Field, ...]:
    return (None,) * len(METRIC) if metric is None else metric_fields(metric)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _nulls(analysis: Analysis) -> Table:
    columns = (*metric_columns("rerun_rr", "rerun_nl"), "expectation_runs")
    rows = (
        (
            null.task,
            *_optional(null.measured_rr),
            *_optional(null.measured_nl),
            analysis.partitions[null.task].runs,
            _percent(null.expected_rr),
            _percent(null.expected_nl),
        )
        for null in analysis.nulls
    )
    return Table("null_values", ("task", *columns, "expected_rr", "expected_nl"), tuple(rows))


def _percent_spread(spread: Spread | None) -> tuple[Field, ...]:
    return spread_fields(spread, 100)


def _decomposition(analysis: Analysis) -> Table:
    columns = ("condition", "direction", "sequence", "task")
    rows = (
        (
            *(row.transfer.condition, row.transfer.direction),
            *(row.transfer.sequence, row.transfer.task),
            *metric_fields(row.transfer.transfer),
            *metric_fields(row.easy),
            *metric_fields(row.hard),
        )
        for row in analysis.decompositions
    )
    metrics = metric_columns("transfer", "easy", "hard")
    return Table("decomposition", (*columns, *metrics), tuple(rows))


def _cross_recall(analysis: Analysis) -> Table:
    columns = ("condition", "sequence", "task", "subset", *spread_columns("other_first"))
    rows = (
        (
            *(row.condition, row.sequence, row.task, row.subset),
            *_percent_spread(row.other_first),
            *_origin(row.own),
            *_origin(row.other),
            row.nothing,
        )
        for row in analysis.cross_recalls
    )
    parts = ("success", "before", "change")
    origins = (
        column
        for origin in ("own_first", "other_first")
        for column in (f"n_{origin}", *spread_columns(*(f"{part}_{origin}" for part in parts)))
    )
    return Table("cross_recall", (*columns, *origins, "n_nothing"), tuple(rows))


def _origin(origin: Origin) -> tuple[Field, ...]:
    values = (origin.success, origin.before, origin.change)
    return (origin.episodes, *(field for each in values for field in _percent_spread(each)))


def _measure(name: str, spread: Spread | None) -> tuple[Field, ...]:
    return _percent_spread(spread) if name in SHARES else spread_fields(spread)


def _retrieval(analysis: Analysis) -> Table:
    columns = ("condition", "sequence", "task", "at", "runs", "collapsed")
    rows = (
        (
            *(cell.key.condition, cell.key.sequence, cell.key.task, cell.key.at),
            *(len(cell.runs), _yes(collapsed(cell))),
            *(field for name in MEASURES for field in _measure(name, cell.spread(name))),
        )
        for cell in analysis.retrievals
    )
    return Table("retrieval", (*columns, *spread_columns(*MEASURES)), tuple(rows))


def _yes(answer: bool | None) -> str | None:
    return None if answer is None else "yes" if answer else "no"


def _retrieval_runs(analysis: Analysis) -> Table:
    columns = ("condition", "sequence", "task", "at", "replicate", *MEASURES)
    return Table("retrieval_runs", columns, tuple(_run_rows(analysis)))


def _run_rows(analysis: Analysis) -> Iterator[tuple[Field, ...]]:
    for cell in analysis.retrievals:
        key = cell.key
        for run in cell.runs:
            values = ((name, getattr(run.measures, name)) for name in MEASURES)
            fields = (_percent(value) if name in SHARES else value for name, value in values)
            yield (key.condition, key.sequence, key.task, key.at, run.replicate, *fields)


def _dilution_tested(analysis: Analysis) -> Table:
    columns = ("condition", "sequence", "task", "at", *metric_columns("success", "own_share"))
    rows = (
        (
            *(row.condition, row.sequence, row.task, row.at),
            *metric_fields(row.success),
            *metric_fields(row.own_share),
            *_percent_spread(row.bank_share),
        )
        for row in analysis.dilution.tested
    )
    return Table("dilution_tested", (*columns, *spread_columns("bank_own")), tuple(rows))


def _dilution_training(analysis: Analysis) -> Table:
    columns = ("condition", "sequence", "first", "last", "runs")
    rows = (
        (
            *(row.condition, row.sequence, row.first, row.last),
            0 if row.success is None else row.success.runs,
            *_percent_spread(row.earlier_retrieved),
            *_percent_spread(row.earlier_in_bank),
            *_percent_spread(row.success),
        )
        for row in analysis.dilution.windows
    )
    shares = spread_columns("earlier_retrieved", "earlier_in_bank", "success")
    return Table("dilution_training", (*columns, *shares), tuple(rows))


def _distillation(analysis: Analysis) -> Table:
    columns = ("condition", "sequence", "episodes", "runs")
    rows = (
        (
            *(row.condition, row.sequence, row.episodes, row.drawn.runs),
            *spread_fields(row.drawn),
            *spread_fields(row.invalid),
            *spread_fields(row.repeated),
            *spread_fields(row.kept),
            *spread_fields(row.bank),
        )
        for row in analysis.distillations
    )
    counts = spread_columns("drawn", "invalid", "repeated", "kept", "bank_items")
    return Table("distillation", (*columns, *counts), tuple(rows))


def _dropped(analysis: Analysis) -> Table:
    rows = (
        (row.condition, row.sequence, node, reason, count)
        for row in analysis.distillations
        for (node, reason), count in row.reasons.items()
    )
    columns = ("condition", "sequence", "node", "reason", "lessons_dropped")
    return Table("dropped", columns, tuple(rows))


def _crossed_success(analysis: Analysis) -> Table:
    rows = (
        (crossing.task, retrieval, pool, *metric_fields(metric))
        for crossing in analysis.crossings
        for (retrieval, pool), metric in crossing.success.items()
    )
    return Table("crossed_success", ("task", "retrieval", "pool", *METRIC), tuple(rows))


def _crossed_effects(analysis: Analysis) -> Table:
    columns = ("task", "changed", "treated", "baseline", "held_at", *METRIC)
    rows = (
        (
            *(crossing.task, effect.factor, effect.treated, effect.baseline, effect.fixed),
            *metric_fields(effect.difference),
        )
        for crossing in analysis.crossings
        for effect in crossing.effects
    )
    return Table("crossed_effects", columns, tuple(rows))


def _remedies(analysis: Analysis) -> Table:
    columns = ("condition", "mends", "sequence", "task", *metric_columns("success", "own_share"))
    rows = (
        (
            *(row.condition, row.mends, row.sequence, row.task),
            *metric_fields(row.success),
            *metric_fields(row.own_share),
            *(field for level in row.own_levels for field in _percent_spread(level)),
            *_run_difference(row.context_diversity, 1),
            *_run_difference(row.top1_share, 100),
        )
        for row in analysis.remedies
    )
    levels = spread_columns("own_share_before", "own_share_after")
    runs = (
        *_run_columns("context_diversity"),
        *_run_columns("top1_share"),
    )
    return Table("remedies", (*columns, *levels, *runs), tuple(rows))


def _run_columns(name: str) -> tuple[str, ...]:
    change = tuple(f"{name}_change_{part}" for part in ("value", "low", "high", "n_items"))
    return (*spread_columns(f"{name}_before", f"{name}_after"), *change)


def _run_difference(found: RunDifference, scale: float) -> tuple[Field, ...]:
    levels = (*spread_fields(found.before, scale), *spread_fields(found.after, scale))
    estimate = found.estimate
    if estimate is None:
        return (*levels, None, None, None, 0)
    change = (scale * estimate.value, scale * estimate.low, scale * estimate.high)
    return (*levels, *change, estimate.n_items)
