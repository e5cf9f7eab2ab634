"""How soon a run had something that works, and how good it became (mle-agent-memory §4.3, §4.4)."""

import math
from dataclasses import dataclass

from langgraft.nodes.search.journal import Journal, JournalNode


def is_valid(node: JournalNode) -> bool:
    """Say whether a program is valid (the paper: runnable): not buggy by the run's own review.

    AIDE's `is_buggy` covers what failed and what reported no metric; ours also what left no valid
    submission.
    """
    return not node.is_buggy


@dataclass(frozen=True, slots=True)
class FirstValid:
    """When a run first had a program that works."""

    step: int
    """Place of the program, from 0; the number of steps where there is none."""
    censored: bool
    """Whether there is none: the true value lies at `step` or beyond."""


def first_valid(journal: Journal) -> FirstValid:
    """Find the first valid program.

    Counted from 0: the paper's mean of 0.80 (Table 2) would be impossible from 1. What it does
    with runs that have none is not said; they are censored at their number of steps, and the
    share of such runs belongs beside every mean.
    """
    for place, node in enumerate(journal.nodes):
        if is_valid(node):
            return FirstValid(place, censored=False)
    return FirstValid(len(journal.nodes), censored=True)


def oriented(metric: float, *, lower_is_better: bool) -> float:
    """Return a metric so that more is better: a loss becomes 1 / (1 + loss) (§4.3).

    The direction is the leaderboard's. The paper's Table 8 calls an AUC task regression; taken at
    its word, the surrogate would turn that metric upside down. A negative loss, which no grader
    here gives, becomes 1 - loss: the paper's form has a pole at -1, and beyond it the wrong order.
    """
    if not lower_is_better:
        return metric
    return 1 / (1 + metric) if metric >= 0 else 1 - metric


def best_so_far(
    journal: Journal, *, lower_is_better: bool, steps: int | None = None
) -> tuple[float, ...]:
    """Return the best validation metric up to each step, so that more is better.

    NaN before the first valid program: the paper does not say, and any number in its place would
    be one nobody measured. A run that ended keeps its best.

    Args:
        journal: The run.
        lower_is_better: The metric's direction, from the competition's board.
        steps: Length of the answer; `None` for that of the run.
    """
    length = len(journal.nodes) if steps is None else steps
    curve, best = [], math.nan
    for place in range(length):
        node = journal.nodes[place] if place < len(journal.nodes) else None
        if node is not None and is_valid(node) and _finite(node.metric):
            assert node.metric is not None
            value = oriented(node.metric, lower_is_better=lower_is_better)
            best = value if math.isnan(best) else max(best, value)
        curve.append(best)
    return tuple(curve)


def _finite(metric: float | None) -> bool:
    return metric is not None and math.isfinite(metric)
