"""Digests of source code, so that changed code does not go on with another's run."""

import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

SOURCES = (".py", ".md")
"""Endings of the files that count: code, and the prompts and rules that ship with it."""


def source_digests(modules: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each module's or package's source files.

    Args:
        modules: Dotted names. Of a package all files below it count, each with its place.
    """
    return {module: _digest(module) for module in modules}


def _digest(module: str) -> str:
    state = hashlib.sha256()
    for name, path in _files(module):
        content = path.read_bytes()
        state.update(f"{name}\0{len(content)}\0".encode())
        state.update(content)
    return state.hexdigest()


def _files(module: str) -> Iterator[tuple[str, Path]]:
    found = importlib.util.find_spec(module)
    if found is None:
        msg = f"no module {module!r}"
        raise ModuleNotFoundError(msg, name=module)
    for folder in found.submodule_search_locations or ():
        root = Path(folder)
        for path in sorted(root.rglob("*")):
            if path.suffix in SOURCES:
                yield path.relative_to(root).as_posix(), path
    if found.submodule_search_locations is None and found.origin is not None:
        yield Path(found.origin).name, Path(found.origin)
