"""Imports when they are needed: names that a package re-exports (PEP 562), optional dependencies."""

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from langgraft._core.errors import MissingExtraError


def lazy_exports(
    package: str, exports: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` for a package that re-exports names lazily.

    Args:
        package: `__name__` of the package.
        exports: Public name → dotted module that defines it.
    """

    def module_getattr(name: str) -> object:
        if name not in exports:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(importlib.import_module(exports[name]), name)

    def module_dir() -> list[str]:
        held = vars(sys.modules[package])
        own = (
            name
            for name, value in held.items()
            if name.startswith("__") or _belongs(value, package)
        )
        return sorted({*exports, *held.get("__all__", ()), *own})

    return module_getattr, module_dir


def _belongs(value: object, package: str) -> bool:
    """Say whether a package defines a value, or has it as a part: what it imports is not its own."""
    if isinstance(value, ModuleType):
        return value.__name__.startswith(f"{package}.")
    return getattr(value, "__module__", None) == package


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or name the extra that brings it.

    Args:
        module: Dotted name of the module.
        extra: The extra of langgraft that installs it.
        purpose: What needs it, as the subject of a sentence (`The BabyAI environment`).

    Raises:
        MissingExtraError: The module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        msg = (
            f"{purpose} needs `{error.name}`, which is not installed: "
            f"pip install 'langgraft[{extra}]'"
        )
        raise MissingExtraError(msg) from error
