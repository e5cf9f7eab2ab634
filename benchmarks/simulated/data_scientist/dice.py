"""Chance as a function of the prompt, the seed and the sample's name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from langgraft._core.canonical import seeded_fraction

Option = TypeVar("Option")


@dataclass(frozen=True, slots=True)
class Dice:
    """Answers each question of chance once and for all.

    What memory says is no part of it: a note that tells nothing leaves every draw as it was.
    """

    seed: int
    sampled: bool
    """Whether to draw at all, or to take what is most likely."""
    prompt: str
    """Digest of the conversation without recalled notes."""
    sample: str = ""
    """Name of the model call, where it has one: the same prompt at another step is another draw."""

    def fraction(self, question: str) -> float:
        """Return a number in [0, 1)."""
        return seeded_fraction(self.seed, self.prompt, self.sample, question)

    def lucky(self, question: str, chance: float) -> bool:
        """Say whether something of that chance comes to pass; without draws, if it is likely."""
        return self.fraction(question) < chance if self.sampled else chance >= 0.5  # noqa: PLR2004

    def pick(self, question: str, weights: Mapping[Option, float]) -> Option:
        """Return one of the options, by weight; without draws, the first of the heaviest.

        Raises:
            ValueError: There are no options.
        """
        if not self.sampled:
            return max(weights, key=lambda option: weights[option])
        left = self.fraction(question) * sum(weights.values())
        for option, weight in weights.items():
            left -= weight
            if left < 0:
                return option
        return max(weights, key=lambda option: weights[option])
