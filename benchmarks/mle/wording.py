"""Numbers of the tree study in words: one place that decides how a number is written."""

import math
from dataclasses import replace
from typing import Final

from langgraft.benchmarks.continual.wording import DASH, MINUS
from langgraft.benchmarks.harness.statistics import Estimate
from langgraft.benchmarks.mle.measure import Measure
from langgraft.benchmarks.mle.relations import Correlation
from langgraft.benchmarks.mle.searches import Kind
from langgraft.benchmarks.mle.spreads import Spread

RUNS: Final[dict[Kind, tuple[str, str]]] = {
    "tree": ("search", "searches"),
    "chain": ("run", "runs"),
    "mlab": ("run", "runs"),
}
"""What a run of an agent is called, and several."""

AGENTS: Final = {"tree": "tree search", "chain": "chain agent", "mlab": "MLAB"}
"""What agents are called in titles; others by their names."""


def number(value: float | None, digits: int = 2, *, scale: float = 1.0, sign: bool = False) -> str:
    """Write a number, with its sign where it is a difference; a dash where there is none."""
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{scale * value:+,.{digits}f}" if sign else f"{scale * value:,.{digits}f}"
    if not any(character in "123456789" for character in text):
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


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
