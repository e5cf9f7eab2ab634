"""The columns of the CSV tables: numbers that take several of them, and what each means."""

from typing import Final

from langgraft.benchmarks.comparison.outcomes import Metric, Spread
from langgraft.benchmarks.reporting.tables import Field, Meanings, Number

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


_PARTS: Final = {
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

_COLUMNS: Final = {
    "accuracy": "success rate, %",
    "at": "training items of the last phase so far; empty: all",
    "bank_items": "items in the bank",
    "bank_own": "items of the bank that are of the tested task family, %",
    "baseline": "success rate of the baseline in the same runs, %; or the condition compared with",
    "baseline_runs": "runs without memory that the split rests on",
    "before": "success rate after the tested task alone, %",
    "after": "success rate after the whole sequence, %",
    "changed": "what differs between treated and baseline: retrieval or pool",
    "collapsed": "whether few items serve nearly all queries, by the thresholds of the report",
    "by_rules": "questions of memory that rules answered, per episode",
    "condition": "memory, control (memory+control) or crossed probe (retrieval@pool)",
    "between_contexts": "1 - mean pairwise TF-IDF cosine of the injected contexts",
    "context_diversity": "1 - mean pairwise TF-IDF cosine of the items retrieved",
    "context_diversity_after": "context diversity with the remedy",
    "context_diversity_before": "context diversity of the mended condition",
    "context_diversity_change": "after less before, paired by run",
    "context_diversity_change_n_items": "runs compared",
    "control": "the control compared with",
    "coverage_bank": "distinct items retrieved / items in the bank, %",
    "coverage_slots": "distinct items retrieved / items retrieved, %",
    "cumulative_success": "training items solved so far, %",
    "delta_nl": "change on the items failed without memory, pp",
    "delta_rr": "change on the items solved without memory, pp",
    "detail": "how the gate came out, in words",
    "detectable_80": "true difference found four times in five, at the first step of Holm's procedure, pp",
    "detectable_note": "why there is none",
    "df": "degrees of freedom of the order variance, pooled over the family",
    "direction": "forward: the later task is tested; backward: the earlier one",
    "domain": "task family",
    "earlier_in_bank": "items of the bank that are of the earlier task, %",
    "earlier_retrieved": "items retrieved that are of the earlier task, %",
    "easy": "what items solved without memory add to the transfer, pp",
    "empty_share": "retrievals that found nothing, %",
    "episodes": "episodes with a result",
    "expectation_runs": "baseline runs that the expected values are fitted to",
    "expected_nl": "NL of a fresh run without memory, by a beta-binomial fit, %",
    "expected_rr": "RR of a fresh run without memory, by a beta-binomial fit, %",
    "first": "first training item of the window, from 1",
    "gate": "name of the check",
    "hard": "what items failed without memory add to the transfer, pp",
    "held_at": "condition at which the other of retrieval and pool is held",
    "identity_gap": "|transfer - (n_s*delta_rr + n_f*delta_nl)/N|",
    "insights": "lessons per retrieval",
    "invalid_replies": "replies without an action, per episode",
    "item": "test or training item",
    "items": "items: per retrieval, in a bank, or of a training stream so far",
    "key_diversity": "1 - mean pairwise TF-IDF cosine of the keys in the bank",
    "kind": "train or evaluate",
    "last": "last training item of the window",
    "mends": "the condition that the remedy is to improve on",
    "method": "how the interval was found",
    "n_failed": "test items failed without memory",
    "n_solved": "test items solved without memory",
    "nl": "success on the items failed without memory, %",
    "nl_less_expected": "NL less the expected one, pp",
    "nl_less_rerun": "NL less that of the re-run, paired, pp",
    "node": "node of the agent's graph that asks the model, or that drops lessons",
    "noise": "whether a control is equivalent to no memory, where it should be",
    "own_share": "items retrieved that are of the tested task family, % (a change: pp)",
    "own_share_after": "own-task share with the remedy, %",
    "own_share_before": "own-task share of the mended condition, %",
    "p": "two-sided p value",
    "p_holm": "the same, corrected by Holm over the family",
    "pool": "condition whose banks are read",
    "position": "place in the stream, from 1",
    "queries": "retrievals",
    "questions": "questions that memory asked of a judge, per episode",
    "recalled_tokens": "tokens of recalled text per episode",
    "recalls": "retrievals per episode",
    "replicate": "which repetition, from 0",
    "replies": "replies of the model",
    "rerun_nl": "NL of the re-run of the baseline, %",
    "rerun_rr": "RR of the re-run of the baseline, %",
    "retrieval": "condition whose retrieval is used",
    "role": "memory: in the family; control: beside it",
    "rr": "success on the items solved without memory, %",
    "rr_less_expected": "RR less the expected one, pp",
    "rr_less_rerun": "RR less that of the re-run, paired, pp",
    "run": "name of the run",
    "score": "reward of the episode",
    "se": "standard error, pp",
    "seed_share": "share of the variance due to whole repetitions differing",
    "sequence": "what was learned before the test; empty: nothing, or all sequences",
    "state": "passed, failed or open",
    "success": "success rate, % (a change: pp); of one episode 1 or 0",
    "task": "task family tested; empty: both",
    "tie_rate": "retrievals whose best score is shared by several items, %",
    "tokens": "tokens per retrieval (retrieval tables); of prompt and reply per episode (costs)",
    "tokens_per_episode": "tokens of recalled text per episode",
    "top1_effective": "effective number of best items, 1/sum(p^2)",
    "top1_share": "retrievals that one item is the best for, %",
    "top1_share_after": "top-1 concentration with the remedy, %",
    "top1_share_before": "top-1 concentration of the mended condition, %",
    "top1_share_change": "after less before, paired by run, pp",
    "top1_share_change_n_items": "runs compared",
    "transfer": "FWT or BWT, pp",
    "treated": "the condition that takes the place of baseline",
    "verdict": "helped, hurt, no detectable difference, unclear, too few runs or incomplete",
    "before_other_first": "success after the tested task alone of the episodes that later begin with the other task, %",
    "before_own_first": "success after the tested task alone of the episodes that later begin with their own, %",
    "change_other_first": "success less that after the tested task alone, of episodes that begin with the other task, pp",
    "change_own_first": "success less that after the tested task alone, of episodes that begin with their own task, pp",
    "drawn": "lessons drawn from training episodes",
    "invalid": "lessons dropped because they do not hold",
    "kept": "lessons kept",
    "repeated": "lessons dropped because they say what is known",
    "lessons_dropped": "lessons dropped for this reason",
    "n_nothing": "episodes that retrieve nothing at first",
    "n_other_first": "episodes whose first retrieval begins with an item of another task",
    "n_own_first": "episodes whose first retrieval begins with an item of their own task",
    "other_first": "episodes whose first retrieval begins with an item of another task, %",
    "reason": "why lessons were dropped",
    "subset": "all items; easy: solved without memory; hard: failed without memory",
    "success_other_first": "success of the episodes that begin with an item of another task, %",
    "success_own_first": "success of the episodes that begin with an item of their own task, %",
}
"""Columns that are no part of another number, and the names before such parts."""

MEANINGS: Final = Meanings(_COLUMNS, _PARTS)
