"""The tables of a study as tidy CSV, one file per table and one observation per row, and what each column means.

Runs of all agents are in one file, told apart by its first column. Numbers stand in the units of
their measure (percent, points of percent for differences, steps), and come with its scale:
`(estimate, 100)` for percent. An empty field means that there is no such number.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.measures import MeasureContrast
from langgraft.benchmarks.comparison.outcomes import Spread
from langgraft.benchmarks.mle.analysis import Analysis
from langgraft.benchmarks.mle.behaviour.runs import Share
from langgraft.benchmarks.mle.interactions import Crossing, crossings
from langgraft.benchmarks.mle.outcomes import OUTCOMES, earned
from langgraft.benchmarks.mle.relations import Correlation
from langgraft.benchmarks.mle.searches import TREE, Search, StepRun, TreeSearch
from langgraft.benchmarks.published import mle_agent_memory
from langgraft.benchmarks.reporting.tables import (
    COLUMNS,
    Field,
    Meanings,
    Number,
    Table,
    gate_table,
)

Scaled: TypeAlias = tuple[Any, float]
"""A number, or none, and its scale."""

ESTIMATE: Final = ("value", "low", "high", "low_orders", "high_orders", "se", "df", "method")
"""Parts of an estimate; what is an order in the study of training streams is a seed here."""


def estimate(name: str = "") -> Number:
    """Return the columns of an estimate and its scale."""
    return Number(name, ESTIMATE, estimate_fields)


def estimate_fields(scaled: tuple[Estimate | None, float]) -> tuple[Field, ...]:
    """Return value, both intervals, standard error, degrees of freedom and method."""
    found, scale = scaled
    if found is None:
        return (None,) * len(ESTIMATE)
    numbers = (found.value, found.low, found.high, *found.these_orders, found.se)
    return (*(scale * each for each in numbers), found.df, found.method)


def spread(name: str = "", *, counted: bool = True) -> Number:
    """Return the columns of a mean, its standard error, and what they rest on if `counted`."""
    parts = ("mean", "sem", "n") if counted else ("mean", "sem")

    def fields(scaled: tuple[Spread | None, float]) -> tuple[Field, ...]:
        found, scale = scaled
        if found is None:
            return (None, None, 0)[: len(parts)]
        sem = None if found.sem is None else scale * found.sem
        return (scale * found.mean, sem, found.n)[: len(parts)]

    return Number(name, parts, fields)


def correlation(name: str) -> Number:
    """Return the columns of a correlation, its interval, and what it rests on."""

    def fields(found: Correlation) -> tuple[Field, ...]:
        return (found.r, found.low, found.high, found.n)

    return Number(name, ("r", "low", "high", "n"), fields)


def share() -> Number:
    """Return the columns of a share in percent, what it counts, and of what."""

    def fields(found: Share) -> tuple[Field, ...]:
        return (None if found.value is None else 100 * found.value, found.count, found.of)

    return Number("", ("share", "count", "of"), fields)


_COLUMNS: Final = {
    "above_median": "1: the score is strictly better than the board's median",
    "action": "name of the tool, or message",
    "agent": "the agent: tree, chain or mlab, with another policy than AIDE's and the variant, if any",
    "any_medal": "1: a medal of any color",
    "attempts": "beginnings of the run, each with what memory recalls; of several runs their sum",
    "bronze_medal": "1: a bronze medal",
    "buggy": "programs that failed, or left no metric or no valid submission; of other agents, steps",
    "censored": "whether (or in how many searches) no program was valid",
    "chosen": "program whose submission was handed in; empty: none was, or the agent is no tree",
    "competition": "the competition",
    "condition": "the memory of the run",
    "count": "how many",
    "curve": "bugs: buggy programs so far; best: best validation metric so far, more is better",
    "detail": "how the gate came out, in words",
    "df": "degrees of freedom of the standard error",
    "down": "competitions whose final metric is worse in the mean",
    "ended": "why the run ended; empty for a tree, which ends with its steps",
    "error": "class of the exception, of what ran out, or the exit code",
    "first_valid": "first valid program, from 0; the number of steps where there is none",
    "gate": "name of the check",
    "gold_medal": "1: a gold medal",
    "high": "upper end of the 95 % interval",
    "high_orders": "upper end of the 95 % interval for these seeds: other competitions",
    "holds": "whether the printed figure can be had",
    "in_family": "whether its p value is corrected with those of the declared family",
    "last_step": "step of the last of equal errors in a row",
    "low": "lower end of the 95 % interval",
    "low_orders": "lower end of the 95 % interval for these seeds: other competitions",
    "lower_is_better": "direction of the metric, from the competition's board",
    "mean": "mean",
    "measure": "what is measured; docs/behaviour-metrics.md",
    "message": "first line of the exception's message, cut",
    "method": "how the interval was found",
    "metric": "the competition's grader",
    "metric_group": "metrics that are averaged together",
    "modality": "tabular, image, text or audio",
    "n": "what it rests on: searches, seeds, competitions or pairs",
    "name": "package, or class of an exception",
    "of": "what it is a share or a count of",
    "outcome": "what the submission earned",
    "p": "two-sided p value",
    "p_holm": "the same, corrected by Holm over the declared family",
    "pairs": "pairs of one competition and one seed",
    "planned": "searches or pairs planned",
    "printed": "as published",
    "programs": "programs of all searches",
    "r": "Pearson's correlation of bug reduction and change of the final metric",
    "recomputed": "what comes of recomputing it",
    "reference": "the agent that the difference is taken from; empty: none, the mean of the agents",
    "retrievals": "programs written with recalled memory",
    "row": "competition, or modality",
    "run": "name of the run",
    "runs": "runs that ended",
    "same": "competitions whose final metric did not change",
    "score": "the grader's score of the submission",
    "se": "standard error",
    "searches": "searches that ended",
    "seed": "seed of the run",
    "seeds": "seeds all of whose tasks have a result",
    "seeds_planned": "seeds planned",
    "sem": "standard error of the mean, ddof = 1; over seeds, searches or competitions (n)",
    "share": "share, %",
    "share_of": "what memory did; docs/behaviour-metrics.md",
    "silver_medal": "1: a silver medal",
    "state": "passed, failed or open",
    "step": "step of the run, from 0",
    "steps": "programs of the search, or actions of the run; of several runs their sum",
    "submission_exists": "1: a submission was handed in",
    "submission_sha256": "SHA-256 of the submission",
    "table": "medals: as the paper's Table 5; recurrence: 7; late_errors: 9",
    "tasks": "competitions of each seed",
    "taught": "failures that memory was taught of",
    "undefined": "left out, because there is no such number",
    "unit": "unit of the values",
    "up": "competitions whose final metric is better in the mean",
    "valid_submission": "1: the grader gave the submission a score",
    "validation": "validation metric of the chosen program, in its own direction",
    "value": "the number itself",
    "verdict": "better, worse, changed, unclear, no detectable difference, too few runs or incomplete",
    "where": "where it is published",
}

_PREFIXES: Final = {
    "baseline_": "without memory",
    "condition_": "under the condition",
    "delta_": "condition less without memory",
    "same_tasks_": "of these competitions with other seeds",
    "by_task_": "over competitions",
    "by_pair_": "over pairs of competition and seed",
}

MEANINGS: Final = Meanings({**COLUMNS, **_COLUMNS}, prefixes=_PREFIXES)


_YES: Final = {True: "yes", False: "no", None: ""}


def tables(analyses: Sequence[Analysis]) -> tuple[Table, ...]:
    """Return all tables of a study."""
    found: dict[str, Table] = {}
    for analysis in analyses:
        for table in _of_agent(analysis):
            before = found[table.name].rows if table.name in found else ()
            rows = tuple((analysis.agent, *row) for row in table.rows)
            found[table.name] = Table(table.name, ("agent", *table.columns), (*before, *rows))
    crossed = crossings(analyses)
    return (*found.values(), *((_interactions(crossed),) if crossed else ()), _published())


def _of_agent(analysis: Analysis) -> tuple[Table, ...]:
    """Return the tables of one agent: those that mean something for it."""
    tree = (_memory(analysis),)
    steps = (_endings(analysis), _tools(analysis), _timelines(analysis), _step_memory(analysis))
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
        *(tree if analysis.searches.kind == TREE else steps),
        _counted(analysis, "packages"),
        _counted(analysis, "errors"),
        _runs(analysis),
        gate_table(analysis.gates),
    )


def _outcomes(analysis: Analysis) -> Table:
    columns = ("condition", "outcome", spread(counted=False), "seeds", "seeds_planned", "tasks")
    rows = (
        (
            *(each.condition, name, (found, 100)),
            *(each.seeds, each.seeds_planned, each.tasks),
        )
        for each in analysis.outcomes
        for name, found in each.shares
    )
    return Table.of("outcomes", columns, rows)


def _levels(analysis: Analysis) -> Table:
    columns = (
        *("condition", "measure", "unit", estimate()),
        *("n", "undefined", "planned", "censored"),
    )
    rows = (
        (
            *(level.condition, name, level.measure.unit, (level.estimate, level.measure.scale)),
            *(level.n, level.undefined, level.planned),
            analysis.searches.censored(level.condition) if name == "first_valid" else None,
        )
        for name, measured in analysis.measured.items()
        for level in measured.levels
    )
    return Table.of("levels", columns, rows)


_CONTRAST: Final = (
    *("condition", "measure", "unit", "in_family", estimate(), "p", "p_holm", "verdict"),
    *(estimate("same_tasks"), "same_tasks_p", "same_tasks_p_holm", "same_tasks_verdict"),
    *("pairs", "undefined", "planned"),
)


def _contrast(found: MeasureContrast) -> tuple[Any, ...]:
    return (
        *(found.condition, found.measure.name, found.measure.unit),
        _YES[found.in_family],
        *((found.estimate, found.measure.scale), _p(found.estimate)),
        *(found.p_adjusted, found.verdict),
        *((found.same_items, found.measure.scale), _p(found.same_items)),
        *(found.p_same_items, found.verdict_same_items),
        *(found.pairs, found.undefined, found.planned),
    )


def _contrasts(analysis: Analysis) -> Table:
    return Table.of("contrasts", _CONTRAST, map(_contrast, analysis.contrasts))


def _interactions(crossed: Sequence[Crossing]) -> Table:
    """Return what conditions change in an agent less what they change in the first, and the mean."""
    columns = ("agent", "reference", *_CONTRAST)
    rows = (
        (*named, *_contrast(replace(found, condition=row.condition)))
        for crossing in crossed
        for row in crossing.rows
        for named, found in (
            *(((agent, crossing.reference), each) for agent, each in row.between.items()),
            (("mean", ""), row.mean),
        )
    )
    return Table.of("interactions", columns, rows)


def _p(found: Estimate | None) -> float | None:
    return None if found is None else found.p


def _curves(analysis: Analysis) -> Table:
    columns = ("curve", "metric_group", "condition", "step", spread(), "searches")
    rows = (
        (curve.what, curve.metric_group, curve.condition, step, (point, 1), curve.searches)
        for curve in analysis.curves
        for step, point in enumerate(curve.points)
    )
    return Table.of("curves", columns, rows)


def _relations(analysis: Analysis) -> Table:
    columns = (
        *("condition", correlation("by_task"), correlation("by_pair")),
        *("up", "down", "same", "undefined"),
    )
    rows = (
        (
            *(each.condition, each.by_task, each.by_pair),
            *(each.up, each.down, each.same, each.undefined),
        )
        for each in analysis.relations
    )
    return Table.of("relations", columns, rows)


def _tasks(analysis: Analysis) -> Table:
    columns = ("competition", "modality", "condition", "measure", spread(), "searches", "planned")
    rows = (
        (
            *(each.competition, each.modality, each.condition, name),
            *((delta, analysis.measured[name].measure.scale), each.searches, each.planned),
        )
        for each in analysis.tasks
        for name, delta in each.deltas.items()
    )
    return Table.of("tasks", columns, rows)


def _modalities(analysis: Analysis) -> Table:
    columns = ("modality", "condition", "measure", spread())
    rows = (
        (each.modality, each.condition, name, (delta, analysis.measured[name].measure.scale))
        for each in analysis.modalities
        for name, delta in each.deltas.items()
    )
    return Table.of("modalities", columns, rows)


def _recurrences(analysis: Analysis) -> Table:
    rows = ((*key, found) for key, found in analysis.recurrences.items())
    return Table.of("recurrences", ("competition", "condition", share()), rows)


def _sides(analysis: Analysis) -> Table:
    """Return what is laid out as in the paper's Tables 5, 7 and 9."""
    columns: tuple[str | Number, ...] = (
        *("table", "row", "condition", "measure"),
        *map(spread, ("baseline", "condition", "delta")),
        Number("same_tasks", ("low", "high"), _ends),
        *("pairs", "baseline_runs", "condition_runs"),
    )
    rows = (
        (
            *(each.table, each.row, each.condition, each.measure.name),
            *((side, each.measure.scale) for side in (each.baseline, each.treated, each.delta)),
            *((each.same_items, each.measure.scale), each.pairs, *each.runs),
        )
        for each in analysis.sides
    )
    return Table.of("sides", columns, rows)


def _ends(scaled: Scaled) -> tuple[Field, Field]:
    found, scale = scaled
    return (None, None) if found is None else (scale * found.low, scale * found.high)


def _memory(analysis: Analysis) -> Table:
    columns = ("condition", "share_of", share(), "searches", "programs", "retrievals")
    rows = (
        (each.condition, name, found, each.runs, each.steps, each.retrievals)
        for each in analysis.memory
        for name, found in each.shares.items()
    )
    return Table.of("memory", columns, rows)


def _counted(analysis: Analysis, what: str) -> Table:
    """Return packages of valid programs, or exceptions of buggy ones, by condition."""
    rows: list[tuple[Field, ...]] = []
    for each in analysis.used:
        found, of = (each.packages, each.valid) if what == "packages" else (each.errors, each.buggy)
        ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        rows += [(each.condition, name, count, of) for name, count in ordered]
    return Table.of(what, ("condition", "name", "count", "of"), rows)


def _runs(analysis: Analysis) -> Table:
    columns = (
        *("run", "condition", "competition", "seed", "modality", "metric_group", "metric"),
        *("lower_is_better", "steps", "buggy", "first_valid", "censored", "chosen"),
        *("ended", "attempts", "validation"),
        *("score", *OUTCOMES, "submission_sha256"),
    )
    return Table.of("runs", columns, map(_run, analysis.searches.done))


def _run(search: Search) -> tuple[Field, ...]:
    behavior, score = search.behavior, search.report.get("score")
    chosen = search.chosen if isinstance(search, TreeSearch) else None
    ended = (search.ended, search.attempts) if isinstance(search, StepRun) else (None, None)
    return (
        *(search.spec.name, search.condition, search.competition, search.seed, search.modality),
        *(search.metric_group, search.metric, _YES[search.lower_is_better]),
        *(behavior.steps, behavior.buggy, behavior.first_valid.step),
        *(_YES[behavior.first_valid.censored], chosen, *ended, search.validation),
        score if isinstance(score, int | float) else None,
        *(int(earned(search, name)) for name in OUTCOMES),
        search.submission_sha256,
    )


def _published() -> Table:
    rows = (
        (each.where, each.printed, each.recomputed, _YES[each.holds])
        for each in mle_agent_memory().recomputed
    )
    return Table.of("published", ("where", "printed", "recomputed", "holds"), rows)


# What only agents that work step by step have ----------------------------------------------


def _endings(analysis: Analysis) -> Table:
    rows = (
        (each.condition, reason, count, each.runs)
        for each in analysis.endings
        for reason, count in sorted(each.reasons.items())
    )
    return Table.of("endings", ("condition", "ended", "count", "of"), rows)


def _tools(analysis: Analysis) -> Table:
    rows = (
        (each.condition, name, count, each.tools.total())
        for each in analysis.endings
        for name, count in sorted(each.tools.items(), key=lambda item: (-item[1], item[0]))
    )
    return Table.of("tools", ("condition", "action", "count", "of"), rows)


def _timelines(analysis: Analysis) -> Table:
    """Return all errors of all runs, equal ones in a row folded."""
    columns = (
        *("run", "condition", "competition", "seed"),
        *("step", "last_step", "count", "error", "message"),
    )
    rows = (
        (
            *(run.spec.name, run.condition, run.competition, run.seed),
            *(each.first, each.last, each.count, each.error.name, each.error.message),
        )
        for run in analysis.searches.step_runs
        for each in run.behavior.spells
    )
    return Table.of("timelines", columns, rows)


def _step_memory(analysis: Analysis) -> Table:
    columns = ("condition", "share_of", share(), "runs", "attempts", "steps", "taught")
    rows = (
        (each.condition, name, found, each.runs, each.attempts, each.steps, each.taught)
        for each in analysis.memory
        for name, found in each.shares.items()
    )
    return Table.of("step_memory", columns, rows)
