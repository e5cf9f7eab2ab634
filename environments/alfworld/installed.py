"""What is installed of ALFWorld, whether it will do, and what its package knows.

It is imported without a trace: alfworld makes a folder and sets a variable.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final

from langgraft._core.errors import MissingExtraError, SettingsError
from langgraft._core.lazy import require
from langgraft.environments.alfworld.games import FAMILIES

ALFWORLD: Final = "0.4"
"""The series of alfworld whose rules and grammar are known; others are refused."""
TEXTWORLD: Final = "1.7.0"
"""The TextWorld that the fast engine takes the place of; with others it stands back."""

# What the fast engine does in another way, and the planner's interface: digests of the modules.
_CODE: Final = {
    "textworld.envs.pddl.pddl": "3795f5fb7471c7a4",
    "textworld.envs.pddl.logic": "7c5ea3b0ddc21dc1",
    "textworld.envs.pddl.textgen": "f947c1a0add69fe3",
    "textworld.logic": "16ec9d635ee1a859",
    "fast_downward.interface": "c5c23ec7d6d8acd8",
}
_DATA: Final = "ALFWORLD_DATA"
_IMPORTING = threading.RLock()


@dataclass(frozen=True, slots=True)
class Installed:
    """The packages' parts that the engine is made of, and the versions at work."""

    alfworld: str
    textworld: str
    doubt: str
    """Why the fast engine may not do as this TextWorld does; empty where it is known to."""
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
    modules = {name: import_part(name) for name in _CODE}
    textworld = version("textworld")
    return Installed(
        alfworld=alfworld,
        textworld=textworld,
        doubt=_doubt(textworld, modules),
        downward=import_part("fast_downward"),
        interface=modules["fast_downward.interface"],
        core=import_part("textworld"),
        pddl=modules["textworld.envs.pddl.pddl"],
        logic=modules["textworld.envs.pddl.logic"],
        text=modules["textworld.envs.pddl.textgen"],
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
            return _imported(module)
        except MissingExtraError as error:
            missing = error.__cause__
            name = missing.name if isinstance(missing, ModuleNotFoundError) else module
            raise MissingExtraError(_missing(str(name))) from error


def _missing(name: str) -> str:
    return (
        f"ALFWorld's engine needs `{name}`, which is not installed: pip install"
        " 'langgraft[alfworld]' (a part of it is built from source: g++ and make are needed)"
    )


def _doubt(textworld: str, modules: Mapping[str, ModuleType]) -> str:
    if textworld != TEXTWORLD:
        return f"textworld {textworld} is installed, not {TEXTWORLD}"
    for name, known in _CODE.items():
        code = Path(str(modules[name].__file__)).read_bytes()
        if sha256(code).hexdigest()[: len(known)] != known:
            return f"`{name}` is not the code that belongs to textworld {TEXTWORLD}"
    return ""


def _imported(module: str) -> ModuleType:
    try:
        return require(module, extra="alfworld", purpose="ALFWorld's engine")
    except OSError:  # where alfworld would make its folder, it may not
        with TemporaryDirectory() as folder:
            os.environ[_DATA] = folder
            return require(module, extra="alfworld", purpose="ALFWorld's engine")


@contextmanager
def _no_trace() -> Iterator[None]:
    """Undo what importing `alfworld.info` does: it makes a folder, and sets a variable."""
    given = os.environ.get(_DATA)
    made = _absent(Path.home() / ".cache" / "alfworld" if given is None else Path(given))
    try:
        yield
    finally:
        os.environ.pop(_DATA, None)
        if given is not None:
            os.environ[_DATA] = given
        for folder in made:
            with suppress(OSError):  # not made after all, or in use by now
                folder.rmdir()


def _absent(folder: Path) -> list[Path]:
    """List the folder and those above it that are not there, innermost first."""
    return [each for each in (folder, *folder.parents) if not each.exists()]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a task type asks for, with the object, receptacle and lamp left open."""

    pddl: str
    """The goal in PDDL; its text also closes the problem."""
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Package:
    """The parts of an installed `alfworld` that games are made of."""

    domain: str
    grammar: str
    holds: Mapping[str, frozenset[str]]
    """Kind of receptacle → the kinds of things that may lie in it."""
    able: Mapping[str, frozenset[str]]
    """`Cleanable`, `Heatable`, `Coolable`, `Toggleable` → the kinds of things that are."""
    openable: frozenset[str]
    vessels: frozenset[str]
    """Kinds of things that can hold others, such as bowls."""
    goals: Mapping[str, Goal]
    """Task family → its goal."""


@cache
def installed_package() -> Package:
    """Read the installed package.

    Raises:
        MissingExtraError: alfworld is not installed.
        SettingsError: It is, in a version that this was not written for.
    """
    version = alfworld_version()
    constants = import_part("alfworld.gen.constants")
    folder = Path(constants.__file__).parents[1] / "data"
    try:
        goals = import_part("alfworld.gen.goal_library").gdict
        return Package(
            domain=_text(folder / "alfred.pddl"),
            grammar=_text(folder / "alfred.twl2"),
            holds={
                kind: frozenset(held) for kind, held in constants.VAL_RECEPTACLE_OBJECTS.items()
            },
            able={able: frozenset(kinds) for able, kinds in constants.VAL_ACTION_OBJECTS.items()},
            openable=frozenset(constants.OPENABLE_CLASS_LIST),
            vessels=frozenset(constants.MOVABLE_RECEPTACLES),
            goals={family: _goal(goals[task_type]) for family, task_type in FAMILIES.items()},
        )
    except (OSError, AttributeError, KeyError) as error:
        raise SettingsError(
            f"alfworld {version} is installed, which lacks what games are made of"
            f" ({type(error).__name__}: {error}): pip install 'langgraft[alfworld]'"
        ) from error


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def _goal(entry: Mapping[str, Any]) -> Goal:
    # The library writes `#` for the hyphen of a typed variable.
    return Goal(entry["pddl"].replace("#", "-"), tuple(entry["templates"]))
