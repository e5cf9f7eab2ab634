"""How many different things programs use: the effective number of categories (§4.4)."""

import ast
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from langgraft.benchmarks.mle.behaviour.progress import is_valid
from langgraft.benchmarks.mle.behaviour.reading import parsed
from langgraft.nodes.code_names import is_package
from langgraft.nodes.search.journal import Journal

CountUses: TypeAlias = Callable[[str], Counter[str]]
"""Counts what a program uses, by category."""

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


def pooled_number(journal: Journal, count: CountUses) -> float:
    """Return the effective number over all valid programs of a run together; 0 without any."""
    total: Counter[str] = Counter()
    for node in journal.nodes:
        if is_valid(node):
            total.update(count(node.code))
    return effective_number(total)


def number_per_program(journal: Journal, count: CountUses) -> float:
    """Return the mean effective number of a run's valid programs, each by itself; 0 without any."""
    found = [effective_number(count(node.code)) for node in journal.nodes if is_valid(node)]
    return math.fsum(found) / len(found) if found else 0.0


def package_steps(journal: Journal, count: CountUses = packages) -> Counter[str]:
    """Count, for each package, the valid programs that import it (§4.6).

    The paper counts "on successful steps" without saying what. Its own figures tell: sklearn has
    289 and 314 in dog-breed, which is the number of successful steps of 480 at bug rates of
    39.8 % and 34.6 %. A step counts once.
    """
    total: Counter[str] = Counter()
    for node in journal.nodes:
        if is_valid(node):
            total.update(count(node.code))
    return total
