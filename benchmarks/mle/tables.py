"""The tables of a study as tidy CSV: one file per table, one observation per row.

Those of all agents are in one file, told apart by its first column. Numbers stand in the units of their measure: percent, points of percent for differences, steps. An
empty field means that there is no such number.
"""

from collections.abc import Sequence
from pathlib import Path

from langgraft.benchmarks.continual.csv_tables import Field, Table
from langgraft.benchmarks.harness.files import atomic_write
from langgraft.benchmarks.mle.analysis import Analysis
from langgraft.benchmarks.mle.columns import columns_table
from langgraft.benchmarks.mle.contrasts import in_family
from langgraft.benchmarks.mle.fields import (
    ESTIMATE,
    correlation_fields,
    counted_fields,
    estimate_fields,
    p_field,
    share_fields,
    spread_fields,
)
from langgraft.benchmarks.mle.outcomes import OUTCOMES, earned
from langgraft.benchmarks.mle.search import Search, StepRun, TreeSearch
from langgraft.benchmarks.mle.searches import TREE
from langgraft.benchmarks.mle.step_tables import step_tables
from langgraft.benchmarks.published import mle_agent_memory


def write_tables(analyses: Sequence[Analysis], folder: Path) -> None:
    """Write all tables to `folder`, and what their columns mean.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    found = tables(analyses)
    for table in (*found, columns_table(found)):
        atomic_write(folder / f"{table.name}.csv", table.to_csv().encode())


def tables(analyses: Sequence[Analysis]) -> tuple[Table, ...]:
    """Return all tables of a study."""
    found: dict[str, Table] = {}
    for analysis in analyses:
        for table in _of_agent(analysis):
            before = found[table.name].rows if table.name in found else ()
            rows = tuple((analysis.agent, *row) for row in table.rows)
            found[table.name] = Table(table.name, ("agent", *table.columns), (*before, *rows))
    return (*found.values(), _published())


def _of_agent(analysis: Analysis) -> tuple[Table, ...]:
    """Return the tables of one agent: those that mean something for it."""
    return (
        _outcomes(analysis),
        _levels(analysis),
        _contrasts(analysis),
        _curves(analysis),
        _relations(analysis),
        _tasks(analysis),
        _modalities(analysis),
        _recurrences(analysis),
        _sides(analysis),
        *((_memory(analysis),) if analysis.searches.kind == TREE else step_tables(analysis)),
        _counted(analysis, "packages"),
        _counted(analysis, "errors"),
        _runs(analysis),
        _gates(analysis),
    )


def _outcomes(analysis: Analysis) -> Table:
    columns = ("condition", "outcome", "mean", "sem", "seeds", "seeds_planned", "tasks")
    rows = tuple(
        (
            each.condition,
            name,
            *spread_fields(share, 100),
            each.seeds,
            each.seeds_planned,
            each.tasks,
        )
        for each in analysis.outcomes
        for name, share in each.shares
    )
    return Table("outcomes", columns, rows)


def _levels(analysis: Analysis) -> Table:
    columns = (
        *("condition", "measure", "unit", *ESTIMATE),
        *("n", "undefined", "planned", "censored"),
    )
    rows = tuple(
        (
            *(level.condition, measure.name, measure.unit),
            *estimate_fields(level.estimate, measure.scale),
            *(level.n, level.undefined, level.planned),
            level.censored if measure.name == "first_valid" else None,
        )
        for measure, found in analysis.levels
        for level in found
    )
    return Table("levels", columns, rows)


def _contrasts(analysis: Analysis) -> Table:
    columns = (
        *("condition", "measure", "unit", "in_family", *ESTIMATE, "p"),
        *("p_holm", "verdict", *(f"same_tasks_{name}" for name in ESTIMATE)),
        *("same_tasks_p", "same_tasks_p_holm", "same_tasks_verdict"),
        *("pairs", "undefined", "planned"),
    )
    rows = tuple(
        (
            *(each.condition, each.measure.name, each.measure.unit),
            "yes" if in_family(each, analysis.searches) else "no",
            *estimate_fields(each.estimate, each.measure.scale),
            *(p_field(each.estimate), each.p_adjusted, each.verdict),
            *estimate_fields(each.same_tasks, each.measure.scale),
            *(p_field(each.same_tasks), each.p_same_tasks, each.verdict_same_tasks),
            *(each.pairs, each.undefined, each.planned),
        )
        for each in analysis.contrasts
    )
    return Table("contrasts", columns, rows)


def _curves(analysis: Analysis) -> Table:
    columns = ("curve", "metric_group", "condition", "step", "mean", "sem", "n", "searches")
    rows = tuple(
        (
            *(curve.what, curve.metric_group, curve.condition, step),
            *spread_fields(point, 1),
            *(0 if point is None else point.n, curve.searches),
        )
        for curve in analysis.curves
        for step, point in enumerate(curve.points)
    )
    return Table("curves", columns, rows)


def _relations(analysis: Analysis) -> Table:
    parts = ("r", "low", "high", "n")
    columns = (
        *("condition", *(f"by_task_{part}" for part in parts)),
        *(*(f"by_pair_{part}" for part in parts), "up", "down", "same", "undefined"),
    )
    rows = tuple(
        (
            *(each.condition, *correlation_fields(each.by_task), *correlation_fields(each.by_pair)),
            *(each.up, each.down, each.same, each.undefined),
        )
        for each in analysis.relations
    )
    return Table("relations", columns, rows)


def _tasks(analysis: Analysis) -> Table:
    columns = (
        *("competition", "modality", "condition", "measure", "mean", "sem", "n"),
        *("searches", "planned"),
    )
    rows = tuple(
        (
            *(
                each.competition,
                each.modality,
                each.condition,
                name,
                *spread_fields(delta, _scale(analysis, name)),
            ),
            *(0 if delta is None else delta.n, each.searches, each.planned),
        )
        for each in analysis.tasks
        for name, delta in each.deltas.items()
    )
    return Table("tasks", columns, rows)


def _modalities(analysis: Analysis) -> Table:
    columns = ("modality", "condition", "measure", "mean", "sem", "n")
    rows = tuple(
        (
            *(each.modality, each.condition, name, *spread_fields(delta, _scale(analysis, name))),
            0 if delta is None else delta.n,
        )
        for each in analysis.modalities
        for name, delta in each.deltas.items()
    )
    return Table("modalities", columns, rows)


def _scale(analysis: Analysis, name: str) -> float:
    return next(measure.scale for measure, _ in analysis.levels if measure.name == name)


def _recurrences(analysis: Analysis) -> Table:
    columns = ("competition", "condition", "share", "count", "of")
    rows = tuple((*key, *share_fields(found)) for key, found in analysis.recurrences.items())
    return Table("recurrences", columns, rows)


def _sides(analysis: Analysis) -> Table:
    """Return what is laid out as in the paper's Tables 5, 7 and 9."""
    parts = ("mean", "sem", "n")
    columns = (
        *("table", "row", "condition", "measure"),
        *(f"{side}_{part}" for side in ("baseline", "condition", "delta") for part in parts),
        *("same_tasks_low", "same_tasks_high", "pairs", "baseline_runs", "condition_runs"),
    )
    rows = tuple(
        (
            *(each.table, each.row, each.condition, each.measure.name),
            *counted_fields(each.baseline, each.measure.scale),
            *counted_fields(each.treated, each.measure.scale),
            *counted_fields(each.delta, each.measure.scale),
            *estimate_fields(each.same_tasks, each.measure.scale)[1:3],
            *(each.pairs, *each.runs),
        )
        for each in analysis.sides
    )
    return Table("sides", columns, rows)


def _memory(analysis: Analysis) -> Table:
    shares = (
        *("written_with_memory", "repaired_with_memory", "resource_entries"),
        *("resource_retrievals", "resource_of_buggy", "resource_for_buggy"),
    )
    columns = (
        "condition",
        "share_of",
        "share",
        "count",
        "of",
        "searches",
        "programs",
        "retrievals",
    )
    rows = tuple(
        (
            *(each.condition, name, *share_fields(getattr(each, name))),
            *(each.searches, each.programs, each.retrievals),
        )
        for each in analysis.memory
        for name in shares
    )
    return Table("memory", columns, rows)


def _counted(analysis: Analysis, what: str) -> Table:
    """Return packages of valid programs, or exceptions of buggy ones, by condition."""
    rows: list[tuple[Field, ...]] = []
    for each in analysis.used:
        found, of = (each.packages, each.valid) if what == "packages" else (each.errors, each.buggy)
        ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        rows += [(each.condition, name, count, of) for name, count in ordered]
    return Table(what, ("condition", "name", "count", "of"), tuple(rows))


def _runs(analysis: Analysis) -> Table:
    columns = (
        *("run", "condition", "competition", "seed", "modality", "metric_group", "metric"),
        *("lower_is_better", "steps", "buggy", "first_valid", "censored", "chosen"),
        *("ended", "attempts", "validation"),
        *("score", *OUTCOMES, "submission_sha256"),
    )
    return Table("runs", columns, tuple(map(_run, analysis.searches.done)))


def _run(search: Search) -> tuple[Field, ...]:
    behavior, score = search.behavior, search.report.get("score")
    chosen = search.chosen if isinstance(search, TreeSearch) else None
    ended = (search.ended, search.attempts) if isinstance(search, StepRun) else (None, None)
    return (
        *(search.spec.name, search.condition, search.competition, search.seed, search.modality),
        *(search.metric_group, search.metric, "yes" if search.lower_is_better else "no"),
        *(behavior.steps, behavior.buggy, behavior.first_valid.step),
        *("yes" if behavior.first_valid.censored else "no", chosen, *ended, search.validation),
        score if isinstance(score, int | float) else None,
        *(int(earned(search, name)) for name in OUTCOMES),
        search.submission_sha256,
    )


def _gates(analysis: Analysis) -> Table:
    rows = tuple((gate.name, gate.state, gate.detail) for gate in analysis.gates)
    return Table("gates", ("gate", "state", "detail"), rows)


def _published() -> Table:
    words = {True: "yes", False: "no", None: ""}
    rows = tuple(
        (f.where, f.printed, f.recomputed, words[f.holds]) for f in mle_agent_memory().recomputed
    )
    return Table("published", ("where", "printed", "recomputed", "holds"), rows)
