"""Errors that prose tells of: a review says `it crashed with TypeError: fit() got …`."""

import re
from typing import Final

from langgraft.memory.providers.coding.tracebacks import Raised, is_exception_name

QUOTE: Final = r"['\"`\u2018\u2019]"
"""A quotation mark, straight or not."""

_CLASS = re.compile(r"(?<![\w.])(?:[a-z_]\w*\.)*[A-Z]\w+\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z(`'\"])|\n+")
_MESSAGE = re.compile(r"^`?\s*(?::|\(|[-\u2013\u2014]\s)\s*(?P<message>\S.*)$")
"""What follows a class where its message is given: after a colon or a dash, or in brackets."""
_CLAUSE_END = re.compile(r";\s|,\s+(?:so|and|which|because|causing|preventing)\b|[.!?]\s*$")
_SAYS: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (
            rf"(?:(?<![\w.])[\w.]+\(\) got an )?unexpected keyword argument {QUOTE}\w+{QUOTE}",
            "TypeError",
        ),
        (
            r"(?:(?<![\w.])[\w.]+\(\) )?missing \d+ required (?:positional|keyword-only) argument",
            "TypeError",
        ),
        (rf"{QUOTE}\w+{QUOTE} object is not (?:subscriptable|callable|iterable)", "TypeError"),
        (rf"{QUOTE}\w+{QUOTE} object has no attribute {QUOTE}\w+{QUOTE}", "AttributeError"),
        (rf"module {QUOTE}[\w.]+{QUOTE} has no attribute {QUOTE}\w+{QUOTE}", "AttributeError"),
        (rf"[Nn]o module named {QUOTE}?\w+(?:\.\w+)*{QUOTE}?", "ModuleNotFoundError"),
        (rf"cannot import name {QUOTE}\w+{QUOTE}", "ImportError"),
        (rf"name {QUOTE}\w+{QUOTE} is not defined", "NameError"),
        (r"could not convert string to float", "ValueError"),
        (r"invalid literal for int\(\)", "ValueError"),
        (r"(?:list|string|tuple) index out of range", "IndexError"),
        (r"[Nn]o such file or directory", "FileNotFoundError"),
        (r"division by zero", "ZeroDivisionError"),
    )
)
"""Messages that Python itself words, and the class it raises with each."""


def mentioned_error(prose: str) -> Raised | None:
    """Read the exception that a review tells of: `it crashed with TypeError: fit() got …`.

    The first class that is named counts. Its message is what the sentence gives as such; else
    what it says in words that are Python's own; else the sentence, which tells what was being
    done. Where no class is named, words that are Python's own tell it.
    """
    for sentence in _SENTENCE.split(prose):
        for match in _CLASS.finditer(sentence):
            if is_exception_name(match.group()):
                return Raised(match.group(), _message(sentence.strip(), sentence[match.end() :]))
    for pattern, name in _SAYS:
        if found := pattern.search(prose):
            return Raised(name, found.group())
    return None


def _message(sentence: str, after: str) -> str:
    given = _MESSAGE.match(after)
    if given is None:
        worded = (pattern.search(sentence) for pattern, _ in _SAYS)
        return next((found.group() for found in worded if found), sentence)
    message = given["message"]
    message = _to_the_closing_bracket(message)
    end = _CLAUSE_END.search(message)
    return (message[: end.start()] if end else message).strip().rstrip("`,;").strip()


def _to_the_closing_bracket(text: str) -> str:
    """Cut a text where a bracket is closed that was opened before it."""
    depth = 1
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[:place]
    return text
