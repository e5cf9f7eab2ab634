"""Numbers of this study in words: with the digits and the scale of what they measure."""

from dataclasses import replace
from typing import Final

from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import Spread
from langgraft.benchmarks.mle.measure import Measure
from langgraft.benchmarks.mle.relations import Correlation
from langgraft.benchmarks.mle.run_set import Kind
from langgraft.benchmarks.reporting.words import DASH, number

RUNS: Final[dict[Kind, tuple[str, str]]] = {
    "tree": ("search", "searches"),
    "chain": ("run", "runs"),
    "mlab": ("run", "runs"),
}
"""What a run of an agent is called, and several."""

AGENTS: Final = {"tree": "tree search", "chain": "chain agent", "mlab": "MLAB"}
"""What agents are called in titles; others by their names."""


def interval(estimate: Estimate, measure: Measure, *, sign: bool = False) -> str:
    """Write an interval: `[0.4, 1.9]`, or `[+0.4, +1.9]` of a difference."""
    ends = (
        number(end, measure.digits, scale=measure.scale, sign=sign)
        for end in (estimate.low, estimate.high)
    )
    return f"[{', '.join(ends)}]"


def change(estimate: Estimate | None, measure: Measure) -> str:
    """Write a difference with its interval: `-12.0 [-20.1, -3.9]`, with minus signs."""
    if estimate is None:
        return DASH
    value = number(estimate.value, measure.digits, scale=measure.scale, sign=True)
    told = f"{value} {interval(estimate, measure, sign=True)}"
    if estimate.these_orders == (estimate.low, estimate.high):
        return told
    low, high = estimate.these_orders
    these = interval(replace(estimate, low=low, high=high), measure, sign=True)
    return f"{told} (for these seeds {these})"


def mean(spread: Spread | None, digits: int = 2, *, scale: float = 1.0, sign: bool = False) -> str:
    """Write a mean with its standard error: `31.82 ± 6.94`."""
    if spread is None:
        return DASH
    written = number(spread.mean, digits, scale=scale, sign=sign)
    return (
        written if spread.sem is None else f"{written} ± {number(spread.sem, digits, scale=scale)}"
    )


def correlation(found: Correlation) -> str:
    """Write a correlation with its interval and what it rests on."""
    if found.r is None:
        return f"{DASH} (n = {found.n})"
    written = f"r = {number(found.r, 2, sign=True)}"
    if (found.low, found.high) == (-1.0, 1.0):
        return f"{written} (n = {found.n}; no interval)"
    ends = f"[{number(found.low, 2, sign=True)}, {number(found.high, 2, sign=True)}]"
    return f"{written} {ends} (n = {found.n})"
