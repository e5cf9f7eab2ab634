"""Advice in nearly the words of other advice that yet says another thing: opposites, for one.

Rules of words, not of meaning: cheap, always the same, and made to err on one side. Where they see
a difference that is none, a lesson is kept that might have gone; nothing is lost by it. They know
the words that negate in English, and none for being wrong or useless; names and the order of words
they see in any language that is written with blanks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

from langgraft.memory.rankers.tokens import tokenize

SAME_WORDS: Final = 0.95
"""From which share of their words in common on two texts are of the same words."""
SAME_ORDER: Final = 0.85
"""Below which share of their word pairs in common such two are in another order."""

# What these negate is what follows them; `not` and its like negate their clause.
_AGAINST: Final = r"instead of|rather than|without|avoid\w*|no|nor|neither"
_NEGATES: Final = re.compile(rf"\b(?:not|never|cannot|\w+n't|{_AGAINST})\b")
_CLAUSE_ENDS: Final = re.compile(rf"[.,;:!?()\n]|\bbut\b|(?=\b(?:{_AGAINST})\b)")

_STRAIGHT: Final = str.maketrans("‘’“”", "''\"\"")  # noqa: RUF001
_QUOTED: Final = re.compile(r"(?<!\w)(['\"`])([^'\"`\n]+)\1(?!\w)")
_CODE: Final = re.compile(r"_|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class Stance:
    """What a text says beyond its choice of words."""

    asserted: frozenset[str]
    """Words that stand in no negated clause."""
    negated: frozenset[str]
    """Words that stand in no other."""
    named: frozenset[str]
    """What is in quotes, or written as code is: commands, tools, fields."""
    words: frozenset[str]
    pairs: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a text."""
        text = text.translate(_STRAIGHT)
        plain: set[str] = set()
        denied: set[str] = set()
        for clause in _CLAUSE_ENDS.split(text.lower()):
            (denied if _NEGATES.search(clause) else plain).update(tokenize(clause))
        words = tokenize(text)
        return cls(
            asserted=frozenset(plain - denied),
            negated=frozenset(denied - plain),
            named=_named(text),
            words=frozenset(words),
            pairs=frozenset(word_pairs(words)),
        )

    def differs_from(self, other: Self) -> bool:
        """Say whether two say different things, however alike their words are.

        They do where they name different things, where one negates what the other asserts, and
        where they put the same words in another order.
        """
        if self.named != other.named:
            return True
        if self.asserted & other.negated or self.negated & other.asserted:
            return True
        same_words = _shared(self.words, other.words) >= SAME_WORDS
        return same_words and _shared(self.pairs, other.pairs) < SAME_ORDER


def word_pairs(words: Sequence[str]) -> list[str]:
    """Return each word with the one that follows it."""
    return [" ".join(pair) for pair in pairwise(words)]


def _named(text: str) -> frozenset[str]:
    quoted = (" ".join(tokenize(found[2])) for found in _QUOTED.finditer(text))
    code = (word.lower() for word in re.findall(r"\w+", text) if _CODE.search(word))
    return frozenset((*quoted, *code)) - {""}


def _shared(some: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of all that are in both; 1 where there are none."""
    every = some | others
    return len(some & others) / len(every) if every else 1.0
