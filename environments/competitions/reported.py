"""The validation metric that a program says it reached, read from what it printed.

It is the program's own word: good for choosing what to try next, never a score. Scores come
from `grading` alone.

How it is read:

1. The last line counts that names the competition's metric and a number; where none does, the
   last one that names a score or some metric and a number; and then the last `Validation: 0.91`.
   Standard output goes before standard error.
2. A line that names training and no validation does not count. In a line that names a
   validation, what follows it goes first: `train-auc:0.99 valid-auc:0.91` reports 0.91.
3. Of the numbers after the name, those in brackets come last, and those right behind `:`, `=`,
   `is` or `of` first. A number that is a part of a word (`5-fold`, `f1`, `top-1`) is none.
4. `1,234.5` has a thousands separator, a percentage counts as hundredths, `1e-3` is what it
   is. `0,85` might be two numbers or one: it is not read. `nan` and `inf` are no metric.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from langgraft.environments.sandboxes.programs import ExecutionResult


@dataclass(frozen=True, slots=True)
class Reported:
    """What a program says of its own validation."""

    value: float | None
    reason: str
    """Why there is no value; empty where there is one."""
    line: str
    """The line it was read from; empty where none names a metric."""


_VALIDATION: Final = re.compile(
    r"(?<![a-z])(?:validation|valid|val|hold[\s_-]?out|cv|cross[\s_-]?val\w*|oof|out[\s_-]of[\s_-]fold)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_TRAINING: Final = re.compile(r"(?<![a-z])train(?:ing)?(?![a-z])", re.IGNORECASE)
_GENERAL: Final = re.compile(
    r"(?<![a-z])(?:metric|score|auc|roc|accuracy|acc|log[\s_-]?loss|loss|rmsle|rmse|mse|mae|mape"
    r"|f1|kappa|qwk|r2|precision|recall)(?![a-z])",
    re.IGNORECASE,
)
_PLAIN: Final = re.compile(
    rf"{_VALIDATION.pattern}(?:[\s_-](?:error|result|performance))?(?=\s*(?:[:=]|is\b))",
    re.IGNORECASE,
)

_NUMBER: Final = re.compile(
    r"""
    (?<![\w.,@+-])                      # no part of a word, of a list or of another number
    (?P<text>
        [+-]?
        (?: nan | inf(?:inity)?
          | (?: \d{1,3}+(?:,\d{3})++ | \d++ ) (?: \.\d*+ )?+ (?: e[+-]?\d++ )?+
          | \.\d++ (?: e[+-]?\d++ )?+
        )
    )
    \s?(?P<percent>%)?
    (?! ,?\d | [\w.]\w | \w | -[a-z] )  # `5-fold`, `1.2.3` and `0,85` are no numbers
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SAID: Final = re.compile(r"(?:[:=]|\bis|\bof)\s*$", re.IGNORECASE)

_LONGEST: Final = 2000
"""Characters of a line that are read: a metric is told in short."""

_ALIASES: Final = {
    "auc": ("auc",),
    "roc": ("auc",),
    "logloss": ("log loss", "logloss"),
    "kappa": ("kappa", "qwk"),
    "accuracy": ("accuracy", "acc"),
    "rmsle": ("rmsle",),
    "rmse": ("rmse", "root mean squared error"),
    "rootmeansquarederror": ("rmse",),
    "mae": ("mae", "mean absolute error"),
    "f1": ("f1",),
}
"""How programs call what a grader calls otherwise, by what its name contains."""


def reported_metric(result: ExecutionResult, metric: str) -> Reported:
    """Return the validation metric that a program reports.

    Args:
        result: What came of the program.
        metric: The competition's name of it, such as `auc-roc`.
    """
    for names in (_naming(metric), _GENERAL, _PLAIN):
        for printed in (result.stdout, result.stderr):
            for line in reversed(printed.splitlines()):
                found = _read(line.strip()[:_LONGEST], names)
                if found is not None:
                    return found
    return Reported(None, "no line of its output names a metric and a number", "")


def _read(line: str, names: re.Pattern[str]) -> Reported | None:
    """Read one line, or return `None` where it does not count."""
    name = names.search(line)
    if name is None:
        return None
    validation = _VALIDATION.search(line)
    starts = [name.end()]
    if validation is not None:
        named_after = names.search(line, validation.end())
        starts = [validation.end(), *starts]
        starts = starts if named_after is None else [named_after.end(), *starts]
    elif _TRAINING.search(line):
        return None
    for start in starts:
        number = _number(line, start)
        if number is not None:
            return _value(number, line)
    return None


def _number(line: str, start: int) -> re.Match[str] | None:
    def rank(number: re.Match[str]) -> tuple[bool, bool]:
        before = line[start : number.start()]
        return before.count("(") > before.count(")"), _SAID.search(before) is None

    return min(_NUMBER.finditer(line, start), key=rank, default=None)


def _value(number: re.Match[str], line: str) -> Reported:
    text = number["text"]
    value = float(text.replace(",", "")) / (100 if number["percent"] else 1)
    if not math.isfinite(value):
        return Reported(None, f"the program reports {text}, which is no number", line)
    return Reported(value, "", line)


@lru_cache(maxsize=256)
def _naming(metric: str) -> re.Pattern[str]:
    """Return what finds a metric by its own name or as programs call it."""
    joined = re.sub(r"[^a-z0-9]+", "", metric.lower())
    names = {metric, *(name for key, known in _ALIASES.items() if key in joined for name in known)}
    words = (re.findall(r"[a-z0-9]+", name.lower()) for name in names)
    spelled = sorted((r"[\s_-]?".join(parts) for parts in words if parts), key=len, reverse=True)
    spelled = spelled or [r"(?!)"]
    return re.compile(rf"(?<![a-z])(?:{'|'.join(spelled)})(?![a-z])", re.IGNORECASE)
