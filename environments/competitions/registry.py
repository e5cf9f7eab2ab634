"""Finds competitions: those that ship, MLE-bench's, and folders of one's own.

Of MLE-bench's there are those of an installed `mlebench`, and the 22 lite ones known without it. An
installed one is found, not imported: its graders are imported when they grade, and bring what
they need. Leaderboards in a clone without Git LFS are pointers; for lite competitions our own
thresholds stand in, which were made from the same files.

`lite.json` has, of each lite competition, its name and metric, modality and metric group
(mle-agent-memory Table 8), the thresholds that MLE-bench's rule makes of its leaderboard, the names
and MD5 sums of its prepared files, and which of our metrics grades as MLE-bench's grader does. The
data itself comes from Kaggle: prepare it with MLE-bench, where an account there is at hand.
"""

import dataclasses
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from langgraft._core.arguments import did_you_mean
from langgraft._core.errors import CompetitionError
from langgraft._core.files import user_cache_dir
from langgraft.environments.competitions import graders
from langgraft.environments.competitions.competition import (
    Board,
    Checksums,
    Competition,
    Grader,
    MetricGroup,
    Modality,
    Thresholds,
    Values,
)
from langgraft.environments.competitions.layout import (
    CONFIG,
    DESCRIPTION,
    is_competition_id,
    is_pointer_file,
    read_competition,
    read_scores,
    read_text,
)

_FILE: Final = Path(__file__).with_name("lite.json")


class LiteCompetition(BaseModel):
    """What is known of a lite competition."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str
    competition_type: str
    modality: Modality
    metric_group: MetricGroup
    metric: str
    """As MLE-bench names it."""
    grader: Mapping[str, Any]
    """A function of `graders`, as `metric`, and its arguments."""
    thresholds: Thresholds
    answers: str
    """In `prepared`, as are the other files."""
    sample_submission: str
    """In `public`, where MLE-bench's own configuration may name a copy in `private`."""
    gold_submission: str | None = None
    checksums: Checksums
    note: str = ""
    """Where sources disagree."""

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The column that names rows; none where it is the first one."""
        return (self.grader["id_column"],) if "id_column" in self.grader else ()

    @property
    def values(self) -> Values:
        """What the metric refuses of numbers."""
        return graders.values_of(self.grader["metric"], self.grader)


def lite_competitions() -> Mapping[str, LiteCompetition]:
    """Return what is known of the lite competitions, by id, in order."""
    found: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return {name: LiteCompetition.model_validate(each) for name, each in found.items()}


def lite_competition(name: str, known: LiteCompetition, data_dir: Path) -> Competition:
    """Return a lite competition whose data MLE-bench prepared in `<data_dir>/<name>`.

    The description is the one MLE-bench left beside the data, where there is one.
    """
    arguments = {key: value for key, value in known.grader.items() if key != "metric"}
    grade = getattr(graders, known.grader["metric"])(**arguments)
    prepared = data_dir / name / "prepared"
    gold = known.gold_submission
    return Competition(
        id=name,
        name=known.name,
        description=_description(prepared / "public" / DESCRIPTION, name, known),
        competition_type=known.competition_type,
        modality=known.modality,
        metric_group=known.metric_group,
        grader=Grader(known.metric, grade, known.values),
        board=Board(known.thresholds),
        raw_dir=data_dir / name / "raw",
        public_dir=prepared / "public",
        private_dir=prepared / "private",
        answers=prepared / known.answers,
        sample_submission=prepared / known.sample_submission,
        prepare_fn=None,
        gold_submission=None if gold is None else prepared / gold,
        checksums=known.checksums,
        id_columns=known.id_columns,
    )


def _description(path: Path, name: str, known: LiteCompetition) -> str:
    if path.is_file():
        return read_text(path)
    better = "lower" if known.thresholds.lower_is_better else "higher"
    return (
        f"# {known.name}\n\nA competition of MLE-bench lite ({name}), judged by {known.metric},"
        f" {better} is better. Its description comes with its data.\n"
    )


def mlebench_competition(
    folder: Path, data_dir: Path, lite: Mapping[str, LiteCompetition]
) -> Competition:
    """Return one of an installed `mlebench`'s competitions, with what we know of it besides.

    Raises:
        CompetitionError: Its files are not as they should be, or its leaderboard is not there.
    """
    known = lite.get(folder.name)

    def board_of(path: Path, lower_is_better: bool | None) -> Board:
        if known is not None and (not path.is_file() or is_pointer_file(path)):
            return Board(known.thresholds)
        if not path.is_file():
            raise CompetitionError("is missing", path=path)
        scores = read_scores(path)
        # MLE-bench asks no more of its own boards: equal scores mean that higher is better.
        lower = scores[0] < scores[-1] if lower_is_better is None else lower_is_better
        return Board.from_scores(scores, lower_is_better=lower)

    found = read_competition(folder, data_dir, board_of=board_of)
    if known is None:
        return found
    return dataclasses.replace(
        found,
        modality=known.modality,
        metric_group=known.metric_group,
        grader=dataclasses.replace(found.grader, values=known.values),
        id_columns=known.id_columns,
        sample_submission=data_dir / found.id / "prepared" / known.sample_submission,
        checksums=found.checksums or known.checksums,
    )


def mlebench_data_dir() -> Path:
    """Return where MLE-bench prepares data unless it is told another place."""
    return user_cache_dir() / "mle-bench" / "data"


def mlebench_folder() -> Path | None:
    """Return the folder of an installed `mlebench`'s competitions; `None` where it is not there."""
    try:
        spec = importlib.util.find_spec("mlebench")
    except (ImportError, ValueError):
        return None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / "competitions").is_dir():
            return Path(place) / "competitions"
    return None


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
