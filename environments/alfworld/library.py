"""Where games come from: one protocol for the released games and for generated ones."""

from typing import Protocol, runtime_checkable

from langgraft._core.canonical import JSON
from langgraft.environments.alfworld.games import Game


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
            SettingsError: There is no such family or split.
        """
        ...

    def find(self, family: str, name: str) -> Game:
        """Return a game, read and checked.

        Raises:
            SettingsError: There is no such family or game.
            GameError: Its file is damaged, or is of rules that are not known.
        """
        ...

    def describe(self) -> dict[str, JSON]:
        """Say what is in use, as a study's fingerprint has it: no time, host or path."""
        ...


def open_library() -> Library:
    """Open the released games.

    Raises:
        SettingsError: There are none.
    """
    raise NotImplementedError
