"""A game, a library of games, and the names of tasks.

A game is what the engine needs to play one household task, and what it is about. Tasks are named
`alfworld/<family>/<trial>` and `alfworld-generated/<family>/<seed>`.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.environments.text import TextTask

Dialect: TypeAlias = Literal["put", "move"]
"""How a game wants things set down: `put X in/on Y` (release json_2.1.1) or `move X to Y` (json_2.1.2)."""

FAMILIES: Final[dict[str, str]] = {
    "pick_and_place": "pick_and_place_simple",
    "look_at_obj": "look_at_obj_in_light",
    "pick_clean_then_place": "pick_clean_then_place_in_recep",
    "pick_heat_then_place": "pick_heat_then_place_in_recep",
    "pick_cool_then_place": "pick_cool_then_place_in_recep",
    "pick_two_obj": "pick_two_obj_and_place",
}
"""Task family, by the short names that ReAct introduced → ALFWorld's task type."""

WORLDS: Final = ("alfworld", "alfworld-generated")
"""The first parts of task ids: released games, and games of our own making."""

_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,80}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Game:
    """One `game.tw-pddl`, read and checked; nothing of TextWorld is needed to hold it.

    `dialect` is how its release wants commands.
    """

    name: str
    """What task ids call it: the trial's folder name, or the seed of a generated game."""
    family: str
    """A key of `FAMILIES`."""
    split: str
    """The split that lists it; `spare` where it is training data that no split was dealt."""
    goal: str
    """The goal sentence, such as `put a clean bowl in fridge`."""
    dialect: Dialect
    domain: str
    """The PDDL domain."""
    grammar: str
    """The text grammar, with the goal sentence in its place."""
    problem: str
    """The PDDL problem."""
    walkthrough: tuple[str, ...] = ()
    """Commands that win the game, where the data has them."""
    source: str = ""
    """Where it was read from."""
    world: str = "alfworld"
    """One of `WORLDS`."""

    @property
    def label(self) -> str:
        """What error messages call it."""
        return self.source or self.name

    def as_data(self) -> dict[str, JSON]:
        """Return the game as the JSON of a `game.tw-pddl` file holds it."""
        return {
            "pddl_domain": self.domain,
            "grammar": self.grammar,
            "pddl_problem": self.problem,
            "solvable": True,
            "walkthrough": list(self.walkthrough),
        }


def check_family(family: str) -> None:
    """Refuse a family that there is not.

    Raises:
        SettingsError: There is no such family.
    """
    if family not in FAMILIES:
        raise SettingsError(f"no ALFWorld task family {family!r}; there are {', '.join(FAMILIES)}")


@runtime_checkable
class Library(Protocol):
    """Games by family and name."""

    @property
    def world(self) -> str:
        """The first part of task ids: `alfworld` or `alfworld-generated`."""
        ...

    def splits(self) -> tuple[str, ...]:
        """Return the splits there are."""
        ...

    def names(self, family: str, split: str) -> tuple[str, ...]:
        """Return the names of a family's games in a split, in the benchmark's order.

        Raises:
            SettingsError: There is no such family or split, or it has no such game.
        """
        ...

    def find(self, family: str, name: str) -> Game:
        """Return a game, read and checked.

        Raises:
            SettingsError: There is no such family or game.
            GameError: It is damaged, left out for a reason, or of rules that are not known.
            MissingExtraError: It is to be generated, and alfworld is not installed.
        """
        ...

    def describe(self, *families: str) -> dict[str, JSON]:
        """Say what is in use, as a study's fingerprint has it: no time, host or path.

        It changes when a game does, whatever file it is in, or the generator or its rules.

        Args:
            families: Those that are in use; with none named, all of them.
        """
        ...


class TaskName(NamedTuple):
    """A task id, taken apart."""

    world: str
    """`alfworld` or `alfworld-generated`."""
    family: str
    """A key of `FAMILIES`."""
    name: str
    """The trial of a released game, or the seed of a generated one."""


def task_of(game: Game) -> TextTask:
    """Name the task of a game."""
    domain = f"{game.world}/{game.family}"
    return TextTask(id=f"{domain}/{game.name}", domain=domain, split=game.split)


def tasks_of(library: Library, domain: str, split: str) -> tuple[TextTask, ...]:
    """List a domain's tasks in one split, in the library's order.

    Raises:
        SettingsError: There is no such domain or split.
    """
    world, family = parse_domain(domain)
    if world != library.world:
        raise SettingsError(f"{domain!r} is not of {library.world!r}, the library in use")
    return tuple(
        TextTask(id=f"{domain}/{name}", domain=domain, split=split)
        for name in library.names(family, split)
    )


def parse_domain(domain: str) -> tuple[str, str]:
    """Return the world and the family of a domain such as `alfworld/pick_and_place`.

    Raises:
        SettingsError: There is no such domain.
    """
    world, _, family = str(domain).partition("/")
    if world not in WORLDS or family not in FAMILIES:
        raise SettingsError(
            f"no task family {domain!r}; there are {' and '.join(WORLDS)}, each with"
            f" {', '.join(FAMILIES)}"
        )
    return world, family


def parse_task_id(task_id: str) -> TaskName:
    """Take apart a task id such as `alfworld/pick_and_place/trial_T20190907_174127_043461`.

    Whether there is such a game, the library knows.

    Raises:
        SettingsError: It is not a task id.
    """
    domain, _, name = str(task_id).rpartition("/")
    world, _, family = domain.partition("/")
    if world not in WORLDS or family not in FAMILIES or not _NAME.fullmatch(name):
        raise SettingsError(
            f"no task {task_id!r}; tasks are <world>/<family>/<name> with a world of"
            f" {', '.join(WORLDS)}, a family of {', '.join(FAMILIES)}, and the name of a trial"
            " or, of generated games, a seed"
        )
    return TaskName(world, family, name)
