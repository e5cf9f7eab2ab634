"""When a difference counts: levels, margins, correction for several, hypotheses, verdicts, gates, when a guard may stop.

Light on purpose: plans and progress are shown without numpy.

A guard (`guard_decision`) holds a change against what was there, with as few pairs as that takes, by Wald's (1945)
sequential probability ratio test on paired differences: no change against a loss of the margin, with the variance
estimated as it goes along. What that estimate and stopping within a test cost in errors is paid for by stricter ones
inside (`_FALSE`, `_FOUND`, `_WEIGHT`, `_LAST`): with them, of 4,000 repeats each at 10 to 40 % of pairs that differ
and twice the pairs of a fixed test, 1.3 to 3.5 % were false alarms and 82 to 84 % of losses of the margin were found.
Where nothing had changed that took a median of 0.4 times the pairs of a fixed test (0.57 where only 10 % differ),
where the margin was lost 0.7 times (1.05): with a known variance it would be 0.6 on average, and no test with these
errors takes fewer (Wald & Wolfowitz 1948).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    model_validator,
)

from langgraft._core.arguments import did_you_mean

CONFIDENCE = 0.95
POWER = 0.80
SIGNIFICANCE = 0.05

FEWEST_RUNS = 3
"""Runs below which there is no verdict: two say next to nothing of how runs differ."""

LARGEST: Final = 0.5
"""A study that detects only larger differences is too small to say that there is none: half of all items."""

EQUIVALENCE: Final = 2 * SIGNIFICANCE
"""Two one-sided tests, each at the level, place a difference where this level's interval (90 %) lies."""

MARGIN: Final = 0.10
"""Difference up to which a control counts as none, where nothing else is stated: ten points."""

Verdict: TypeAlias = Literal[
    "helped",
    "hurt",
    "no detectable difference",
    "unclear",
    "too few runs",
    "too small",
    "incomplete",
]
"""`unclear`: it would be another one without one of the runs of the baseline; `too few runs`: fewer
than `FEWEST_RUNS`, which say next to nothing of how runs differ; `too small`: nothing was found, and the
study could only have found differences above `LARGEST`."""


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


# Hypotheses --------------------------------------------------------------------------------------

Better: TypeAlias = Literal["lower", "higher"]

Level: TypeAlias = StrictInt | StrictStr
"""A level of a factor, as the plan names it: `agg`, `400`."""
Levels: TypeAlias = Annotated[tuple[Level, ...], Field(min_length=1, max_length=100)]
SidePart: TypeAlias = Annotated[dict[str, Level | Levels], Field(min_length=1, max_length=20)]
"""Factor → level, or several. A factor that is left out has all its levels; what is left is averaged."""
HypothesisSide: TypeAlias = (
    SidePart | Annotated[tuple[SidePart, ...], Field(min_length=1, max_length=20)]
)
"""A side, or several whose mean is meant."""
Direction: TypeAlias = Literal["greater", "less", "different", "equivalent", "non_inferior"]
Estimator: TypeAlias = Literal["general", "these_runs", "these_items"]
Cell: TypeAlias = Mapping[str, str | int]
"""What outcomes are of: factor → level."""


class Hypothesis(BaseModel):
    """What a plan claims before it is run: treated less baseline, by one measure, against a margin."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str = Field(min_length=1, max_length=100)
    treated: HypothesisSide
    baseline: HypothesisSide
    measure: str
    """By its name in the study: `success`, `bug_rate` …"""
    direction: Direction
    """What is claimed of the true difference: above the margin (`greater`), below minus the margin (`less`),
    either (`different`), between the two (`equivalent`), or worse by less than the margin
    (`non_inferior`: which way is worse, the measure says)."""
    margin: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """In the unit of the measure: of shares, 0.05 is five points."""
    family: str = Field(default="registered", min_length=1, max_length=100)
    """Hypotheses of one family are corrected together (Holm)."""
    estimator: Estimator = "general"
    """For other items and other runs; for other items and these runs; for these items and other runs."""
    alpha: float = Field(default=SIGNIFICANCE, gt=0, lt=0.5)
    """Level of the family."""

    @model_validator(mode="after")
    def _can_be_shown(self) -> Self:
        if self.direction in {"equivalent", "non_inferior"} and not self.margin:
            msg = f"{self.name}: {self.direction!r} needs a margin above 0: nothing is shown to be exactly equal"
            raise ValueError(msg)
        if self.treated == self.baseline:
            msg = f"{self.name}: `treated` and `baseline` are the same"
            raise ValueError(msg)
        return self

    def __str__(self) -> str:
        """Write the claim in one line: `success: (condition agg) - (condition none) > 0`."""
        difference = f"({_told(self.treated)}) - ({_told(self.baseline)})"
        m = f"{self.margin:g}"
        claim = {
            "greater": f"{difference} > {m}",
            "less": f"{difference} < {'-' if self.margin else ''}{m}",
            "different": f"|{difference}| > {m}",
            "equivalent": f"|{difference}| < {m}",
            "non_inferior": f"{difference}: no worse than by {m}",
        }[self.direction]
        return f"{self.measure}: {claim}"


def sides_of(sides: HypothesisSide) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    """Return the parts of a side, each as factor → levels, written as texts."""
    parts = sides if isinstance(sides, tuple) else (sides,)
    return tuple(
        {
            factor: tuple(map(str, given if isinstance(given, tuple) else (given,)))
            for factor, given in part.items()
        }
        for part in parts
    )


def matches(part: Mapping[str, tuple[str, ...]], cell: Cell) -> bool:
    """Say whether a cell belongs to a part of a side."""
    return all(str(cell.get(factor)) in levels for factor, levels in part.items())


def _told(sides: HypothesisSide) -> str:
    return " & ".join(map(_part_told, sides_of(sides)))


def _part_told(part: Mapping[str, tuple[str, ...]]) -> str:
    return ", ".join(f"{factor} {' | '.join(levels)}" for factor, levels in part.items())


Hypotheses: TypeAlias = Annotated[tuple[Hypothesis, ...], Field(max_length=200)]
"""A field of a plan; whether they go together and with the plan, `misfits` says."""


def _disagreements(hypotheses: Sequence[Hypothesis]) -> Iterator[str]:
    levels: dict[str, tuple[int, float]] = {}
    names: dict[str, int] = {}
    for place, each in enumerate(hypotheses):
        if (other := names.setdefault(each.name, place)) != place:
            yield f"hypotheses: {place} and {other} are both called {each.name!r}"
        first, alpha = levels.setdefault(each.family, (place, each.alpha))
        if alpha != each.alpha:
            yield (
                f"hypotheses.{place}.alpha is {each.alpha:g}, and {alpha:g} in {first}: the family"
                f" {each.family!r} has one level"
            )


def misfits(
    hypotheses: Sequence[Hypothesis],
    cells: Sequence[Cell],
    measures: Mapping[str, Better | None],
) -> Iterator[str]:
    """Say where hypotheses disagree, and what they name that a plan does not have, each with its place.

    Args:
        hypotheses: As the plan has them.
        cells: What the plan's outcomes are of.
        measures: What they can be about, and which way is better.
    """
    levels: dict[str, dict[str, None]] = {}
    for cell in cells:
        for factor, level in cell.items():
            levels.setdefault(factor, {})[str(level)] = None
    yield from _disagreements(hypotheses)
    for number, each in enumerate(hypotheses):
        at = f"hypotheses.{number}"
        if each.measure not in measures:
            yield f"{at}.measure: there is no {each.measure!r:.80}; {did_you_mean(each.measure, measures)}"
        elif each.direction == "non_inferior" and measures[each.measure] is None:
            yield f"{at}.direction: of {each.measure!r} neither more nor less is worse, so nothing is 'non_inferior'"
        for name, sides in (("treated", each.treated), ("baseline", each.baseline)):
            for part in sides_of(sides):
                yield from _misfits(f"{at}.{name}", part, cells, levels)


def _misfits(
    at: str,
    part: Mapping[str, tuple[str, ...]],
    cells: Sequence[Cell],
    levels: Mapping[str, Mapping[str, None]],
) -> Iterator[str]:
    wrong = False
    for factor, given in part.items():
        known = levels.get(factor)
        if known is None:
            yield f"{at}: there is no factor {factor!r:.80}; {did_you_mean(factor, levels)}"
            wrong = True
            continue
        for level in given:
            if level not in known:
                yield f"{at}.{factor}: there is no {level!r:.80}; {did_you_mean(level, known)}"
                wrong = True
    if not wrong and not any(matches(part, cell) for cell in cells):
        yield f"{at}: the plan has no outcomes of {_part_told(part)} together"


# Gates -------------------------------------------------------------------------------------------

State: TypeAlias = Literal["passed", "failed", "open", "not applicable"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A check that a comparison must pass before its numbers are worth reading.

    `name` stands first in its row.
    """

    name: str
    state: State
    """`open`: the check could not be made, or does not tell yet; `not applicable`: the plan has nothing
    that it could be made of."""
    detail: str
    """What was looked at, in a sentence or two."""


NAMED: Final = 5
"""How many offenders a gate names."""


def alike(
    name: str, forward: Mapping[str, float | None], again: Mapping[str, float | None]
) -> Gate:
    """Return the gate that numbers do not depend on the order in which items and runs are read.

    Args:
        name: Of the gate.
        forward: Numbers by what they are of.
        again: The same, of what was read backwards.
    """
    wrong = [
        each
        for each in {**forward, **again}
        if (one := forward.get(each)) != (other := again.get(each))
        and (one is None or other is None or abs(one - other) > _ROUNDING)
    ]
    count = sum(each is not None for each in forward.values())
    if wrong:
        named = ", ".join(wrong[:NAMED])
        return Gate(
            name,
            "failed",
            f"Read backwards, {len(wrong)} of {len(forward)} numbers differ: {named}.",
        )
    if not count:
        return Gate(name, "open", "There is no number yet.")
    return Gate(
        name, "passed", f"Read backwards, runs and items, {count} numbers come out the same."
    )


_ROUNDING: Final = 1e-9
"""What adding up in another order does."""


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
