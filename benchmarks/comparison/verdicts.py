"""When a difference counts: levels, margins, the correction for several of them, verdicts, gates.

Light on purpose: plans and progress are shown without numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

CONFIDENCE = 0.95
POWER = 0.80
SIGNIFICANCE = 0.05

FEWEST_RUNS = 3
"""Runs below which there is no verdict: two say next to nothing of how runs differ."""

MARGIN: Final = 0.10
"""Difference up to which a control counts as none, where nothing else is stated: ten points."""

Verdict: TypeAlias = Literal[
    "helped", "hurt", "no detectable difference", "unclear", "too few runs", "incomplete"
]
"""`unclear`: it would be another one without one of the runs of the baseline; `too few runs`: fewer
than `FEWEST_RUNS`, which say next to nothing of how runs differ."""


def holm(p_values: Sequence[float], *, families: int = 1) -> tuple[float, ...]:
    """Adjust the p values of one declared family by Holm's (1979) step-down procedure.

    By hand: statsmodels' collects all garbage at every call, a third of a second each.

    Args:
        p_values: One for each contrast.
        families: Families that a study judges, this one included. They share its level: adjusted
            p values are multiplied by their number (Bonferroni).
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        steps = families * (len(p_values) - step)
        least = max(least, min(1.0, steps * p_values[place]))
        adjusted[place] = least
    return tuple(adjusted)


State: TypeAlias = Literal["passed", "failed", "open"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A check that a comparison must pass before its numbers are worth reading."""

    name: str
    state: State
    """`open` says that the check could not be made."""
    detail: str
    """What was looked at, in a sentence or two."""


NAMED: Final = 5
"""How many offenders a gate names."""


def completeness(detail: str, missing: Sequence[str]) -> Gate:
    """Return the gate that nothing is missing.

    Args:
        detail: How much there is, of how much.
        missing: What is missing, each in a word or two.
    """
    if not missing:
        return Gate("Completeness", "passed", detail)
    more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    return Gate("Completeness", "failed", f"{detail} Missing: {'; '.join(missing[:NAMED])}{more}.")
