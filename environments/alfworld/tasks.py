"""Names of tasks: `alfworld/<family>/<trial>` and `alfworld-generated/<family>/<seed>`."""

import re
from typing import Final, NamedTuple

from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.games import FAMILIES, WORLDS, Game
from langgraft.environments.alfworld.library import Library
from langgraft.environments.text import TextTask

_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,80}", re.ASCII)


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
