"""What a habit is: a way of writing something that no longer works, and how it is got rid of."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

WILD: Final = "@"
"""In a fragment: whatever stands there, as far as it is one argument."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What may be written in place of a habit: right, or as wrong as before."""

    text: str
    """The fragment that takes the habit's place; `@` as in the habit."""
    plan: str
    """What a plan says of it, in two sentences that name both."""
    words: tuple[str, ...]
    """Words that a note's fix has to hold all of, to be taken for this one."""


@dataclass(frozen=True, slots=True)
class Habit:
    """A way of writing that fails."""

    name: str
    right: str
    """The fragment where it may occur, written as it works."""
    wrong: str
    """The same as the habit has it."""
    error: str
    """Regular expression of what its failure prints."""
    about: tuple[str, ...]
    """Words that a note has to hold all of, to be about this."""
    repair: Repair
    """What gets rid of it."""
    others: tuple[Repair, ...]
    """What is tried as well, and does not."""
    rate: float
    """How often it happens where it may, with nothing known."""

    def broken(self, text: str, wrong: str = "") -> str:
        """Return a text with the habit in it, or with another wrong fragment."""
        return replaced(text, self.right, wrong or self.wrong)

    def repaired(self, text: str, repair: Repair) -> str:
        """Return a text with a repair in place of the habit, however wrong it is written."""
        for wrong in (self.wrong, *(other.text for other in self.others)):
            if wrong != repair.text:
                text = replaced(text, wrong, repair.text)
        return text

    def occurs_in(self, text: str) -> bool:
        """Say whether a text has the habit, or another wrong fragment in its place."""
        return _pattern(self.wrong).search(text) is not None or self.retried_in(text)

    def retried_in(self, text: str) -> bool:
        """Say whether a text has what was tried in its place."""
        return any(_pattern(other.text).search(text) for other in self.others)

    def may_occur_in(self, text: str) -> bool:
        """Say whether a text has the fragment that it spoils."""
        return _pattern(self.right).search(text) is not None

    def shown_by(self, output: str) -> bool:
        """Say whether an output tells of its failure."""
        return re.search(self.error, output) is not None


def habit(
    name: str,
    *,
    right: str,
    wrong: str,
    error: str,
    about: tuple[str, ...],
    plan: str,
    words: tuple[str, ...],
    others: tuple[Repair, ...] = (),
    rate: float,
) -> Habit:
    """Make a habit whose repair writes the fragment as it works, with that plan and words."""
    return Habit(name, right, wrong, error, about, Repair(right, plan, words), others, rate)


def replaced(text: str, old: str, new: str) -> str:
    """Replace a fragment wherever it occurs; what `@` stands for is carried on in its order."""

    def written(match: re.Match[str]) -> str:
        values = iter(match.groups())
        return "".join(next(values, "") if part == WILD else part for part in _split(new))

    return _pattern(old).sub(written, text)


def holds(text: str, words: Iterable[str]) -> bool:
    """Say whether a text holds all of some words, whatever their case, as words of their own.

    A word that ends in `*` may go on. `removed` stands for all that says so.
    """
    lowered = text.casefold()
    return all(_word(word.casefold()).search(lowered) for word in words)


@lru_cache(maxsize=1024)
def _word(word: str) -> re.Pattern[str]:
    if word == "removed":
        return re.compile(r"\b(?:remov\w*|drop(?:ped|ping)?|without|leave out|omit\w*|delet\w*)\b")
    after = "" if word.endswith("*") else r"(?!\w)"
    return re.compile(rf"(?<!\w){re.escape(word.rstrip('*'))}{after}")


def _split(fragment: str) -> list[str]:
    return re.split(f"({WILD})", fragment)


@lru_cache(maxsize=1024)
def _pattern(fragment: str) -> re.Pattern[str]:
    """Compile a fragment; at either end it stops at the border of a word."""
    inner = "".join("([^,()\n]*)" if part == WILD else re.escape(part) for part in _split(fragment))
    before = r"(?<!\w)" if re.match(r"\w", fragment) else ""
    after = r"(?!\w)" if re.search(r"\w$", fragment) else ""
    return re.compile(f"{before}{inner}{after}")
