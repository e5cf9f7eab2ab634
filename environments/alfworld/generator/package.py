"""What the installed `alfworld` package knows: rules, words, what may lie where, and goals."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.games import FAMILIES
from langgraft.environments.alfworld.installed import alfworld_version, import_part


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
