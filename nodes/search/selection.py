"""Which program is submitted: the best one, or the best of several that are scored again.

A search's best validation metric is partly luck: the more programs were tried on one split, the
more. So the `k` best may be run again on fresh splits, and the one with the best mean of these
fresh metrics is submitted. What is in here runs nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from langgraft._core.canonical import JSON
from langgraft.nodes.search.journal import JournalNode


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program that may be submitted, with what it reached on fresh splits."""

    node: str
    """Id of its node."""
    metric: float
    """Its validation metric in the search."""
    metrics: tuple[float | None, ...] = ()
    """One for each fresh split, in order; `None`: the program failed there, or gave none."""

    @property
    def mean(self) -> float | None:
        """Mean of the fresh metrics; `None` where it was not run again, or failed once."""
        finite = [each for each in self.metrics if each is not None and math.isfinite(each)]
        return fmean(finite) if finite and len(finite) == len(self.metrics) else None

    def to_json(self) -> dict[str, JSON]:
        """Return the candidate as JSON."""
        fresh = [None if each is None or not math.isfinite(each) else each for each in self.metrics]
        return {"node": self.node, "metric": self.metric, "metrics": fresh}


def candidates(
    nodes: Sequence[JournalNode], *, count: int, lower_is_better: bool
) -> tuple[JournalNode, ...]:
    """Return the `count` best working programs by metric, best first, of equal ones the earlier.

    Args:
        nodes: All programs of the search, in the order of their steps.
        count: How many at most; fewer work in many searches, and none in some.
        lower_is_better: The metric's direction, from the competition's board.
    """
    working = [
        node
        for node in nodes
        if not node.is_buggy and node.metric is not None and math.isfinite(node.metric)
    ]
    working.sort(key=lambda node: _ordered(node.metric, lower_is_better))  # stable
    return tuple(working[: max(count, 0)])


def choose(scored: Sequence[Candidate], *, lower_is_better: bool) -> Candidate | None:
    """Return the candidate to submit: the best mean of fresh metrics, of equal ones the earlier.

    One that failed on a fresh split is passed over for one that did not; where none has all its
    metrics, or nothing was run again, the first candidate stands: the best of the search.

    Args:
        scored: As `candidates` orders them.
        lower_is_better: The metric's direction, from the competition's board.
    """
    whole = [each for each in scored if each.mean is not None]
    if not whole:
        return scored[0] if scored else None
    return min(whole, key=lambda each: _ordered(each.mean, lower_is_better))


def _ordered(metric: float | None, lower_is_better: bool) -> float:
    assert metric is not None
    return metric if lower_is_better else -metric
