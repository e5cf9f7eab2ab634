"""Finds competitions: those that ship, MLE-bench's, and folders of one's own."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

from langgraft._core.arguments import did_you_mean
from langgraft._core.errors import CompetitionError
from langgraft._core.files import user_cache_dir
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.layout import CONFIG, is_competition_id, read_competition
from langgraft.environments.competitions.mlebench import (
    lite_competition,
    lite_competitions,
    mlebench_competition,
    mlebench_data_dir,
    mlebench_folder,
)

Source = Literal["own", "shipped", "mlebench", "lite"]

_SHIPPED: Final = Path(__file__).with_name("shipped")


def default_data_dir() -> Path:
    """Return where competitions' data lies unless another place is given."""
    return user_cache_dir() / "langgraft" / "competitions"


class Registry:
    """Competitions by id, with the methods of MLE-bench's own registry.

    An id is looked for in `folders` in their order, among the competitions that ship, in an
    installed `mlebench`, and among its 22 lite ones that we know without it; the first counts.

        Registry()                          what ships, and MLE-bench's where it is installed
        Registry("data")                    data in ./data/<id>/prepared
        Registry("data", folders=["mine"])  and competitions of your own, ./mine/<id>/config.yaml

    Args:
        data_dir: Where data lies and is prepared. Data of MLE-bench's competitions that is not
            there is looked for where MLE-bench puts it by default.
        folders: Folders that hold a folder for each competition.

    Raises:
        CompetitionError: One of `folders` is not there, or is a competition itself.
    """

    def __init__(
        self, data_dir: Path | str | None = None, *, folders: Iterable[Path | str] = ()
    ) -> None:
        self._data_dir = Path(default_data_dir() if data_dir is None else data_dir).resolve()
        self._folders = tuple(Path(each).resolve() for each in folders)
        self._lite = lite_competitions()
        for folder in self._folders:
            _refuse_folder(folder)

    def get_competition(self, competition_id: str) -> Competition:
        """Return a competition; nothing of pandas or of its own code is imported for it.

        Raises:
            CompetitionError: There is none of this id, or its files are not as they should be.
        """
        source, folder = self._find(competition_id)
        data_dir = self._data_dir_of(competition_id, source)
        if folder is None:
            return lite_competition(competition_id, self._lite[competition_id], data_dir)
        if source == "mlebench":
            return mlebench_competition(folder, data_dir, self._lite)
        return read_competition(folder, data_dir)

    def list_competition_ids(self) -> list[str]:
        """Return the ids of all competitions, in order."""
        return sorted({name for _, place in self._places() for name in place} | set(self._lite))

    def get_lite_competition_ids(self) -> list[str]:
        """Return the ids of MLE-bench's 22 lite competitions, in order."""
        return sorted(self._lite)

    def get_shipped_competition_ids(self) -> list[str]:
        """Return the ids of the competitions that ship, in order."""
        return sorted(_competitions(_SHIPPED))

    def get_source(self, competition_id: str) -> Source:
        """Say where a competition is found.

        Raises:
            CompetitionError: There is none of this id.
        """
        return self._find(competition_id)[0]

    def get_competitions_dir(self) -> Path:
        """Return the folder of the competitions that ship."""
        return _SHIPPED

    def get_data_dir(self) -> Path:
        """Return where data lies and is prepared."""
        return self._data_dir

    def set_data_dir(self, new_data_dir: Path | str) -> "Registry":
        """Return a registry of the same competitions, with data in another place."""
        return Registry(new_data_dir, folders=self._folders)

    def _find(self, name: str) -> tuple[Source, Path | None]:
        for source, place in self._places():
            if name in place:
                return source, place[name]
        if name in self._lite:
            return "lite", None
        known = self.list_competition_ids()
        hint = did_you_mean(name, known, "`langgraft competitions list`")
        raise CompetitionError(f"there is no competition {str(name)[:100]!r}: {hint}")

    def _places(self) -> Sequence[tuple[Source, dict[str, Path]]]:
        places: list[tuple[Source, dict[str, Path]]] = [
            ("own", _competitions(each)) for each in self._folders
        ]
        places.append(("shipped", _competitions(_SHIPPED)))
        if (installed := mlebench_folder()) is not None:
            places.append(("mlebench", _competitions(installed)))
        return places

    def _data_dir_of(self, name: str, source: Source) -> Path:
        elsewhere = mlebench_data_dir()
        of_mlebench = source in {"mlebench", "lite"}
        if of_mlebench and not _is_folder(self._data_dir / name) and _is_folder(elsewhere / name):
            return elsewhere
        return self._data_dir


def _competitions(place: Path) -> dict[str, Path]:
    """Return the folders of a place that describe a competition, by their names."""
    try:
        return {
            each.name: each
            for each in sorted(place.iterdir())
            if is_competition_id(each.name) and (each / CONFIG).is_file()
        }
    except OSError as error:
        raise CompetitionError(f"cannot be read: {error.strerror or error}", path=place) from error


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:  # another user's
        return False


def _refuse_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise CompetitionError("is no folder of competitions: there is no such folder", path=folder)
    if (folder / CONFIG).is_file():
        msg = f"is a competition itself: give the folder that holds it, {folder.parent}"
        raise CompetitionError(msg, path=folder)
