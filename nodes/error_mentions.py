"""Errors that prose tells of: a review says `it crashed with TypeError: fit() got …`."""

import re
from typing import Final

from langgraft.memory.providers.coding_tracebacks import Raised, is_exception_name

QUOTE: Final = r"['\"`\u2018\u2019]"
"""A quotation mark, straight or not."""

_CLASS = re.compile(r"\b(?:[a-z_]\w*\.)*[A-Z]\w+\b")
_SENTENCE_END = re.compile(r"[.!?;](?=\s+[A-Z(]|\s*$)|\n|,\s+(?:so|and|which|because)\b")
_LEAD = re.compile(r"^[\s:,()\[\]\u2013\u2014`'\"-]+(?=\S)")
_SAYS: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (rf"(?:[\w.]+\(\) got an )?unexpected keyword argument {QUOTE}\w+{QUOTE}", "TypeError"),
        (r"(?:[\w.]+\(\) )?missing \d+ required (?:positional|keyword-only) argument", "TypeError"),
        (rf"{QUOTE}\w+{QUOTE} object is not (?:subscriptable|callable|iterable)", "TypeError"),
        (rf"{QUOTE}\w+{QUOTE} object has no attribute {QUOTE}\w+{QUOTE}", "AttributeError"),
        (rf"module {QUOTE}[\w.]+{QUOTE} has no attribute {QUOTE}\w+{QUOTE}", "AttributeError"),
        (rf"[Nn]o module named {QUOTE}?[\w.]+", "ModuleNotFoundError"),
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

    The first class that is named counts, and what the sentence goes on to say is its message.
    Where no class is named, a message that only Python itself words tells it.
    """
    for match in _CLASS.finditer(prose):
        if is_exception_name(match.group()):
            return Raised(match.group(), _rest_of_sentence(prose[match.end() :]))
    for pattern, name in _SAYS:
        if found := pattern.search(prose):
            return Raised(name, found.group())
    return None


def _rest_of_sentence(text: str) -> str:
    lead = _LEAD.match(text)
    rest = text[lead.end() :] if lead else text
    end = _SENTENCE_END.search(rest)
    return (rest[: end.start()] if end else rest).strip().rstrip(".,;)`")
