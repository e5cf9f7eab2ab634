"""Whether gold and median of a board are further apart than the choice of the test's rows."""

from dataclasses import dataclass

import numpy as np

from langgraft.benchmarks.mle.boards.boards import Made
from langgraft.benchmarks.mle.boards.contests import Contest
from langgraft.environments.competitions.medals import medal_rows


@dataclass(frozen=True, slots=True)
class Separation:
    """Two teams, and how far apart they are."""

    gold: str
    """The team at gold's row."""
    median: str
    """The team at the median: the better one of the two in the middle where their number is even,
    which makes the difference smaller, not larger."""
    difference: float
    error: float
    """Standard error of the difference, over draws of the test's rows."""
    units: int
    """What is drawn: rows, or pictures."""
    draws: int

    @property
    def errors(self) -> float:
        """The difference in standard errors."""
        return self.difference / self.error


def separation(contest: Contest, made: Made, *, draws: int = 2000, seed: int = 2605) -> Separation:
    """Draw the test's units with replacement, the same for both teams, and score both anew."""
    count = len(made.entries)
    gold = made.entries[medal_rows(count)[0] - 1]
    median = made.entries[(count - 1) // 2]
    losses = np.column_stack([contest.units(entry.losses) for entry in (gold, median)])
    units = len(losses)
    chance = np.random.default_rng(seed)
    drawn = [
        [contest.score(column) for column in losses[chance.integers(units, size=units)].T]
        for _ in range(draws)
    ]
    error = float(np.std(np.diff(drawn, axis=1), ddof=1))
    difference = abs(median.score - gold.score)
    return Separation(gold.team, median.team, difference, error, units, draws)
