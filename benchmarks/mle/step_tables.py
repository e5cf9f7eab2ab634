"""The tables that only agents that work step by step have."""

from langgraft.benchmarks.continual.csv_tables import Table
from langgraft.benchmarks.mle.analysis import Analysis
from langgraft.benchmarks.mle.fields import share_fields


def step_tables(analysis: Analysis) -> tuple[Table, ...]:
    """Return how runs ended, what they did, their errors, and what memory told them."""
    return (_endings(analysis), _tools(analysis), _timelines(analysis), _step_memory(analysis))


def _endings(analysis: Analysis) -> Table:
    rows = tuple(
        (each.condition, reason, count, each.runs)
        for each in analysis.endings
        for reason, count in sorted(each.reasons.items())
    )
    return Table("endings", ("condition", "ended", "count", "of"), rows)


def _tools(analysis: Analysis) -> Table:
    rows = tuple(
        (each.condition, name, count, each.tools.total())
        for each in analysis.endings
        for name, count in sorted(each.tools.items(), key=lambda item: (-item[1], item[0]))
    )
    return Table("tools", ("condition", "action", "count", "of"), rows)


def _timelines(analysis: Analysis) -> Table:
    """Return all errors of all runs, equal ones in a row folded."""
    columns = (
        *("run", "condition", "competition", "seed"),
        *("step", "last_step", "count", "error", "message"),
    )
    rows = tuple(
        (
            *(run.spec.name, run.condition, run.competition, run.seed),
            *(each.first, each.last, each.count, each.error.name, each.error.message),
        )
        for run in analysis.searches.step_runs
        for each in run.behavior.spells
    )
    return Table("timelines", columns, rows)


def _step_memory(analysis: Analysis) -> Table:
    names = ("attempts_with_memory", "buggy_with_memory", "resource_entries", "resource_attempts")
    columns = (
        *("condition", "share_of", "share", "count", "of"),
        *("runs", "attempts", "steps", "taught"),
    )
    rows = tuple(
        (
            *(each.condition, name, *share_fields(getattr(each, name))),
            *(each.runs, each.attempts, each.steps, each.taught),
        )
        for each in analysis.step_memory
        for name in names
    )
    return Table("step_memory", columns, rows)
