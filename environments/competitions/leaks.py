"""Whether a program's text asks for data that a competition is made from.

A static check, for reports: it finds what is written plainly, and nothing that is put together
when the program runs. It is no defence. What protects answers is that no module with the source
data can be imported where agents' code runs (`Competition.source_modules`).
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from langgraft._core.untrusted import parse_program

_IMPORTERS: Final = {"__import__", "import_module", "find_spec", "require", "files", "run_module"}
"""Functions that are given a module's name as text."""
_DRAWING: Final = "make_"
"""Begins the names of scikit-learn's functions that draw data at random: no source has such data."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A line that asks for the source data."""

    line: int
    """From 1."""
    module: str
    """Which of the modules that carry source data."""
    text: str
    """What was found: the name imported, or the text that names it."""


def find_leaks(code: str, modules: Sequence[str]) -> tuple[Leak, ...]:
    """Return where a program's text names modules that carry source data.

    Found are imports in any form, `load_…` and `fetch_…` functions reached through the parent
    package, modules' names given as text to functions that import, and paths in texts. Functions
    named `make_…` (`sklearn.datasets.make_classification`) draw data at random and are none; a
    module that is imported whole is found, whatever is called of it then.

    Args:
        code: A Python program. One that does not parse is searched line by line, for any mention.
        modules: `Competition.source_modules`.
    """
    try:
        tree = parse_program(code)
    except (SyntaxError, ValueError, RecursionError):
        return tuple(_in_lines(code, modules))
    nodes = list(ast.walk(tree))
    # `a.b` within `a.b.c` is no name of its own.
    within = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    whole = [n for n in nodes if not isinstance(n, ast.Attribute) or id(n) not in within]
    found = {leak for node in whole for leak in _in_node(node, modules)}
    return tuple(sorted(found, key=lambda leak: (leak.line, leak.module, leak.text)))


def _in_node(node: ast.AST, modules: Sequence[str]) -> Iterator[Leak]:
    for name in _names(node):
        for module in modules:
            if _carries(name, module):
                yield Leak(getattr(node, "lineno", 1), module, name)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        for module in modules:
            if _is_path(node.value, module):
                yield Leak(node.lineno, module, node.value[:80])


def _carries(name: str, module: str) -> bool:
    """Whether a dotted name is a module with source data, or something in it that has data."""
    within = name.startswith(f"{module}.")
    return name == module or (within and not name.rpartition(".")[2].startswith(_DRAWING))


def _names(node: ast.AST) -> Iterator[str]:
    """Return dotted names that a node imports or reaches."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Attribute):
        yield _dotted(node)
    elif isinstance(node, ast.Call) and _called(node) in _IMPORTERS and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


def _dotted(node: ast.Attribute) -> str:
    parts, inner = [node.attr], node.value
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        parts.append(inner.id)
    return ".".join(reversed(parts))


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_path(text: str, module: str) -> bool:
    """Whether a text holds a module's name as folders: `…/sklearn/datasets/…`."""
    folders = module.replace(".", "/")
    return "/" in text and f"/{folders}/" in f"/{text.replace(chr(92), '/')}/"


def _in_lines(code: str, modules: Sequence[str]) -> Iterator[Leak]:
    for number, line in enumerate(code.splitlines(), 1):
        for module in modules:
            if module in line or ("from " + module.replace(".", " import ", 1)) in line:
                yield Leak(number, module, line.strip()[:80])
