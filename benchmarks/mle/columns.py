"""What each column of the CSV tables means; written beside them as `columns.csv`."""

from collections.abc import Sequence
from typing import Final

from langgraft.benchmarks.continual.csv_tables import Table

COLUMNS: Final = {
    "above_median": "1: the score is strictly better than the board's median",
    "action": "name of the tool, or message",
    "agent": "the agent: tree, chain or mlab",
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
"""Meaning by column."""

PREFIXES: Final = {
    "baseline_": "without memory",
    "condition_": "under the condition",
    "delta_": "condition less without memory",
    "same_tasks_": "of these competitions with other seeds",
    "by_task_": "over competitions",
    "by_pair_": "over pairs of competition and seed",
}


def meaning(column: str) -> str | None:
    """Return what a column means; `None` for one that is not known."""
    for prefix, words in PREFIXES.items():
        if column.startswith(prefix):
            known = COLUMNS.get(column.removeprefix(prefix))
            return f"{words}: {known}" if known else None
    return COLUMNS.get(column)


def columns_table(tables: Sequence[Table]) -> Table:
    """Return the table that explains the columns of the others."""
    rows = tuple((table.name, name, meaning(name)) for table in tables for name in table.columns)
    return Table("columns", ("table", "column", "meaning"), rows)
