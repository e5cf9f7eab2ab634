"""Re-export names from submodules without importing them (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping


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
        return sorted({*exports, *vars(sys.modules[package])})

    return module_getattr, module_dir
