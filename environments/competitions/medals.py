"""MLE-bench's medal rule: what a score earns on a board."""

from dataclasses import dataclass
from typing import Literal

Medal = Literal["gold", "silver", "bronze"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The scores that earn medals, and the median of the board."""

    gold: float
    silver: float
    bronze: float
    median: float
    lower_is_better: bool
    teams: int


@dataclass(frozen=True, slots=True)
class Board:
    """A competition's leaderboard: every team's score, or only what they come down to."""

    thresholds: Thresholds
    scores: tuple[float, ...] | None = None
    """Best first; `None` where only the thresholds are known."""
