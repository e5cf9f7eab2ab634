"""Which package a name in a program comes from, read from the program's own imports."""

import ast
import sys
import warnings
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from langgraft._core.syntax import parse_program


@dataclass(frozen=True, slots=True)
class CodeNames:
    """The names of a program, and the packages they stand for."""

    modules: Mapping[str, str] = field(default_factory=dict)
    """Name in the program → package: `lgb` → `lightgbm`."""
    symbols: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    """Function, class, method or attribute → the packages it is taken from."""
    arguments: Mapping[str, AbstractSet[tuple[str, str]]] = field(default_factory=dict)
    """Keyword argument → the callables it is passed to, each with its package."""
    own: AbstractSet[str] = frozenset()
    """Functions and classes that the program defines itself."""

    @property
    def packages(self) -> frozenset[str]:
        """All packages that are not Python's own."""
        return frozenset(filter(is_package, self.modules.values()))

    def package_of(self, symbol: str) -> str | None:
        """Return the one package that a name is taken from, if there is exactly one."""
        found = self.symbols.get(symbol, frozenset()) | (
            {self.modules[symbol]} if symbol in self.modules else frozenset()
        )
        return next(iter(found)) if len(found) == 1 and symbol not in self.own else None

    def packages_in(self, line: str) -> frozenset[str]:
        """Return the packages that a line of the program names."""
        try:
            tree = parse_program(line.strip().rstrip(":"))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return frozenset()
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        found = {self.modules[name] for name in names if name in self.modules}
        return frozenset(filter(is_package, found))


def is_package(name: str) -> bool:
    """Say whether a module's first name is that of a package beyond Python's own library."""
    return bool(name) and name not in sys.stdlib_module_names and not name.startswith("__")


def code_names(code: str) -> CodeNames:
    """Read the names of a program; one that does not compile has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes and comparisons in code that is not ours
            tree = parse_program(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return CodeNames()
    modules, symbols = _imports(tree)
    own = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    known = modules | _made(tree, modules)
    arguments: dict[str, set[tuple[str, str]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (package := _package(node, known)):
            symbols.setdefault(node.attr, set()).add(package)
        elif isinstance(node, ast.Call) and (package := _package(node.func, known)):
            for keyword in node.keywords:
                if keyword.arg:
                    called = (_last_name(node.func), package)
                    arguments.setdefault(keyword.arg, set()).add(called)
    return CodeNames(modules, symbols, arguments, own)


def _imports(tree: ast.AST) -> tuple[dict[str, str], dict[str, set[str]]]:
    modules: dict[str, str] = {}
    symbols: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                modules[alias.asname or top] = top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            top = node.module.partition(".")[0]
            for alias in node.names:
                modules[alias.asname or alias.name] = top
                symbols.setdefault(alias.name, set()).add(top)
    return modules, symbols


def _made(tree: ast.AST, modules: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that hold what one package's callables gave: `model` in
    `model = lgb.LGBMClassifier()`.
    """  # noqa: D205
    held: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value = node.value
            called = isinstance(value, ast.Call) and _package(value.func, modules)
            for target in node.targets:
                for name in _names(target):
                    held.setdefault(name, set()).add(called or "")
    return {
        name: next(iter(packages))
        for name, packages in held.items()
        if name not in modules and len(packages) == 1 and "" not in packages
    }


def _names(target: ast.AST) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id


def _package(node: ast.AST, modules: Mapping[str, str]) -> str | None:
    """Return the package at the root of `a.b.c` or `a.b(…).c`."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return modules.get(node.id) if isinstance(node, ast.Name) else None


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
