"""An installed `mlebench`: its competitions, graders and leaderboards, read from its files.

It is found, not imported: its graders are imported when they grade, and bring what they need.
Leaderboards in a clone without Git LFS are pointers; for lite competitions our own thresholds
stand in, which were made from the same files.
"""

import dataclasses
import importlib.util
from collections.abc import Mapping
from pathlib import Path

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.boards import is_pointer_file, read_scores
from langgraft.environments.competitions.cache import user_cache_dir
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.folders import read_competition
from langgraft.environments.competitions.lite import LiteCompetition
from langgraft.environments.competitions.medals import Board


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
            return known.board
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
        id_columns=known.id_columns,
        sample_submission=data_dir / found.id / "prepared" / known.sample_submission,
        checksums=found.checksums or known.checksums,
    )
