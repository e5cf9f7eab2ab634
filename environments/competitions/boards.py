"""Leaderboards as files: MLE-bench's `leaderboard.csv`."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.layout import is_pointer, read_text
from langgraft.environments.competitions.medals import Board

_COLUMNS: Final = ("score", "scorenullable")
"""The first that is there, in any case, holds the scores: Kaggle's exports have both."""
_GAPS: Final = {"", "nan", "na", "n/a", "null", "none"}


def read_board(path: Path, *, lower_is_better: bool | None = None) -> Board:
    """Read a `leaderboard.csv`: a header with a column `score`, then a row for each team.

    Args:
        path: The file. Rows without a score are left out.
        lower_is_better: The direction that the competition declares, if it does.

    Raises:
        CompetitionError: The file is missing, a pointer of Git LFS, holds no scores, or what it
            tells of the direction is nothing, or the opposite of what is declared.
    """
    scores = read_scores(path)
    try:
        if lower_is_better is not None:
            _refuse_opposite(scores, lower_is_better=lower_is_better)
        return Board.from_scores(scores, lower_is_better=lower_is_better)
    except CompetitionError as error:
        hint = " (`is_lower_better` in config.yaml says it)" if lower_is_better is None else ""
        raise CompetitionError(f"{error}{hint}", path=path) from error


def is_pointer_file(path: Path) -> bool:
    """Whether a file is only a pointer of Git LFS."""
    with path.open("rb") as file:
        return is_pointer(file.read(200))


def read_scores(path: Path) -> list[float]:
    """Read the scores of a `leaderboard.csv`, in the order of its rows; gaps are left out.

    Raises:
        CompetitionError: The file is missing, a pointer of Git LFS, or holds no scores.
    """
    rows = csv.reader(io.StringIO(read_text(path).removeprefix("\ufeff"), newline=""))
    scores = []
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        column = _score_column(header, path)
        for row in rows:
            text = row[column].strip() if column < len(row) else ""
            if row and text.lower() not in _GAPS:
                scores.append(_number(text, path, rows.line_num))
    except csv.Error as error:
        raise CompetitionError(f"line {rows.line_num} is not CSV: {error}", path=path) from error
    if not scores:
        raise CompetitionError("holds no score of any team", path=path)
    return scores


def _score_column(header: Sequence[str], path: Path) -> int:
    for name in _COLUMNS:
        if header.count(name) > 1:
            raise CompetitionError(f"has {header.count(name)} columns `{name}`", path=path)
        if name in header:
            return header.index(name)
    shown = ", ".join(header[:10])[:200] or "nothing"
    raise CompetitionError(f"has no column `score` in its first line, but {shown}", path=path)


def _number(text: str, path: Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not math.isfinite(value) or "_" in text:
        raise CompetitionError(f"line {line}: {text[:40]!r} is not a score", path=path)
    return value


def _refuse_opposite(scores: Sequence[float], *, lower_is_better: bool) -> None:
    """Refuse rows that are sorted, but the other way round than is declared."""
    best_last = sorted(scores, reverse=lower_is_better)
    if scores[0] != scores[-1] and list(scores) == best_last:
        msg = (
            f"its rows run from {scores[0]} to {scores[-1]}, best first, but `is_lower_better` in"
            f" config.yaml is {str(lower_is_better).lower()}"
        )
        raise CompetitionError(msg)
