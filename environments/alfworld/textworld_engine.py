"""TextWorld as it is installed: one call at a time, and nothing of the process changed by it."""

import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, Final

from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld.engine import Frame
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import Installed, installed
from langgraft.environments.alfworld.libraries import Libraries
from langgraft.environments.alfworld.patches import Quiet, replaced

_LOCK: Final = threading.RLock()
_EVAL_SEES_LOCALS: Final = sys.version_info < (3, 13)


@contextmanager
def one_call(packages: Installed) -> Iterator[None]:
    """Let one thread in at a time, and put back what the packages overwrite.

    TextWorld's parsers and PDDL's translator keep their state in modules.
    """
    with _LOCK, ExitStack() as undone:
        undone.callback(setattr, sys, "argv", sys.argv)
        undone.enter_context(replaced(packages.interface, "CapturingStdout", Quiet))
        if not _EVAL_SEES_LOCALS:
            derive = _derive(packages.text)
            undone.enter_context(replaced(packages.text.EvalSymbol, "derive", derive))
        yield


@cache
def libraries() -> Libraries:
    """Return the process's copies of the planner's library."""
    return Libraries(_load_library)


def _load_library() -> Any:
    try:
        return installed().downward.load_lib()
    except (OSError, RuntimeError) as error:
        msg = (
            f"the planner's library, which keeps a game's state, does not load: {error}; build it"
            " anew: pip install --force-reinstall --no-cache-dir fast-downward-textworld==20.6.4"
        )
        raise SettingsError(msg) from error


def load(game: Game, packages: Installed, library: Any) -> Any:
    """Load a game into TextWorld's own environment, in ALFWorld's wrappers.

    Raises:
        GameError: It cannot be loaded.
    """
    with replaced(packages.downward, "load_lib", lambda: library):
        infos = packages.core.EnvInfos(won=True, admissible_commands=True)
        inner = packages.pddl.PddlEnv(infos)
    env = packages.alfred.AlfredInfos(packages.alfred.AlfredDemangler(inner))
    try:
        env.load(game.as_data())
    except (Exception, SystemExit) as error:  # the translator ends the process on bad PDDL
        # The dummy that the translator writes in place of a goal that nothing leads to.
        hopeless = isinstance(error, KeyError) and error.args == ("val1",)
        why = f"TextWorld cannot load it: {type(error).__name__}: {error}"
        msg = "it cannot be won: nothing leads to its goal" if hopeless else why
        raise GameError(msg, source=game.source or game.name) from error
    return env


class TextWorldEngine:
    """A game played by TextWorld as it is."""

    def __init__(self, game: Game, packages: Installed) -> None:
        """Load the game."""
        self._game = game
        self._packages = packages
        self._env: Any = None
        with one_call(packages):
            self._open()

    def reset(self) -> Frame:
        """Begin again."""
        with one_call(self._packages):
            if self._env is None:
                self._open()
            self._playing = True
            return _frame(self._env.reset(), done=False)

    def step(self, command: str) -> Frame:
        """Carry out a command."""
        with one_call(self._packages):
            check_playing(self._game, playing=self._playing)
            state, _, done = self._env.step(command)
            return _frame(state, done=bool(done))

    def close(self) -> None:
        """Free what the game holds; a reset opens it again."""
        with one_call(self._packages):
            self._env, self._playing = None, False
            self._leave()

    def _open(self) -> None:
        library = libraries().borrow()
        self._leave = weakref.finalize(self, libraries().give_back, library)
        self._env = load(self._game, self._packages, library)
        self._playing = False


def check_playing(game: Game, *, playing: bool) -> None:
    """Refuse a command to a game that has not begun.

    Raises:
        RuntimeError: It has not been reset since it was opened or closed.
    """
    if not playing:
        raise RuntimeError(f"game {game.name!r} has not begun: reset it before a command")


def _frame(state: Any, *, done: bool) -> Frame:
    return Frame(
        feedback=state["feedback"],
        commands=tuple(state["admissible_commands"]),
        won=bool(state["won"]),
        done=done,
    )


def _derive(text: Any) -> Any:
    """Let expressions see their variables: since Python 3.13 `eval` has no sight of `locals()`."""

    def derive(self: Any, context: Any = None) -> list[Any]:
        variables = (context or self.context)["variables"]
        return [text.TerminalSymbol(eval(self.expression.strip(), {}, variables))]  # noqa: S307

    return derive
