"""The columns of what a comparison computes, the same in the tables of every study.

Numbers that take several columns (`metric`, `spread`), the tables of contrasts and of gates, and what
each of their columns means.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast
from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import Metric, Spread
from langgraft.benchmarks.comparison.verdicts import Gate
from langgraft.benchmarks.harness.progress import Spent
from langgraft.benchmarks.reporting.findings import Registration, standing
from langgraft.benchmarks.reporting.tables import Field, Number, Table

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


def contrast_table(found: Comparison) -> Table:
    """Return the family, then the re-run and the controls."""
    columns = (
        *("condition", "role", metric(), metric("success"), metric("baseline")),
        Number("", ("se", "df", "method", "seed_share", "p"), _test),
        *("p_holm", percent("detectable_80"), "detectable_note", "verdict", "noise"),
    )
    rows = [_contrast(each, "memory", "") for each in found.family]
    rows += [_contrast(each, "control", standing(found, each)) for each in found.beside]
    return Table.of("contrasts", columns, rows)


def _contrast(contrast: Contrast, role: str, standing: str) -> tuple[Any, ...]:
    numbers = (contrast.difference, contrast.success, contrast.baseline, contrast.estimate)
    effect, note = contrast.detectable, None
    if effect is not None and not math.isfinite(effect):
        effect, note = None, "no difference can be detected: too few items or runs"
    tested = (contrast.p_adjusted, effect, note, contrast.verdict, standing)
    return (contrast.condition, role, *numbers, *tested)


def _test(found: Estimate) -> tuple[Field, ...]:
    return (100 * found.se, found.df, found.method, found.seed_share, found.p)


def registered_tables(found: Registration) -> tuple[Table, ...]:
    """Return what the plan registers and what came of it; no table where it registers nothing."""
    if not found.tested:
        return ()
    columns = (
        *("registered", "claim", "measure", "family", "estimator", "margin"),
        *("registered_difference", "corrected_low", "corrected_high", "alpha_left", "p_family"),
        *("decision", "undecided_because"),
    )
    rows = []
    for each in found.tested:
        h, scale = each.hypothesis, each.difference.scale
        value = None if each.estimate is None else scale * each.estimate.value
        ends = (None, None) if each.interval is None else [scale * end for end in each.interval]
        rows.append(
            (
                *(h.name, str(h), h.measure, h.family, h.estimator, scale * h.margin),
                *(value, *ends, each.alpha, each.p_adjusted, each.verdict, each.why),
            )
        )
    return (Table.of("registered", columns, rows),)


def spending_tables(spent: Sequence[Spent]) -> tuple[Table, ...]:
    """Return what was spent by condition and node; no table where the items of a log do not say."""
    rows = [(s.condition, s.node, s.calls, s.tokens, s.dollars) for s in spent]
    columns = ("spent_by", "node", "calls", "tokens_used", "dollars")
    return (Table.of("spending", columns, rows),) if rows else ()


def gate_table(gates: Iterable[Gate]) -> Table:
    """Return the checks and how they came out."""
    rows = ((gate.name, gate.state, gate.detail) for gate in gates)
    return Table.of("gates", ("gate", "state", "detail"), rows)


PARTS: Final = {
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

COLUMNS: Final = {
    "alpha_left": "level of the interval: what the family's correction leaves of its own for this hypothesis",
    "calls": "replies that results rest on, those found in the cache too",
    "claim": "what the hypothesis says of the true difference; the margin in the unit of the measure",
    "corrected_high": "upper end of the interval at that level",
    "corrected_low": "lower end of the interval at that level, which the decision goes by",
    "decision": "supported, refuted or undecided, by the interval against the margin",
    "detail": "how the gate came out, in words",
    "detectable_80": "true difference found four times in five, at the first step of Holm's procedure, pp",
    "detectable_note": "why there is none",
    "df": "degrees of freedom of the order variance, pooled over the family",
    "dollars": "paid for these, failed calls included; empty where no price was known or nothing was paid",
    "estimator": "general: other items and other runs; these_runs: other items; these_items: other runs",
    "family": "hypotheses that are corrected together",
    "gate": "name of the check",
    "margin": "what the difference is held to, in the unit of the difference",
    "measure": "what is compared",
    "method": "how the interval was found",
    "node": "the graph's node that asked; empty: outside of graphs, or nobody says",
    "noise": "whether a control is equivalent to no memory, where it should be",
    "p": "two-sided p value",
    "p_holm": "the same, corrected by Holm over the family",
    "p_family": "p value of the hypothesis or of its opposite, the smaller, corrected by Holm over its family",
    "undecided_because": "why a hypothesis is undecided, where that is not the interval's doing",
    "registered": "name of a hypothesis that the plan registers",
    "registered_difference": "treated less baseline; of shares in percentage points",
    "role": "memory: in the family; control: beside it",
    "se": "standard error, pp",
    "seed_share": "share of the variance due to whole repetitions differing",
    "spent_by": "condition; its pair, agent or solver before it, where there are several",
    "state": "passed, failed, open (cannot be told) or not applicable",
    "tokens_used": "tokens of these replies, prompts included",
    "verdict": "helped, hurt, no detectable difference, unclear, too few runs or incomplete",
}
"""Columns of these tables that are no part of a number."""
