"""A folder in MLE-bench's layout as a competition."""

from collections.abc import Callable
from pathlib import Path

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.boards import read_board
from langgraft.environments.competitions.competition import Competition, Grader
from langgraft.environments.competitions.functions import OwnFunction
from langgraft.environments.competitions.layout import (
    CHECKSUMS,
    LEADERBOARD,
    CompetitionConfig,
    DataField,
    data_file,
    own_file,
    own_function,
    read_config,
    read_text,
)
from langgraft.environments.competitions.medals import Board


def read_competition(
    folder: Path, data_dir: Path, *, board_of: Callable[[Path, bool | None], Board] | None = None
) -> Competition:
    """Read the competition that a folder describes.

    Args:
        folder: Holds `config.yaml` and what it names; its name is the competition's id.
        data_dir: Holds the data of competitions, `<data_dir>/<id>/prepared/public` …
        board_of: Makes the board of a `leaderboard.csv` and the direction that `config.yaml`
            declares, if it does; `read_board` by default.

    Raises:
        CompetitionError: Something in the folder is not what its format asks for.
    """
    config = read_config(folder)
    checksums = folder / CHECKSUMS
    data = data_dir / config.id
    answers, sample = _data(config, "answers", folder), _data(config, "sample_submission", folder)
    gold = _data(config, "gold_submission", folder)
    assert answers is not None
    assert sample is not None
    return Competition(
        id=config.id,
        name=config.name,
        description=read_text(own_file(folder, config.description, field="description")),
        competition_type=config.competition_type,
        modality=config.modality,
        metric_group=config.metric_group,
        grader=_grader(config, folder),
        board=(board_of or _board)(folder / LEADERBOARD, config.is_lower_better),
        raw_dir=data / "raw",
        public_dir=data / "prepared" / "public",
        private_dir=data / "prepared" / "private",
        answers=data_dir / answers,
        sample_submission=data_dir / sample,
        prepare_fn=_preparer(config, folder),
        gold_submission=None if gold is None else data_dir / gold,
        source_modules=tuple(config.source_modules),
        checksums=checksums if checksums.is_file() else None,
        id_columns=tuple(config.id_columns),
    )


def _grader(config: CompetitionConfig, folder: Path) -> Grader:
    found = own_function(folder, config.grader.grade_fn, field="grader.grade_fn")
    return Grader(config.grader.name, OwnFunction(*found))


def _preparer(config: CompetitionConfig, folder: Path) -> OwnFunction | None:
    if config.preparer is None:
        return None
    return OwnFunction(*own_function(folder, config.preparer, field="preparer"))


def _data(config: CompetitionConfig, field: DataField, folder: Path) -> Path | None:
    path = data_file(config, field, folder)
    return None if path is None else Path(*path.parts)


def _board(path: Path, lower_is_better: bool | None) -> Board:
    if not path.is_file():
        raise CompetitionError("is missing: a competition is judged by its board", path=path)
    return read_board(path, lower_is_better=lower_is_better)
