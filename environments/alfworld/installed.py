"""What is installed of ALFWorld, whether it will do, and how it is imported without a trace."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from langgraft._core.errors import MissingExtraError, SettingsError
from langgraft._core.extras import require

ALFWORLD: Final = "0.4"
"""The series of alfworld whose rules and grammar are known."""

_DATA: Final = "ALFWORLD_DATA"
_IMPORTING = threading.RLock()


@dataclass(frozen=True, slots=True)
class Installed:
    """The packages' parts that the engine is made of, and the versions at work."""

    alfworld: str
    textworld: str
    downward: Any
    """`fast_downward`: PDDL's translator, and the library that keeps a game's state."""
    interface: Any
    """`fast_downward.interface`: where the translator takes `sys.stdout`."""
    core: Any
    """`textworld`."""
    pddl: Any
    """`textworld.envs.pddl.pddl`: the environment."""
    logic: Any
    """`textworld.envs.pddl.logic`: a game's rules and state."""
    text: Any
    """`textworld.envs.pddl.textgen`: the grammar."""
    alfred: Any
    """`alfworld.agents.environment.alfred_tw_env`: ALFWorld's wrappers."""


@cache
def installed() -> Installed:
    """Import what the engine needs.

    Raises:
        MissingExtraError: A package is missing.
        SettingsError: alfworld's version has other rules or another interface.
    """
    alfworld = alfworld_version()
    return Installed(
        alfworld=alfworld,
        textworld=version("textworld"),
        downward=import_part("fast_downward"),
        interface=import_part("fast_downward.interface"),
        core=import_part("textworld"),
        pddl=import_part("textworld.envs.pddl.pddl"),
        logic=import_part("textworld.envs.pddl.logic"),
        text=import_part("textworld.envs.pddl.textgen"),
        alfred=import_part("alfworld.agents.environment.alfred_tw_env"),
    )


def alfworld_version() -> str:
    """Return the version of alfworld, without importing it.

    Raises:
        MissingExtraError: It is not installed.
        SettingsError: It is not of the series this was made for.
    """
    try:
        found = version("alfworld")
    except PackageNotFoundError as error:
        raise MissingExtraError(_missing("alfworld")) from error
    if found.split(".")[:2] != ALFWORLD.split("."):
        msg = (
            f"alfworld {found} is installed, whose rules or interface may be others than those of"
            f" alfworld {ALFWORLD}: pip install 'langgraft[alfworld]'"
        )
        raise SettingsError(msg)
    return found


def import_part(module: str) -> Any:
    """Import a module of alfworld, TextWorld or the planner; alfworld leaves nothing behind.

    Raises:
        MissingExtraError: It is not installed.
    """
    with _IMPORTING, _no_trace():
        try:
            return require(module, extra="alfworld", purpose="ALFWorld's engine")
        except MissingExtraError as error:
            missing = error.__cause__
            name = missing.name if isinstance(missing, ModuleNotFoundError) else module
            raise MissingExtraError(_missing(str(name))) from error


def _missing(name: str) -> str:
    return (
        f"ALFWorld's engine needs `{name}`, which is not installed: pip install"
        " 'langgraft[alfworld]' (a part of it is built from source: g++ and make are needed)"
    )


@contextmanager
def _no_trace() -> Iterator[None]:
    """Undo what importing `alfworld.info` does: a folder in `~/.cache`, a variable set."""
    given = os.environ.get(_DATA)
    made = [] if given is not None else _absent(Path.home() / ".cache" / "alfworld")
    try:
        yield
    finally:
        if given is None:
            os.environ.pop(_DATA, None)
        for folder in made:
            with suppress(OSError):  # not made after all, or in use by now
                folder.rmdir()


def _absent(folder: Path) -> list[Path]:
    """List the folder and those above it that are not there, innermost first."""
    return [each for each in (folder, *folder.parents) if not each.exists()]
