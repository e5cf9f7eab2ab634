"""TextWorld as it is installed: one call at a time, and nothing of the process changed by it."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from langgraft.environments.alfworld.engine import Frame
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import Installed

LOCK: Final = threading.RLock()
"""Held in every call: TextWorld's parsers and PDDL's translator keep their state in modules."""


@contextmanager
def one_call() -> Iterator[None]:
    """Hold the engine, and put back what it overwrites."""
    with LOCK:
        arguments = sys.argv
        try:
            yield
        finally:
            sys.argv = arguments


class TextWorldEngine:
    """A game in TextWorld's own environment, in ALFWorld's wrappers."""

    def __init__(self, game: Game, packages: Installed) -> None:
        self._game = game
        with one_call():
            infos = packages.core.EnvInfos(won=True, admissible_commands=True)
            env = packages.pddl.PddlEnv(infos)
            self._env: Any = packages.alfred.AlfredInfos(packages.alfred.AlfredDemangler(env))
            self._env.load(game.as_data())

    def reset(self) -> Frame:
        """Begin again."""
        with one_call():
            state = self._env.reset()
            return _frame(state, done=False)

    def step(self, command: str) -> Frame:
        """Carry out a command."""
        with one_call():
            state, _, done = self._env.step(command)
            return _frame(state, done=bool(done))

    def close(self) -> None:
        """Free what the game holds."""


def _frame(state: Any, *, done: bool) -> Frame:
    return Frame(
        feedback=state["feedback"],
        commands=tuple(state["admissible_commands"]),
        won=bool(state["won"]),
        done=done,
    )
