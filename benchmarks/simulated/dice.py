"""Chance for learners that play worlds: a function of the seed, a text and the question."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from langgraft._core.canonical import seeded_fraction

Option = TypeVar("Option")


@dataclass(frozen=True, slots=True)
class Dice:
    """Decides between options by the seed and a text alone.

    At temperature 0 the most likely option is taken, the first one named among equals.
    """

    seed: int
    sampled: bool
    """Whether the temperature is above 0."""
    text: str
    """Digest of the text that the draws belong to."""
    learner: str
    """Whose draws they are: two learners that read the same text draw apart."""

    def fraction(self, name: str) -> float:
        """Return a number in [0, 1) for one question."""
        return seeded_fraction(self.learner, self.seed, self.text, name)

    def pick(self, name: str, weights: Mapping[Option, float]) -> Option:
        """Draw one of the options."""
        if not self.sampled:
            return max(weights, key=lambda option: weights[option])
        left = self.fraction(name) * sum(weights.values())
        for option, weight in weights.items():
            left -= weight
            if left < 0:
                return option
        return next(reversed(list(weights)))

    def coin(self, name: str, chance: float) -> bool:
        """Return true with the given probability; at temperature 0 if that is at least half."""
        return self.fraction(name) < chance if self.sampled else chance >= 0.5  # noqa: PLR2004
