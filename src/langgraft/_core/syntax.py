"""Python's parser, one program at a time."""

import ast
from threading import Lock

_PARSING = Lock()
"""CPython 3.11 counts the depth of all parsers of a process in one place (gh-106905): where threads
parse at once, one of them raises `SystemError` about nothing in its program."""


def parse_program(code: str) -> ast.Module:
    """Parse a program, as `ast.parse` does, also where threads do so at once.

    Raises:
        SyntaxError: It is no Python.
        ValueError: It holds a NUL.
        RecursionError: It is nested too deeply; on some versions `MemoryError`.
    """
    with _PARSING:
        return ast.parse(code)
