"""One competition: what an agent is told, where its data lies, how it is judged, and MLE-bench's medals.

A medal's threshold is the score in a row of the leaderboard, best first, and n counts its rows:

| n | gold | silver | bronze |
|---|---|---|---|
| 1-99 | n/10 | n/5 | 2n/5 |
| 100-249 | 10 | n/5 | 2n/5 |
| 250-999 | 10 + n/500 | 50 | 100 |
| 1000 and more | 10 + n/500 | n/20 | n/10 |

Rows are rounded down, and at least 1 (`mlebench/grade_helpers.py`, Kaggle's own rule of medals).
A score at least as good as the threshold earns the medal; above the median is strictly better.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, SupportsFloat

from pydantic import BaseModel, ConfigDict, Field

from langgraft._core.errors import CompetitionError, InputError

if TYPE_CHECKING:
    import pandas as pd


Medal = Literal["gold", "silver", "bronze"]
"""What a submission can earn."""

DECIMALS: Final = 5
"""Scores are rounded to so many before they are compared, as MLE-bench does."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The scores that earn medals, and the median of the board.

    `gold`, `silver` and `bronze` are the worst scores that earn them, `median` is the board's, of so
    many `teams`; `lower_is_better` is the metric's direction.
    """

    gold: float
    silver: float
    bronze: float
    median: float
    lower_is_better: bool
    teams: int

    def __post_init__(self) -> None:
        named = (self.gold, self.silver, self.bronze, self.median)
        if not all(math.isfinite(each) for each in named):
            raise CompetitionError(f"thresholds of medals must be finite: {named}")
        if self.teams < 1:
            raise CompetitionError(f"a board has at least one team, not {self.teams}")

    def reached(self, score: float, threshold: float) -> bool:
        """Whether a score is at least as good as a threshold."""
        return score <= threshold if self.lower_is_better else score >= threshold


@dataclass(frozen=True, slots=True)
class Board:
    """A competition's leaderboard: every team's score, or only what they come down to.

    `thresholds` are the scores that it comes down to.
    """

    thresholds: Thresholds
    scores: tuple[float, ...] | None = None
    """Best first; `None` where only the thresholds are known."""

    @classmethod
    def from_scores(
        cls, scores: Sequence[SupportsFloat], *, lower_is_better: bool | None = None
    ) -> "Board":
        """Make the board of these teams.

        Args:
            scores: The teams' scores; in any order where the direction is given, else best first.
                Teams without a score (NaN) are left out and count as none.
            lower_is_better: The metric's direction. `None` reads it from the scores, best first:
                lower is better where the first is below the last.

        Raises:
            CompetitionError: No team has a score, a score is infinite, or the direction is
                neither given nor to be told from the scores.
        """
        known = [each for each in map(float, scores) if not math.isnan(each)]
        if not known:
            raise CompetitionError("a board needs the score of at least one team")
        if not all(map(math.isfinite, known)):
            raise CompetitionError("a board's scores must be finite")
        if lower_is_better is None:
            lower_is_better = _direction(known)
        known.sort(reverse=not lower_is_better)
        gold, silver, bronze = (known[row - 1] for row in medal_rows(len(known)))
        median = statistics.median(known)
        thresholds = Thresholds(gold, silver, bronze, median, lower_is_better, len(known))
        return cls(thresholds, tuple(known))


def medal_rows(teams: int) -> tuple[int, int, int]:
    """Return the rows, from 1, whose scores earn gold, silver and bronze on a board.

    Raises:
        ValueError: There are no teams.
    """
    if teams < 1:
        raise ValueError(f"a board has at least one team, not {teams}")
    if teams < 100:  # noqa: PLR2004
        rows = (teams // 10, teams // 5, 2 * teams // 5)
    elif teams < 250:  # noqa: PLR2004
        rows = (10, teams // 5, 2 * teams // 5)
    elif teams < 1000:  # noqa: PLR2004
        rows = (10 + teams // 500, 50, 100)
    else:
        rows = (10 + teams // 500, teams // 20, teams // 10)
    gold, silver, bronze = (max(1, row) for row in rows)
    return gold, silver, bronze


def rounded(score: SupportsFloat | None) -> float | None:
    """Return a score as it is compared: a float of 64 bits with five decimals.

    Returns:
        `None` where there is no score, or none that can be compared: NaN or infinite.

    Raises:
        TypeError: It is no number.
    """
    if score is None:
        return None
    if isinstance(score, str | bytes):
        raise TypeError(f"a score is a number, not {score!r}")
    value = float(score)
    return round(value, DECIMALS) + 0.0 if math.isfinite(value) else None


def medal(score: SupportsFloat | None, board: Board) -> Medal | None:
    """Return the medal that a score earns; an invalid score (`rounded`) earns none."""
    value = rounded(score)
    if value is None:
        return None
    thresholds = board.thresholds
    if thresholds.reached(value, thresholds.gold):
        return "gold"
    if thresholds.reached(value, thresholds.silver):
        return "silver"
    return "bronze" if thresholds.reached(value, thresholds.bronze) else None


def above_median(score: SupportsFloat | None, board: Board) -> bool:
    """Whether a score is strictly better than the median of the board."""
    value = rounded(score)
    if value is None:
        return False
    median = board.thresholds.median
    return value < median if board.thresholds.lower_is_better else value > median


def rank(score: SupportsFloat | None, board: Board) -> int | None:
    """Return the place a score would take, from 1: one more than the teams that are better.

    Returns:
        `None` for an invalid score, or where only the board's thresholds are known.
    """
    value = rounded(score)
    if value is None or board.scores is None:
        return None
    lower = board.thresholds.lower_is_better
    return 1 + sum(each < value if lower else each > value for each in board.scores)


def _direction(scores: Sequence[float]) -> bool:
    """Tell from rows, best first, whether lower is better: the first is below the last.

    MLE-bench looks at these two rows alone. Where a row between them is better than the first or
    worse than the last, they were not sorted, and the two tell nothing.
    """
    first, last = scores[0], scores[-1]
    if min(scores) == max(scores):
        msg = f"all {len(scores)} scores of the board are {first}: say whether lower is better"
        raise CompetitionError(msg)
    if {first, last} != {min(scores), max(scores)}:
        msg = (
            f"the board's rows are not sorted (first {first}, last {last}, but they run from"
            f" {min(scores)} to {max(scores)}): sort them, best first, or say whether lower is better"
        )
        raise CompetitionError(msg)
    return first < last


Modality = Literal["tabular", "image", "text", "audio"]
"""What the data of a competition are."""

MetricGroup = Literal[
    "classification",
    "probabilistic classification",
    "ranking",
    "regression",
    "generation",
    "prediction accuracy",
]
"""Groups that curves are averaged over (mle-agent-memory Table 8)."""


class GradeFunction(Protocol):
    """MLE-bench's `grade(submission, answers)`."""

    def __call__(self, submission: "pd.DataFrame", answers: Any) -> float:
        """Return the score, or raise for a submission that cannot be graded.

        `answers` is a frame, or a list of mappings where they are kept as JSON lines.
        """
        ...


class Values(BaseModel):
    """What a metric refuses of numbers, whatever the answers are: told to whoever submits."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    least: float | None = None
    """The least that a value may be; `None`: any."""
    most: float | None = None
    """The greatest; `None`: any."""
    sum: float | None = None
    """What the values of a row add up to; `None`: anything."""
    whole: bool = False
    """Whether labels are compared, which are whole numbers."""


@dataclass(frozen=True, slots=True)
class Grader:
    """A metric by name, the function that computes it, and what that refuses.

    `name` of the metric, `grade` computes it, `values` says what it takes.
    """

    name: str
    grade: GradeFunction
    values: Values = field(default_factory=Values)


class Checksums(BaseModel):
    """MD5 of files by their path in `public` and in `private`, of folders, and of the archive."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    public: Mapping[str, str] = Field(default_factory=dict)
    private: Mapping[str, str] = Field(default_factory=dict)
    zip: str | None = None
    """Of the archive that `raw` is unpacked from; `None` where there is none."""
    folders: Mapping[str, str] = Field(default_factory=dict)
    """Of all that is in a folder (`folder_checksum`), by its path beside `public` and `private`:
    `public/train`. Ours; MLE-bench leaves files in folders out."""


@dataclass(frozen=True, slots=True)
class Competition:
    """A competition in MLE-bench's layout: `<data>/<id>/{raw,prepared/public,prepared/private}`.

    `id` is its folder, `name` its title, `modality` what its data are; `grader` scores a submission
    against `answers`; `raw_dir` holds what the data are prepared from, and `gold_submission` is a
    perfect one, where there is one.
    """

    id: str
    name: str
    description: str
    """What an agent is given to read (`description.md`)."""
    competition_type: str
    """MLE-bench's word: `simple`, `code` …"""
    modality: Modality | None
    metric_group: MetricGroup | None
    """`None` where nobody has said."""
    grader: Grader
    board: Board
    """The leaderboard or its thresholds; the metric's direction comes from here."""
    raw_dir: Path
    public_dir: Path
    """What an agent may see."""
    private_dir: Path
    """What it may not: the answers."""
    answers: Path
    sample_submission: Path
    """In `public_dir`."""
    prepare_fn: Callable[[Path, Path, Path], None] | None
    """MLE-bench's `prepare(raw, public, private)`; `None` where data must be prepared elsewhere."""
    gold_submission: Path | None = None
    source_modules: tuple[str, ...] = field(default=())
    """Modules that carry the source data: none may be importable where agents' code runs."""
    checksums: Path | Checksums | None = None
    """MD5 of the prepared files, or the file that lists them."""
    id_columns: tuple[str, ...] = ()
    """Columns of the sample submission that name its rows; none: the first one."""

    @property
    def prepared(self) -> bool:
        """Whether the data an attempt needs is there."""
        return _is_file(self.answers) and _is_file(self.sample_submission)

    @property
    def input_dir(self) -> Path:
        """What agents find in `./input`: `public_dir`, or where archives were unpacked, that view.

        `langgraft.environments.competitions.archives.unpack_archives` makes it, before agents run.
        """
        view = self.public_dir.parent / "unpacked" / "files"
        return view if view.is_dir() else self.public_dir


def refuse_others(given: object) -> None:
    """Refuse what is no competition, above all its id.

    Raises:
        InputError: It is none.
    """
    if not isinstance(given, Competition):
        msg = f"{given!r:.80} is no competition: give Registry(…).get_competition(id)"
        raise InputError(msg)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError:  # answers that another user prepared
        return False
