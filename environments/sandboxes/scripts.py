"""The scripts that run inside a place, each joined from its files to one text."""

from functools import cache
from importlib.resources import files

_INSIDE = "langgraft.environments.sandboxes.inside"

_DROPPED = (
    # Their names are in the joined script.
    f"from {_INSIDE}.",
    # It has this one at its top.
    "from __future__ import ",
    # Names for annotations, which nobody looks up there: 10 ms of every run, most for `typing`.
    "from typing import ",
    "from collections.abc import ",
    "from types import ",
)

_SUPERVISOR = (
    "frames",
    "host_channel",
    "relay",
    "output",
    "kernel_child",
    "clearing",
    "sealing",
    "processes",
    "watching",
    "putting",
    "collecting",
    "workspace",
    "reports",
    "starting",
    "running",
    "kernel_manager",
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
        parts.append(_without_imports(source))
    return "\n\n".join(parts) + "\n"


def _without_imports(source: str) -> str:
    """Drop the imports that the joined script has no use for."""
    kept: list[str] = []
    dropping = False
    for line in source.splitlines():
        dropped = line.startswith(_DROPPED)
        if not dropped and not dropping:
            kept.append(line)
        # An import over several lines ends with its parenthesis.
        dropping = (dropped and line.endswith("(")) or (dropping and line != ")")
    return "\n".join(kept)
