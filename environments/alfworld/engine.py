"""TextWorld's PDDL engine behind a small interface: one running game."""

from dataclasses import dataclass
from typing import Protocol


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
