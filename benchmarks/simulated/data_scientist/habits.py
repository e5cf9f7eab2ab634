"""Habits: ways of writing something that no longer work, and how they are got rid of.

They are written down in `habits.md`. Each one was run in the sandbox and fails there as its `error`
says, and so does each wrong repair, in one way or another.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import resources
from string import Template
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.programs import PACKAGE
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

WILD: Final = "@"
"""In a fragment: whatever stands there, as far as it is one argument."""
_SECTION: Final = re.compile(r"^## (.+) \((.+)\)\n\n((?:- .+\n)+)", re.MULTILINE)
_LINE: Final = re.compile(r"^- (\w+): `(.+?)`(?: \((`.+`)\))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Repair:
    """What may be written in place of a habit: right, or as wrong as before."""

    text: str
    """The fragment that takes the habit's place; `@` as in the habit."""
    plan: str
    """What a plan says of it, in two sentences that show both."""
    words: tuple[str, ...] = ()
    """Words that name it in notes, any of them; those in quotes only in code."""

    @property
    def shown(self) -> str:
        """The fragment as plans show it."""
        return self.text.replace(WILD, "…")


@dataclass(frozen=True, slots=True)
class Habit:
    """A way of writing that fails."""

    name: str
    right: str
    """The fragment where it may occur, written as it works."""
    mistake: Repair
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
        return replaced(text, self.right, wrong or self.mistake.text)

    def repaired(self, text: str, repair: Repair) -> str:
        """Return a text with a repair in place of the habit, however wrong it is written."""
        for wrong in (self.mistake, *self.others):
            if wrong.text != repair.text:
                text = replaced(text, wrong.text, repair.text)
        return text

    def occurs_in(self, text: str) -> bool:
        """Say whether a text has the habit, or another wrong fragment in its place."""
        return _pattern(self.mistake.text).search(text) is not None or self.retried_in(text)

    def retried_in(self, text: str) -> bool:
        """Say whether a text has what was tried in its place."""
        return any(_pattern(other.text).search(text) for other in self.others)

    def may_occur_in(self, text: str) -> bool:
        """Say whether a text has the fragment that it spoils."""
        return _pattern(self.right).search(text) is not None

    def shown_by(self, output: str) -> bool:
        """Say whether an output tells of its failure."""
        return re.search(self.error, output) is not None


@lru_cache(maxsize=64)
def habits_for(task: Task, *, endless: bool = True) -> tuple[Habit, ...]:
    """Return the habits that programs for a task may have, in the order in which they spoil one.

    Args:
        task: The competition, as far as it is known.
        endless: Whether those that run into a limit are among them.
    """
    guess = "label" if task.classes else "y"
    names = {key: str(value) for key, value in asdict(task).items()} | {"guess": guess}
    text = resources.files(PACKAGE).joinpath("habits.md").read_text(encoding="utf-8")
    habits = _read(Template(text).safe_substitute(names))
    guessable = task.target not in (guess, "target")
    return tuple(
        each
        for each in habits
        if (guessable or each.name != "target column")
        and (endless or not each.name.endswith("without end"))
    )


def _read(text: str) -> Iterator[Habit]:
    for title, rate, lines in _SECTION.findall(text):
        calls, colon, what = title.rpartition(": ")
        for name in calls.split(", ") if colon else [""]:
            fragments = {
                kind: (fragment, tuple(re.findall("`(.+?)`", words)))
                for kind, fragment, words in _LINE.findall(lines.replace("NAME", name))
            }
            wrong, words = fragments["wrong"]
            mistake = Repair(wrong, f"Keep `{wrong.replace(WILD, '…')}`.", words)
            fixes = {
                kind: _repair(mistake, *fragments[kind]) for kind in fragments if kind != "error"
            }
            yield Habit(
                f"{name} {what}".strip(),
                right=fragments["right"][0],
                mistake=mistake,
                error=fragments["error"][0],
                about=fragments["error"][1],
                repair=fixes.get("repair", fixes["right"]),
                others=(fixes["other"],) if "other" in fixes else (),
                rate=float(rate),
            )


def _repair(mistake: Repair, text: str, words: tuple[str, ...]) -> Repair:
    shown = Repair(text, "").shown
    plan = f"Replaced `{mistake.shown}` by `{shown}`. That is how it is written now."
    return Repair(text, plan, words)


def replaced(text: str, old: str, new: str) -> str:
    """Replace a fragment wherever it occurs; what `@` stands for is carried on in its order."""

    def written(match: re.Match[str]) -> str:
        values = iter(match.groups())
        return "".join(next(values, "") if part == WILD else part for part in _split(new))

    return _pattern(old).sub(written, text)


def holds(text: str, words: Iterable[str]) -> bool:
    """Say whether a text holds all of some words, whatever their case, as words of their own.

    A word that ends in `*` may go on.
    """
    return all(word_pattern(word.casefold()).search(text.casefold()) for word in words)


@lru_cache(maxsize=1024)
def word_pattern(word: str) -> re.Pattern[str]:
    """Compile a word of a note; at either end it stops at the border of a word."""
    inner = re.escape(word.rstrip("*"))
    return re.compile(f"{_edge(word[:1], '<!')}{inner}{_edge(word[-1:], '!')}")


def _split(fragment: str) -> list[str]:
    return re.split(f"({WILD})", fragment)


@lru_cache(maxsize=1024)
def _pattern(fragment: str) -> re.Pattern[str]:
    """Compile a fragment."""
    inner = "".join("([^,()\n]*)" if part == WILD else re.escape(part) for part in _split(fragment))
    return re.compile(f"{_edge(fragment[:1], '<!')}{inner}{_edge(fragment[-1:], '!')}")


def _edge(letter: str, look: str) -> str:
    """Stop at the border of a word."""
    return rf"(?{look}\w)" if re.match(r"\w", letter) else ""
