"""The public names of the package, as griffe reads them: those in an `__all__`, and what their classes hold."""

import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe

REPOSITORY = Path(__file__).resolve().parents[2]


@cache
def modules() -> list[griffe.Module]:
    """Return the modules of langgraft that say what is public in them."""
    package = griffe.load("langgraft", search_paths=[REPOSITORY / "src"], resolve_aliases=True)
    assert isinstance(package, griffe.Module)
    return [module for module in _within(package) if module.exports is not None]


def exported(module: griffe.Module) -> Iterator[tuple[str, griffe.Object]]:
    """Yield what a module exports: its path there, and where it is defined."""
    for name in module.exports or ():
        found = module[str(name)]
        yield found.path, found.final_target if isinstance(found, griffe.Alias) else found


def undocumented(thing: griffe.Object) -> list[str]:
    """List what of a public name has no docstring: itself, or public attributes and methods of a class.

    An attribute is documented by a docstring of its own, by the class's where that names it in backticks or
    among its arguments, and by a base class: ours, or one of LangGraph's or LangChain's, whose it is.
    """
    missing = [] if thing.has_docstring else [thing.path]
    if not isinstance(thing, griffe.Class):
        return missing
    told: set[str] = set()
    for each in (thing, *thing.mro()):
        told |= _named(each.docstring.value if each.docstring else "")
        told |= {name for name, member in each.members.items() if member.has_docstring}
    mine = {
        name
        for name, member in thing.members.items()
        if not (name.startswith("_") or member.is_alias)
    }
    left = sorted(mine - told)
    return missing + [f"{thing.path}.{name}" for name in left if not _inherited(thing, name)]


def _within(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for each in module.modules.values():
        if isinstance(each, griffe.Module):
            yield from _within(each)


def _named(docstring: str) -> set[str]:
    return {
        *re.findall(r"`(\w+)`", docstring),
        *re.findall(r"^ {4}(\w+):", docstring, re.MULTILINE),
    }


def _inherited(thing: griffe.Class, name: str) -> bool:
    made = getattr(importlib.import_module(thing.module.path), thing.name)
    outside = (base for base in made.__mro__ if not base.__module__.startswith("langgraft"))
    return any(hasattr(base, name) for base in outside)
