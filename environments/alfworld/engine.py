"""TextWorld's PDDL engine behind a small interface: one running game."""

import logging
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.rules import check_rules

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Frame:
    """What the engine shows after a reset or a command."""

    feedback: str
    """The engine's text, unchanged."""
    commands: tuple[str, ...]
    """The admissible commands, in the engine's order."""
    won: bool
    """The goal holds *now*; it can be lost again."""
    done: bool
    """The engine considers the game over."""


class Engine(Protocol):
    """One running game."""

    def reset(self) -> Frame:
        """Begin again; the same every time."""
        ...

    def step(self, command: str) -> Frame:
        """Carry out a command; one that is not admissible is answered and changes nothing."""
        ...

    def close(self) -> None:
        """Free what the game holds."""
        ...


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
    # Imported late: what these need is installed only with the extra.
    from langgraft.environments.alfworld.fast import FastEngine  # noqa: PLC0415
    from langgraft.environments.alfworld.fast_text import UnknownGrammarError  # noqa: PLC0415
    from langgraft.environments.alfworld.installed import installed  # noqa: PLC0415
    from langgraft.environments.alfworld.textworld_engine import TextWorldEngine  # noqa: PLC0415

    check_rules(game.domain, game.grammar, game.source or game.name)
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
