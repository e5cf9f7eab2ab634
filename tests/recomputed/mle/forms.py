"""What a printed figure can have come from: counts, standard errors, differences.

A printed mean and standard error of a few counts leave few choices: they are listed, or it is said
that there is none. Tables round or cut (14.375 stands as 14.37, 22.727 as 22.72); both are allowed.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Final

from scipy import stats

from langgraft.benchmarks.comparison.outcomes import spread_of
from langgraft.benchmarks.published import Cell, mle_agent_memory

PAPER: Final = mle_agent_memory()
LITE: Final = PAPER.section_4_1["lite"]
SEEDS: Final = PAPER.table_1.seeds
STEPS: Final = PAPER.table_6["steps"]

_TINY = 1e-9


def prints(value: float, printed: float, *, digits: int = 2) -> bool:
    """Say whether a value is printed so: rounded, either way at a half, or cut."""
    unit = 10.0**-digits
    return -unit / 2 - _TINY <= value - printed < unit - _TINY


def counts_behind(
    mean: float, sem: float, *, units: int, of: int, ddof: int
) -> list[tuple[int, ...]]:
    """List the counts whose shares print with a mean and a standard error in percent.

    Args:
        mean: As printed, in percent with two digits.
        sem: The same of the standard error.
        units: How many counts: seeds, or tasks.
        of: What each is a count of.
        ddof: How the standard error is made.
    """
    return [
        counts
        for counts in combinations_with_replacement(range(of + 1), units)
        if _print_so(counts, of, ddof, mean, sem)
    ]


def _print_so(counts: tuple[int, ...], of: int, ddof: int, mean: float, sem: float) -> bool:
    if not prints(100 * sum(counts) / of / len(counts), mean):
        return False  # sorted out before the dearer half
    found = spread_of([100 * count / of for count in counts], ddof=ddof)
    return found is not None and found.sem is not None and prints(found.sem, sem)


def can_be_counts(mean: float, sem: float, *, units: int, of: int, ddof: int) -> bool:
    """Say whether any counts print like a mean and a standard error; the same of many units.

    Where there are too many counts to list, their sums and sums of squares are few.
    """
    for total, squares in enumerate(_squares(units, of)):
        if squares and prints(100 * total / of / units, mean):
            for square in range(squares.bit_length()):
                spread = (square - total**2 / units) / (units - ddof) / units
                error = 100 * math.sqrt(max(0.0, spread)) / of
                if squares >> square & 1 and prints(error, sem):
                    return True
    return False


@lru_cache(maxsize=64)
def _squares(units: int, of: int) -> tuple[int, ...]:
    """Return, by the sum of some counts, which sums of squares they can have: bits of a number."""
    reached = [1] + [0] * (units * of)
    for _ in range(units):
        further = [0] * len(reached)
        for total, squares in enumerate(reached):
            if squares:
                for count in range(min(of, units * of - total) + 1):
                    further[total + count] |= squares << count**2
        reached = further
    return tuple(reached)


def digits_of(printed: str) -> int:
    """Return how many digits a figure has after its point."""
    return len(printed.partition(".")[2])


def is_difference(before: float, after: float, printed: str, *, scale: float = 1.0) -> bool:
    """Say whether a printed difference is that of two means that are printed with two digits.

    Args:
        before: A mean.
        after: The other.
        printed: The second less the first, as it is printed.
        scale: What the difference is multiplied by.
    """
    slack = 0.5 * 10.0 ** -digits_of(printed) + scale * 2 * 0.005
    return abs(scale * (after - before) - float(printed)) <= slack + _TINY


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two means with its interval of 95 %."""

    value: float
    low: float
    high: float


def difference(before: Cell, after: Cell, *, n: int) -> Difference:
    """Return the difference of two printed means of `n` each, as if they were independent.

    Welch's interval. Pairs may make it narrower; whether they do is printed nowhere.
    """
    squares = [sem**2 for _, sem in (before, after)]
    error, value = math.sqrt(sum(squares)), after[0] - before[0]
    if not error:
        return Difference(value, value, value)
    df = sum(squares) ** 2 / (sum(square**2 for square in squares) / (n - 1))
    half = float(stats.t.ppf(0.975, df)) * error
    return Difference(value, value - half, value + half)


def sign_test(pairs: Iterable[tuple[float, float]]) -> tuple[int, int, int, float]:
    """Return how often the second is lower, higher and equal, with the two-sided p value."""
    found = list(pairs)
    wins = sum(after < before for before, after in found)
    losses = sum(after > before for before, after in found)
    decided = wins + losses
    p = float(stats.binomtest(wins, decided).pvalue) if decided else 1.0
    return wins, losses, len(found) - decided, p


def t_tail(t: float, df: int) -> float:
    """Return the two-sided p value of a t."""
    return 2 * float(stats.t.sf(abs(t), df))
