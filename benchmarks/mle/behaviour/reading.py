"""Programs as Python reads them; text that is no program, or too much of one, is none."""

import ast
import io
import keyword
import tokenize
import warnings
from collections.abc import Iterator
from typing import Final

MOST_CHARACTERS: Final = 400_000
"""Programs longer than this are not read: no agent writes them, and reading takes memory."""

_UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)


def parsed(code: str) -> ast.Module | None:
    """Return the tree of a program; `None` for what does not parse or is too long or too deep."""
    if len(code) > MOST_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes and comparisons in code that is not ours
            return ast.parse(code)
    except _UNREADABLE:
        return None
