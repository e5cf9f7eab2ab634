"""Digests of the code that results rest on, so that changed code does not go on with another's run."""

import ast
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

HARNESS: Final = "langgraft.benchmarks.harness"
"""How runs are carried out decides no result; a log has a version of its own."""

_PACKAGE: Final = re.compile(r'"(\w+(?:\.\w+)+)"')


def source_digests(modules: Iterable[str], *, apart_from: Sequence[str] = ()) -> dict[str, str]:
    """Return the SHA-256 of the files that modules use, of each package one; see `source_files`."""
    states: defaultdict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
    for (package, name), content in sorted(source_files(modules, apart_from=apart_from).items()):
        states[package].update(f"{name}\0{len(content)}\0".encode() + content)
    return {package: state.hexdigest() for package, state in states.items()}


def source_files(
    modules: Iterable[str], *, apart_from: Sequence[str] = ()
) -> dict[tuple[str, str], bytes]:
    """Return what the files hold that modules use, by package and name; nothing is imported.

    Imports within the same distribution are followed, wherever in a file they stand, and a name that
    a package exports lazily to the module it is from. Imports for type checkers do not count. A module
    that names a package in a string may read its files: all its modules and texts (`.md`) count.

    Args:
        modules: Dotted names of where to begin.
        apart_from: Modules and packages that decide no result.

    Raises:
        ModuleNotFoundError: There is no such module.
    """
    barred = tuple(f"{each}." for each in (HARNESS, *apart_from))
    found: dict[tuple[str, str], bytes] = {}
    todo = list(modules)
    while todo:
        module = todo.pop()
        path = _path(module)
        is_package = path.name == "__init__.py"
        place = module if is_package else module.rpartition(".")[0], path.name
        if place in found or f"{module}.".startswith(barred):
            continue
        text = found[place] = path.read_bytes()
        ours = f"{module.partition('.')[0]}."
        todo += _imports(text, ours)
        # What an `__init__` names in strings are the modules of its lazy exports.
        for name in () if is_package else set(_PACKAGE.findall(text.decode())):
            if name.startswith(ours) and (folder := _folder(name)).is_dir():
                todo += (f"{name}.{each.stem}" for each in folder.glob("[!_]*.py"))
                found |= {(name, each.name): each.read_bytes() for each in folder.glob("*.md")}
    return found


def _folder(package: str) -> Path:
    top, *below = package.split(".")
    found = find_spec(top)
    if found is None or found.origin is None:
        msg = f"no module {package!r}"
        raise ModuleNotFoundError(msg, name=package)
    return Path(found.origin).parent.joinpath(*below)


def _path(module: str) -> Path:
    folder = _folder(module)
    for path in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")):
        if path.is_file():
            return path
    msg = f"no module {module!r}"
    raise ModuleNotFoundError(msg, name=module)


def _imports(text: bytes, ours: str) -> Iterator[str]:
    """Name the modules that a file imports, of those whose names begin with `ours`."""
    for each in _statements(ast.parse(text).body):
        if isinstance(each, ast.Import):
            yield from (name.name for name in each.names if name.name.startswith(ours))
        elif isinstance(each, ast.ImportFrom) and f"{each.module}.".startswith(ours):
            yield from (_home(str(each.module), name.name) for name in each.names)


def _home(module: str, name: str) -> str:
    """Return the module that a name is from: a submodule, where a package's lazy export leads, or it."""
    path = _path(module)
    if path.name != "__init__.py":
        return module
    if (path.parent / name).is_dir() or (path.parent / f"{name}.py").is_file():
        return f"{module}.{name}"
    exported = _lazy_exports(path.read_bytes())
    return _home(exported[name], name) if name in exported else module


@cache
def _lazy_exports(text: bytes) -> dict[str, str]:
    """Return the module of each name that a package exports lazily, as type checkers are told it."""
    blocks = filter(_is_for_types, ast.parse(text).body)
    imports = (each for block in blocks for each in ast.walk(block))
    return {
        name.name: str(each.module)
        for each in imports
        if isinstance(each, ast.ImportFrom)
        for name in each.names
    }


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Return all statements, but those for type checkers."""
    for each in body:
        yield each
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            if part != "body" or not _is_for_types(each):
                yield from _statements(getattr(each, part, ()))


def _is_for_types(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
