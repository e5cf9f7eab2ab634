"""The scripts that run inside a place, each joined from its files to one text."""

import ast
from functools import cache
from importlib.resources import files

_INSIDE = "langgraft.environments.sandboxes.inside"

_SUPERVISOR = (
    "frames",
    "talking",
    "relay",
    "output",
    "kernel_child",
    "clearing",
    "sealing",
    "processes",
    "putting",
    "collecting",
    "removing",
    "supervisor",
)


def supervisor_command(python: str = "python3") -> list[str]:
    """Return the argument vector of a supervisor: what a container runs as its first process.

    Args:
        python: An interpreter inside the place, 3.8 or later. Programs run in the same.
    """
    return [python, "-I", "-S", "-u", "-c", supervisor_script()]


@cache
def supervisor_script() -> str:
    """Return the supervisor."""
    return _joined(*_SUPERVISOR)


@cache
def launcher_script() -> str:
    """Return what makes a file the main module of an interpreter."""
    return _joined("exceptions", "launcher")


@cache
def kernel_script() -> str:
    """Return the interpreter that runs cells."""
    return _joined("exceptions", "kernel")


def _joined(*names: str) -> str:
    parts = ["from __future__ import annotations"]
    for name in names:
        source = (files(_INSIDE) / f"{name}.py").read_text(encoding="utf-8")
        parts.append(_without_own_imports(source))
    return "\n\n".join(parts) + "\n"


def _without_own_imports(source: str) -> str:
    """Drop imports of ours, whose names the joined script has, and what must stand at the top."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_INSIDE)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if ours or future:
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = [""] * (last - first)
    return "\n".join(lines)
