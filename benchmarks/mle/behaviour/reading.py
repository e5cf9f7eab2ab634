"""Programs as Python reads them; text that is no program, or too much of one, is none."""

import ast
import io
import keyword
import re
import tokenize
import warnings
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from langgraft._core.syntax import parse_program

MOST_CHARACTERS: Final = 400_000
"""Programs longer than this are not parsed: no agent writes them, and a tree takes memory."""

_UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
_WORDS = re.compile(r"\w+|[^\w\s]")
_KEPT: Final = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
_OPENING: Final = {
    getattr(tokenize, name)
    for name in ("FSTRING_START", "TSTRING_START")
    if hasattr(tokenize, name)
}
_CLOSING: Final = {
    getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name)
}


def parsed(code: str) -> ast.Module | None:
    """Return the tree of a program; `None` for what does not parse or is too long or too deep."""
    if len(code) > MOST_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes and comparisons in code that is not ours
            return parse_program(code)
    except _UNREADABLE:
        return None


def tokens(code: str) -> frozenset[str]:
    """Return the different names, operators, numbers and strings of a program.

    Comments, line ends and indentation are no tokens. A formatted string is one token on every
    Python, though from 3.12 on its parts come singly. Text that does not parse is split into words
    and signs, at most the first `MOST_CHARACTERS` of it.
    """
    if parsed(code) is not None:
        try:
            return frozenset(_tokens(code))
        except (tokenize.TokenError, *_UNREADABLE):
            pass
    return frozenset(_WORDS.findall(code[:MOST_CHARACTERS]))


def names(code: str) -> frozenset[str]:
    """Return the different names of a program."""
    return names_among(tokens(code))


def names_among(found: AbstractSet[str]) -> frozenset[str]:
    """Return the tokens that are names: those that could be one and are no keyword."""
    return frozenset(
        token for token in found if token.isidentifier() and not keyword.iskeyword(token)
    )


def _tokens(code: str) -> Iterator[str]:
    lines, depth, begun = list(io.StringIO(code)), 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in _OPENING:
            begun = begun if depth else token.start
            depth += 1
        elif token.type in _CLOSING:
            depth -= 1
            if not depth:
                yield _between(lines, begun, token.end)
        elif not depth and token.type in _KEPT:
            yield token.string


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the text from one place to another; lines count from 1, columns from 0."""
    rows = lines[start[0] - 1 : end[0]]
    rows[-1] = rows[-1][: end[1]]
    rows[0] = rows[0][start[1] :]
    return "".join(rows)
