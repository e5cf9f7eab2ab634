"""The columns of the CSV tables: numbers that take several of them, and what each means.

Numbers come with the scale of their measure, `(estimate, 100)` for percent.
"""

from typing import Any, Final, TypeAlias

from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import Spread
from langgraft.benchmarks.mle.behaviour.runs import Share
from langgraft.benchmarks.mle.relations import Correlation
from langgraft.benchmarks.reporting.columns import COLUMNS
from langgraft.benchmarks.reporting.tables import Field, Meanings, Number

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
