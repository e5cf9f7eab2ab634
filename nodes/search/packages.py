"""Which packages a program is told it can import."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

_OTHER_NAMES: Final[Mapping[str, str]] = {"xgboost-cpu": "xgboost"}
"""Distributions whose package the field calls otherwise."""


@cache
def shipped_packages() -> tuple[str, ...]:
    """Return what the sandbox's own image is asked to hold, by name (AIDE tells names too).

    These are the distributions of the first group of its `requirements.txt`, not those they need.
    """
    place = resources.files("langgraft.environments.sandboxes.image")
    lines = place.joinpath("requirements.txt").read_text(encoding="utf-8").splitlines()
    asked, *_ = _groups(lines)
    return tuple(_OTHER_NAMES.get(name, name) for name in asked)


def _groups(lines: list[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for line in lines:
        name = line.partition("#")[0].partition("==")[0].strip()
        if name:
            groups[-1].append(name)
        elif not line.strip() and groups[-1]:
            groups.append([])
    return groups
