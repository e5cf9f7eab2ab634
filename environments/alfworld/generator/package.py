"""What the installed `alfworld` package knows: rules, words, what may lie where, and goals.

The files are read without importing the package, which on import makes a folder in the user's
cache and sets `ALFWORLD_DATA`.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from langgraft._core.errors import InfrastructureError, MissingExtraError
from langgraft.environments.alfworld.games import FAMILIES


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
        InfrastructureError: It is, and is not the package this was written for.
    """
    folder = _folder()
    try:
        constants = _load(folder / "gen" / "constants.py")
        goals = _load(folder / "gen" / "goal_library.py").gdict
        return Package(
            domain=_text(folder / "data" / "alfred.pddl"),
            grammar=_text(folder / "data" / "alfred.twl2"),
            holds={
                kind: frozenset(held) for kind, held in constants.VAL_RECEPTACLE_OBJECTS.items()
            },
            able={able: frozenset(kinds) for able, kinds in constants.VAL_ACTION_OBJECTS.items()},
            openable=frozenset(constants.OPENABLE_CLASS_LIST),
            vessels=frozenset(constants.MOVABLE_RECEPTACLES),
            goals={family: _goal(goals[task_type]) for family, task_type in FAMILIES.items()},
        )
    except (OSError, AttributeError, KeyError) as error:
        raise InfrastructureError(
            f"the installed alfworld ({folder}) lacks what games are made of"
            f" ({type(error).__name__}: {error}): install the version that langgraft[alfworld] names"
        ) from error


def _folder() -> Path:
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            "Generating ALFWorld games needs `alfworld`, which is not installed:"
            " pip install 'langgraft[alfworld]'"
        )
    return Path(spec.submodule_search_locations[0])


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_langgraft_alfworld_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def _goal(entry: Mapping[str, object]) -> Goal:
    # The library writes `#` for the hyphen of a typed variable.
    templates = entry["templates"]
    assert isinstance(templates, list)
    return Goal(str(entry["pddl"]).replace("#", "-"), tuple(map(str, templates)))
