"""One episode of ALFWorld, and the factories of episodes by task id."""

import logging
import math
import threading
from dataclasses import dataclass, field
from functools import cache

from langgraft._core.arguments import check_whole
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.engine import Engine, Frame, TextWorldEngine
from langgraft.environments.alfworld.fast import FastEngine
from langgraft.environments.alfworld.fast_text import UnknownGrammarError
from langgraft.environments.alfworld.game_files import open_library
from langgraft.environments.alfworld.games import Game, Library, parse_task_id, task_of, tasks_of
from langgraft.environments.alfworld.generated import GeneratedLibrary
from langgraft.environments.alfworld.installed import installed
from langgraft.environments.alfworld.reading import check_rules
from langgraft.environments.alfworld.semantics import (
    SET_DOWN,
    Semantics,
    convention_of,
    in_words_of_the_game,
)
from langgraft.environments.text import Reset, TextTask, Transition

logger = logging.getLogger(__name__)


class AlfworldEnvironment:
    """A household game, seen and played as text.

    `task` is the game as a task of a text world, `instructions` how it is played.

        world = AlfworldEnvironment(game)
        print(world.reset().observation)
        transition = world.step("go to fridge 1")

    An episode belongs to one thread at a time; any number of them can run side by side, in
    any threads: what TextWorld cannot do at the same time waits at the engine's lock.

    Args:
        game: The game; a library finds it (`open_library().find(…)`).
        semantics: `compat`, `listed`, `current` or `react`; the package's docstring lists how they differ.
        max_rounds: How many replies the agent has; `None` takes the semantics' own rule.
            Whoever runs the episode counts them: the engine knows no end but winning.
        fast: Play with caches (the same text, many times sooner) or with TextWorld as it is.

    Raises:
        SettingsError: An argument is not usable.
    """

    def __init__(
        self,
        game: Game,
        semantics: Semantics = "compat",
        max_rounds: int | None = None,
        *,
        fast: bool = True,
    ) -> None:
        self._convention = convention_of(semantics)
        if max_rounds is not None:
            check_whole("max_rounds", max_rounds)
        self.game = game
        self.semantics = semantics
        self.task = task_of(game)
        self.instructions = self._convention.rules(SET_DOWN[game.dialect])
        self.max_rounds = max_rounds or self._convention.max_rounds
        self._fast = fast
        self._engine: Engine | None = None
        self._commands: tuple[str, ...] = ()
        self._won = self._done = False

    def reset(self) -> Reset:
        """Start the episode again from the beginning; the same every time.

        Raises:
            MissingExtraError: TextWorld or one of its parts is not installed.
        """
        if self._engine is None:
            self._engine = open_engine(self.game, fast=self._fast)
        frame = self._engine.reset()
        self._won = self._done = False
        self._take_in(frame)
        self._done = False  # a game that is won before it began still shows its first text
        return Reset(
            instruction=self.game.goal,
            observation=self._convention.first(frame.feedback, frame.commands),
            actions=frame.commands,
            shown_now=self._convention.now(frame.commands),
        )

    def step(self, action: str) -> Transition:
        """Take one action, written as text.

        An action that is not admissible is answered `Nothing happens.`, costs a round and
        changes nothing. `Transition.info` tells whether it was `valid`, the `command` of the
        game that it was taken for (`None` where it was none), and whether the goal holds just
        now (`won_now`); `Transition.success`, whether it did at any time.

        Raises:
            RuntimeError: Called before `reset` or after the episode ended.
        """
        if self._engine is None:
            raise RuntimeError(f"{self.task.id}: call reset() before step()")
        if self._done:
            raise RuntimeError(f"{self.task.id}: the episode has ended; call reset() to play again")
        said = self._convention.cleaned(action)
        command = in_words_of_the_game(said, self._commands)
        valid = command in self._commands
        frame = self._engine.step(command)
        self._take_in(frame)
        return Transition(
            observation=self._convention.later(said, frame.feedback, frame.commands),
            reward=float(self._won),
            done=self._done,
            success=self._won,
            actions=frame.commands,
            shown_now="" if self._done else self._convention.now(frame.commands),
            info=_info(command if valid else None, frame),
        )

    def close(self) -> None:
        """Free the engine; `reset` opens it again."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _take_in(self, frame: Frame) -> None:
        """Note what is admissible now, and that the goal was reached: that is not lost again."""
        self._commands = frame.commands
        self._won = self._won or frame.won
        self._done = self._won or frame.done


def _info(command: str | None, frame: Frame) -> dict[str, JSON]:
    return {"valid": command is not None, "command": command, "won_now": frame.won}


def open_engine(game: Game, *, fast: bool = True) -> Engine:
    """Open a game for playing, in as many sessions and threads as one likes.

    Args:
        game: The game.
        fast: Write what TextWorld would, from what is worked out once per game: what is shown is
            the same, byte for byte. With another TextWorld than the one this was made for, that
            one plays as it is, and the log says so once.

    Raises:
        GameError: The game's rules or grammar are not known.
        MissingExtraError: alfworld, TextWorld or the planner is not installed.
        SettingsError: Another alfworld is installed than this was made for.
    """
    check_rules(game.domain, game.grammar, game.label)
    packages = installed()
    if fast and not packages.doubt:
        try:
            return FastEngine(game, packages)
        except UnknownGrammarError as error:
            _say_once(f"a grammar holds {error}, which no grammar of ALFWorld does")
    elif fast:
        _say_once(packages.doubt)
    return TextWorldEngine(game, packages)


@cache
def _say_once(reason: str) -> None:
    logger.warning("ALFWorld is played by TextWorld as it is, which is slow: %s", reason)


@dataclass(slots=True)
class _Shelf:
    """The library in use, opened once by whichever thread needs it first."""

    library: Library | None = None
    opening: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class ALFWorld:
    """Builds episodes of the released games by task id, and lists the tasks there are.

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
    """`compat`, `listed`, `current` or `react`: how the games are shown and played."""
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

    def difficulty(self, task_id: str) -> float:
        """Return how many commands win the game; infinite where its data has no walkthrough.

        Raises:
            SettingsError: There is no such task, or there are no games.
            GameError: Its game is damaged.
        """
        _, family, name = parse_task_id(task_id)
        return float(len(self.games().find(family, name).walkthrough) or math.inf)

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
