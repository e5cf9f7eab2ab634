"""One competition: what an agent is told, where its data lies, and how it is judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from langgraft._core.errors import InputError
from langgraft.environments.competitions.medals import Board

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

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

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

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

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

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
