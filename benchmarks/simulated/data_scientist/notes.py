"""Habits, ways of writing that no longer work, and what recalled notes tell of them and advise.

They are written down in `habits.md`. Each one was run in the sandbox and fails there as its `error`
says, and so does each wrong repair, in one way or another.

Names and values in a note are looked for in its code; what is said of them is told by the words around
them, as for the learners that play worlds (`stances`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import resources
from string import Template
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.programs import PACKAGE
from langgraft.benchmarks.simulated.data_scientist.tasks import Task
from langgraft.benchmarks.simulated.notes import parts_of, stances

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


_ENTRY: Final = re.compile(r"\n\s*\n|\n(?=Package: )")
_FIX: Final = re.compile(r"^Fix:[ \t]*(.*)\Z", re.MULTILINE | re.DOTALL)
_ERROR: Final = re.compile(
    r"^(?:Package|Error): .*$|\b\w+(?:Error|Exception|Warning)\b(?::.*)?", re.MULTILINE
)
SHOWS: Final = re.compile(
    r"Did you mean|Use `[^`]+` instead|use `\w+` by itself|must be a str among"
)
"""Errors that say themselves what would have worked."""

_LIMIT: Final = re.compile(
    r"time[\s-]?out|timed out|time limit|out of memory|memoryerror|memory limit", re.IGNORECASE
)
_EXCEEDED: Final = re.compile(
    r"(?:\b(?:not|never|cannot)|n['’]t)(?:\s+\w+){0,3}?\s+(?:within|under|before)\b",  # noqa: RUF001
    re.IGNORECASE,
)
"""How a limit is told of by what was not done in it."""
_NO_LIMIT: Final = re.compile(
    r"(?:\b(?:no|not|never|without|within|under|below|nor|hardly|cannot|nowhere|neither|avoid\w*|prevent\w*)"
    rf"|n['’]t)(?:\s+\w+){{0,6}}?\s+(?:{_LIMIT.pattern})\w*"  # noqa: RUF001
    rf"|(?:{_LIMIT.pattern})\w*\s+(?:\w+\s+){{0,2}}(?:not|never)\b",
    re.IGNORECASE,
)
_CLASS: Final = re.compile(
    r"\b(?:[A-Z]\w*(?:Classifier|Regressor|Regression|Ridge|SVC|SVR|NB)|SVC|SVR|Ridge)\b"
)
_LIBRARIES: Final = ("lightgbm", "xgboost", "sklearn")

_CODE: Final = re.compile(
    r"`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|\S*[\w)\]][_=(\[./]+[\w\"'(\[]\S*"
)
"""What stands in backquotes or quotes, or looks like code."""
_LETTERS: Final = "abcdefgh"
_THING: Final = r"(?:code|act\w)"
_TO: Final = rf"(?: \w+){{0,4}}? (?:by|with|to|into|for) (?:\w+ ){{0,3}}?({_THING})\b"
_GONE: Final = r"(?:removed|dropped|deleted|omitted|left out)"
_REWORDED: Final = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\bat (?:all costs|any price)\b", ""),
        (r"\bignore\b", "avoid"),
        (r"\banything but\b", "not"),
        (r"\b(?:is|was) (?:of )?no use\b", "did not help"),
        (r"\bnothing (?:is |was )?wrong with\b", "use"),
        (
            r"\b(?:error|failure|exception|problem) (?:goes|went|disappears|is gone)\b[^.,;]*? with\b",
            "use",
        ),
        (r"\bas (un\w+|wrong|bad|useless) as\b", r"\1, like"),
        # To replace one by the other is to use the other instead of the one.
        (
            rf"\b(not|never) (?:replace|change|rename|turn|convert) (?:\w+ ){{0,4}}?{_THING}{_TO}",
            r"\1 use \2",
        ),
        (
            rf"\b(?:replac|chang|renam|turn|convert)(e|es|ed|s)? (?:\w+ ){{0,4}}?({_THING}){_TO}",
            r"us\1 \3 instead of \2",
        ),
        (rf"\b(?:replac|chang|renam|turn|convert)ing (?:\w+ ){{0,4}}?{_THING}{_TO}", r"using \1"),
        (r"\bus(?:|ed|es|s) (?=act|code)", "use "),
        (
            (
                rf"\b({_THING}) (?:\w+ ){{0,3}}?(?:renamed|replaced|superseded|changed)"
                rf"(?: (?:by|with|to|into))? ({_THING})\b"
            ),
            r"use \2 instead of \1",
        ),
        (rf"\b(?:in favou?r of|(?:renamed|changed) (?:to|into)) ({_THING})\b", r". use \1"),
        (rf"\b({_THING}) (?:replaces|supersedes) ({_THING})\b", r"use \1 instead of \2"),
        (rf"\b(instead of {_THING}) (?=us|writ|set|pass|call|take|say|put|give)", r"\1, "),
        # What is gone does not work; what is taken out is left out.
        (rf"\b(?:must|should|need|may) not be {_GONE}", "is needed"),
        (rf"\b(?:must|should|has to|needs to|may|can|is to) be {_GONE}", "is wrong"),
        (rf"\b(?:is|was|were|are|has been|got) (?:now )?{_GONE}", "is wrong"),
        (r"\bno longer (?:accepted|supported|valid|there|exists|taken|needed)", "wrong"),
        (r"\b(?:no longer|not any ?more)\b", "not"),
        (r"\b(?:deprecated|obsolete|outdated|unexpected|unsupported|unknown|gone)\b", "wrong"),
        (rf"\bleav(?:e|ing) ({_THING}) out\b", r"omit \1"),
        (
            r"\b(?:remov|delet)(?:e|es|ed|ing)\b|\b(?:get|got|getting) rid of\b|\btak\w+ out\b",
            "omit",
        ),
    )
)
_INSISTS: Final = re.compile(
    r"\b(?:us(?:e|ing)|writ(?:e|ing)|keep|pass|set|stay with|stick (?:to|with)|only|works?|fine|right)\b"
)
"""Words without which a mistake that is mentioned is not taken for advice to make it."""


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes, understood."""

    known: Mapping[str, Repair] = field(default_factory=dict)
    """Name of a habit → what a note says to write; it may be wrong, or the mistake itself."""
    refuted: frozenset[tuple[str, str]] = frozenset()
    """Names of habits, with the fragment of a repair that a note advises against."""
    warned: frozenset[str] = frozenset()
    """Habits that a note tells of, and no way out that is understood."""
    limited: frozenset[str] = frozenset()
    """Packages and classes that ran into a limit."""
    informing: int = 0
    """How many notes say something that is understood."""


def read_notes(text: str, habits: Sequence[Habit]) -> Notes:
    """Read recalled notes; of notes that disagree, the first counts."""
    known: dict[str, Repair] = {}
    refuted: set[tuple[str, str]] = set()
    warned: set[str] = set()
    limited: set[str] = set()
    informing = 0
    for entry in filter(str.strip, _ENTRY.split(text)):
        said = False
        for habit in habits:
            if holds(entry, habit.about):
                repair, against, fails = _reading(habit, entry)
                said |= repair is not None or bool(against) or fails
                if repair is not None:
                    known.setdefault(habit.name, repair)
                elif fails:
                    warned.add(habit.name)
                refuted.update((habit.name, each.text) for each in against)
        limits = _limited(entry)
        limited.update(limits)
        informing += said or bool(limits)
    refuted.difference_update((name, repair.text) for name, repair in known.items())
    unknown = frozenset(warned.difference(known))
    return Notes(known, frozenset(refuted), unknown, frozenset(limited), informing)


def _reading(habit: Habit, entry: str) -> tuple[Repair | None, list[Repair], bool]:
    """Return what an entry says to write, what not to, and whether it tells that the habit fails."""
    fix = _FIX.search(entry)
    error = _ERROR.search(entry) is not None
    repairs = (habit.repair, *habit.others, habit.mistake)
    advice = _marked(fix[1] if fix else _ERROR.sub("", entry), repairs)
    acts = {at: re.compile(rf"\bact{_LETTERS[at]}\b") for at in range(len(repairs))}
    stance = stances(advice, acts)
    against = [repair for at, repair in enumerate(repairs[:-1]) if stance.get(at) is False]
    fails = stance.get(len(repairs) - 1) is False
    insisted = _INSISTS.search(advice) is not None
    advised = (at for at, good in stance.items() if good and (at < len(repairs) - 1 or insisted))
    at = next(advised, None)
    if at is not None:
        return repairs[at], against, fails
    removal = fails and not habit.repair.words and habit.repair not in against
    mentioned = any(pattern.search(advice) for pattern in acts.values())
    shown = not mentioned and SHOWS.search(entry) and _named(entry, habit.repair)
    return habit.repair if removal or shown else None, against, fails or error or bool(against)


def _marked(text: str, repairs: Sequence[Repair]) -> str:
    """Return a text in plain words: `code` stands for code, `acta`, `actb` for the repairs."""

    def marked(found: re.Match[str]) -> str:
        code = found[0].rstrip(".,;:!?")
        exact = [at for at, each in enumerate(repairs) if each.shown == code.strip("`")]
        named = {at: length for at, each in enumerate(repairs) if (length := _named(code, each))}
        which = next(iter(exact), max(named, key=lambda at: named[at], default=None))
        return ("code" if which is None else f"act{_LETTERS[which]}") + found[0][len(code) :]

    plain = _CODE.sub(marked, text).lower()
    for at, each in enumerate(repairs):
        for word in each.words:
            if not word.startswith('"'):
                plain = word_pattern(word.casefold()).sub(f"act{_LETTERS[at]}", plain)
    said = " ".join(words for line in plain.splitlines() for _, words in parts_of(line, _no_goal))
    for pattern, reworded in _REWORDED:
        said = pattern.sub(reworded, said)
    return said


def _no_goal(_: str) -> bool:
    return False


def _named(code: str, repair: Repair) -> int:
    """Return how long the longest word is by which code names a repair; 0 where it does not."""
    words = [word.strip('"') for word in repair.words]
    return max((len(word) for word in words if holds(code, [word])), default=0)


def _limited(entry: str) -> set[str]:
    """Return the classes and packages that an entry tells ran into a limit."""
    if not _LIMIT.search(_NO_LIMIT.sub("", _EXCEEDED.sub("", entry))):
        return set()
    classes = set(_CLASS.findall(entry))
    named = {name for name in _LIBRARIES if re.search(rf"\b{name}\b", entry, re.IGNORECASE)}
    return classes | (named - {"sklearn"} if classes else named)
