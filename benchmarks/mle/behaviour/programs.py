"""What programs are made of: tokens, packages and operators, and how many different ones (§4.4).

Programs are taken as Python reads them. Text that is no program, or too much of one, uses nothing;
its tokens are words and signs.
"""

import ast
import io
import keyword
import math
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias

from langgraft._core.untrusted import parse_program
from langgraft.nodes.tracebacks import is_package

CountUses: TypeAlias = Callable[[str], Counter[str]]
"""Counts what a program uses, by category."""

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
_OPERATOR_KINDS: Final = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)

MOST_OPERATORS: Final = sum(len(kind.__subclasses__()) for kind in _OPERATOR_KINDS)
"""Operators that Python has: no effective number of operators is larger."""


def effective_number(counts: Mapping[Any, int]) -> float:
    """Return exp(H) of some counts, H their entropy in nats; 0 where nothing was counted.

    It is the number of equally frequent categories with the same entropy, at least 1. The paper's
    Table 3 has means below 1, which only zeros for empty sets explain; so an empty set is 0.
    """
    total = sum(counts.values())
    if not total:
        return 0.0
    shares = [count / total for count in counts.values() if count]
    return math.exp(-math.fsum(share * math.log(share) for share in shares))


def package_imports(code: str) -> Counter[str]:
    """Count import statements by the package they import from, wherever in the program they stand.

    A package is the first name of a module. A statement that takes several names from one package
    counts once for it. Python's own library is no package, and neither are relative imports.
    """
    tree = parsed(code)
    return Counter(name for found in _imported(tree) for name in found) if tree else Counter()


def packages(code: str) -> Counter[str]:
    """Count each package of a program once, however many statements import from it."""
    return Counter(dict.fromkeys(package_imports(code), 1))


def _imported(tree: ast.AST) -> Iterator[frozenset[str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        else:
            continue
        yield frozenset(filter(is_package, (module.partition(".")[0] for module in modules)))


def operators(code: str) -> Counter[str]:
    """Count the operators of a program by class: such as `Add`, `Not` or `Lt`.

    The paper's "AST-level operators" could be types of nodes or operator tokens. Tokens
    (`ast.operator`, `ast.unaryop`, `ast.boolop`, `ast.cmpop`) are what its 8.45 fits, pooled over
    a run, and the only reading under which a single short program averages below 1. A chained
    comparison counts each of its operators, `a and b and c` one.
    """
    tree = parsed(code)
    nodes = ast.walk(tree) if tree else iter(())
    return Counter(type(node).__name__ for node in nodes if isinstance(node, _OPERATOR_KINDS))


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


def names_among(found: AbstractSet[str]) -> frozenset[str]:
    """Return the tokens that are names: those that could be one and are no keyword."""
    return frozenset(
        token for token in found if token.isidentifier() and not keyword.iskeyword(token)
    )


def jaccard_distance(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    """Return 1 - |A and B| / |A or B|; 0 for two empty sets."""
    union = len(one | other)
    return 1 - len(one & other) / union if union else 0.0


# How a program is read ----------------------------------------------------------------------


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
