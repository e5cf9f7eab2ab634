"""Where games come from: one protocol for the released games and for generated ones."""

import os
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.packs import PackLibrary
from langgraft.environments.alfworld.released import ReleasedLibrary
from langgraft.environments.alfworld.trees import RELEASE, TreeLibrary


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

    def describe(self, *families: str) -> dict[str, JSON]:
        """Say what is in use, as a study's fingerprint has it: no time, host or path.

        Args:
            families: Those that are in use; with none named, all of them.
        """
        ...


HOW_TO_GET_GAMES: Final = (
    "get them with `alfworld-download` (of the package alfworld) and set ALFWORLD_DATA to the"
    " folder it fills; generated games (tasks of alfworld-generated) need none"
)


def open_library() -> ReleasedLibrary:
    """Open the released games: of `ALFWORLD_DATA`, else of the folder `alfworld` in `LANGGRAFT_DATA`.

    The first is a folder that `alfworld-download` filled, or a file as the second may hold: a pack
    (`games-*.jsonl.xz`), such a tree, or one in a `games-*.tar.xz`; they are looked for in this
    order, and of several the last by name is taken.

    Raises:
        SettingsError: There are no games.
        GameError: They are damaged.
    """
    own = os.environ.get("ALFWORLD_DATA")
    if own and (_holds_tree(Path(own)) or not _set_by_alfworld(own)):
        return _named(Path(own))
    shared = os.environ.get("LANGGRAFT_DATA")
    if shared and (found := _in_folder(Path(shared) / "alfworld")):
        return found
    where = "ALFWORLD_DATA or LANGGRAFT_DATA/alfworld"
    raise SettingsError(f"there are no ALFWorld games in {where}: {HOW_TO_GET_GAMES}")


def _named(path: Path) -> ReleasedLibrary:
    try:
        return PackLibrary(path) if path.name.endswith(".jsonl.xz") else TreeLibrary(path)
    except SettingsError as error:
        raise SettingsError(f"ALFWORLD_DATA leads to no games: {error}") from error


def _in_folder(folder: Path) -> ReleasedLibrary | None:
    if packs := sorted(folder.glob("games-*.jsonl.xz")):
        return PackLibrary(packs[-1])
    if _holds_tree(folder):
        return TreeLibrary(folder)
    if archives := sorted(folder.glob("games-*.tar.xz")):
        return TreeLibrary(archives[-1])
    return None


def _holds_tree(folder: Path) -> bool:
    try:
        return any(RELEASE.fullmatch(path.name) for path in folder.iterdir())
    except OSError:  # who reads it says why
        return False


def _set_by_alfworld(folder: str) -> bool:
    """Return whether it may be the package that set the variable: it does when imported."""
    return Path(folder) == Path("~/.cache/alfworld").expanduser()
