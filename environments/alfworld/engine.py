"""TextWorld's PDDL engine behind a small interface: one running game."""

from dataclasses import dataclass
from typing import Protocol

from langgraft.environments.alfworld.games import Game


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
        fast: Play it about as TextWorld does, from what is worked out once per game; what is shown
            is the same, byte for byte. With another TextWorld than the one this was made for, the
            installed one plays, and a warning says so once.

    Raises:
        MissingExtraError: alfworld, TextWorld or the planner is not installed.
        SettingsError: Another alfworld is installed than this was made for.
    """
    # Imported late: these bring in TextWorld only when a game is opened.
    from langgraft.environments.alfworld.fast import FastEngine  # noqa: PLC0415
    from langgraft.environments.alfworld.installed import installed  # noqa: PLC0415
    from langgraft.environments.alfworld.textworld_engine import TextWorldEngine  # noqa: PLC0415

    packages = installed()
    return FastEngine(game, packages) if fast else TextWorldEngine(game, packages)
