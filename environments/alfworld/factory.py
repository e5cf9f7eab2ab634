"""ALFWorld's task families, by task id."""

import threading
from dataclasses import dataclass, field

from langgraft._core.arguments import check_whole
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.environment import AlfworldEnvironment
from langgraft.environments.alfworld.game_files import open_library
from langgraft.environments.alfworld.games import Library, parse_task_id, tasks_of
from langgraft.environments.alfworld.generated import GeneratedLibrary
from langgraft.environments.alfworld.semantics import Semantics, convention_of
from langgraft.environments.text import TextTask


@dataclass(slots=True)
class _Shelf:
    """The library in use, opened once by whichever thread needs it first."""

    library: Library | None = None
    opening: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class ALFWorld:
    """Builds episodes of the released games by task id, and lists the task ids there are.

        worlds = ALFWorld()
        held_out = worlds.tasks("alfworld/pick_and_place", "test")
        episode = worlds(held_out[0].id)

    The games are looked for when the first of them is needed, and once.

    Raises:
        SettingsError: A setting is not usable.
    """

    library: Library | None = None
    """Where games come from; `None` takes the released ones (`open_library`)."""
    semantics: Semantics = "compat"
    """`compat`, `listed` or `react`: how the games are shown and played."""
    max_rounds: int | None = None
    """How many replies the agent has in an episode; `None` takes the semantics' own rule."""
    _shelf: _Shelf = field(init=False, repr=False, compare=False, default_factory=_Shelf)

    def __post_init__(self) -> None:
        convention_of(self.semantics)
        if self.max_rounds is not None:
            check_whole("max_rounds", self.max_rounds)

    def __call__(self, task_id: str) -> AlfworldEnvironment:
        """Return a fresh environment for one task instance.

        Raises:
            SettingsError: There is no such task, or there are no games.
            GameError: Its game is damaged, or is of rules that are not known.
        """
        world, family, name = parse_task_id(task_id)
        library = self.games()
        if world != library.world:
            raise SettingsError(f"no task {task_id!r}: these are tasks of {library.world}/…")
        return AlfworldEnvironment(library.find(family, name), self.semantics, self.max_rounds)

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        """List the instances of a family in one split, in the library's order.

        Raises:
            SettingsError: There is no such family or split, or there are no games.
        """
        return tasks_of(self.games(), domain, split)

    def games(self) -> Library:
        """Return the library in use; the first call opens it.

        Raises:
            SettingsError: There are no games.
        """
        with self._shelf.opening:
            if self._shelf.library is None:
                self._shelf.library = self.library or self._open()
            return self._shelf.library

    def _open(self) -> Library:
        return open_library()


@dataclass(frozen=True)
class GeneratedALFWorld(ALFWorld):
    """Builds episodes of generated games: ALFWorld's rules in rooms of our own.

        worlds = GeneratedALFWorld()  # task ids: alfworld-generated/pick_and_place/17

    They need no data. What an agent scores on them is no ALFWorld score.
    """

    def _open(self) -> Library:
        return GeneratedLibrary()
