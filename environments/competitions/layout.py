"""MLE-bench's layout of a competition, read and checked: everything in it is untrusted.

<id>/config.yaml       this module
<id>/description.md    what an agent reads
<id>/grade.py          grade(submission, answers) -> float
<id>/prepare.py        prepare(raw, public, private)
<id>/leaderboard.csv   a column `score`, best first
<id>/checksums.yaml    MD5 of what `prepare` makes; optional

<data>/<id>/raw, <data>/<id>/prepared/public, <data>/<id>/prepared/private

The last line is the data, made from what `raw` holds: only `public` is shown to an agent.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from langgraft._core.errors import CompetitionError
from langgraft._core.untrusted import load_yaml
from langgraft.environments.competitions.competition import MetricGroup, Modality

CONFIG: Final = "config.yaml"
DESCRIPTION: Final = "description.md"
LEADERBOARD: Final = "leaderboard.csv"
CHECKSUMS: Final = "checksums.yaml"

_MOST_BYTES: Final = 1 << 24
"""Of a text in a competition's folder: leaderboards of thousands of teams have half a megabyte."""
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FUNCTION: Final = re.compile(r"([A-Za-z0-9_.-]+):([A-Za-z_]\w*)")
_POINTER: Final = b"version https://git-lfs.github.com/spec/"


class DatasetConfig(BaseModel):
    """Where the files of a prepared competition are, relative to the data folder."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    answers: str
    sample_submission: str
    gold_submission: str | None = None


class GraderConfig(BaseModel):
    """The metric's name, and `module:function` that computes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(min_length=1)
    grade_fn: str


class CompetitionConfig(BaseModel):
    """A `config.yaml`: MLE-bench's keys, and five of ours, all optional."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    name: str = Field(min_length=1)
    competition_type: str = Field("simple", min_length=1)
    awards_medals: bool | None = None
    prizes: Any = None
    description: str = DESCRIPTION
    dataset: DatasetConfig
    grader: GraderConfig
    preparer: str | None = None

    modality: Modality | None = None
    metric_group: MetricGroup | None = None
    source_modules: Sequence[str] = ()
    """Modules that carry the source data: none may be importable where agents' code runs."""
    is_lower_better: bool | None = None
    """Needed only where the leaderboard does not tell: all its scores are equal."""
    id_columns: Sequence[str] = ()
    """Columns of the sample submission that name its rows; none: the first one."""


def is_competition_id(text: str) -> bool:
    """Whether a text can be the id of a competition, and the name of its folder."""
    return _ID.fullmatch(text) is not None


def is_pointer(data: bytes) -> bool:
    """Whether a file holds, instead of its content, a pointer of Git LFS."""
    return data.startswith(_POINTER)


def read_text(path: Path) -> str:
    """Read a text file of a competition's folder.

    Raises:
        CompetitionError: It is missing, too large, no UTF-8, or a pointer of Git LFS.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CompetitionError(f"cannot be read: {error.strerror}", path=path) from error
    if len(data) > _MOST_BYTES:
        raise CompetitionError(f"is larger than {_MOST_BYTES:,} bytes", path=path)
    if is_pointer(data):
        msg = "is a pointer of Git LFS, not the file itself: run `git lfs pull` in its repository"
        raise CompetitionError(msg, path=path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CompetitionError(f"is not UTF-8 at byte {error.start}", path=path) from error


def read_yaml(path: Path) -> Any:
    """Read a YAML file of a competition's folder.

    Raises:
        CompetitionError: It cannot be read, or is not YAML.
    """
    try:
        return load_yaml(read_text(path))
    except ValueError as error:
        raise CompetitionError(f"is not YAML: {error}", path=path) from error


def read_config(folder: Path) -> CompetitionConfig:
    """Read `<folder>/config.yaml`, and check that what it names stays where it belongs.

    Raises:
        CompetitionError: The file is missing or says something that is not allowed.
    """
    path = folder / CONFIG
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise CompetitionError("holds no mapping of keys to values", path=path)
    found = {"id": folder.name} | found
    try:
        config = CompetitionConfig.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise CompetitionError(f"`{field[:80]}`: {first['msg']}", path=path) from error
    if not is_competition_id(config.id) or config.id != folder.name:
        msg = f"`id`: {config.id[:80]!r} is not the folder's name, {folder.name!r}"
        raise CompetitionError(msg, path=path)
    data_file(config, "answers", folder)
    data_file(config, "sample_submission", folder)
    data_file(config, "gold_submission", folder)
    return config


DataField = Literal["answers", "sample_submission", "gold_submission"]


def data_file(config: CompetitionConfig, field: DataField, folder: Path) -> PurePosixPath | None:
    """Return a data file's path relative to the data folder: `<id>/prepared/private/a.csv`.

    Raises:
        CompetitionError: It is not below `<id>/prepared/`, or answers are where agents look.
    """
    text: str | None = getattr(config.dataset, field)
    if text is None:
        return None
    path = PurePosixPath(text)
    inside = path.parts[:2] == (config.id, "prepared") and len(path.parts) > 2  # noqa: PLR2004
    if not inside or ".." in path.parts or "\\" in text or "\0" in text:
        msg = f"`dataset.{field}`: {text[:120]!r} is not a file below {config.id}/prepared/"
        raise CompetitionError(msg, path=folder / CONFIG)
    if field != "sample_submission" and path.parts[2] == "public":
        msg = f"`dataset.{field}`: {text[:120]!r} is in public, where agents see it"
        raise CompetitionError(msg, path=folder / CONFIG)
    return path


def own_file(folder: Path, text: str, *, field: str) -> Path:
    """Return a file that lies beside `config.yaml`; MLE-bench's own prefix is taken off.

    Args:
        folder: The competition's folder.
        text: `description.md`, or `mlebench/competitions/<id>/description.md`.
        field: The key of `config.yaml` that says so, for the error.

    Raises:
        CompetitionError: There is no such file, or it is outside of the folder.
    """
    path = PurePosixPath(text.removeprefix(f"mlebench/competitions/{folder.name}/"))
    refused = path.is_absolute() or ".." in path.parts or "\0" in text or not path.parts
    target = folder if refused else folder / path
    if refused or not target.resolve().is_relative_to(folder.resolve()):
        msg = f"`{field}`: {text[:120]!r} leads out of the competition's folder"
        raise CompetitionError(msg, path=folder / CONFIG)
    if not target.is_file():
        msg = f"`{field}`: there is no file {str(path)[:120]!r} beside it"
        raise CompetitionError(msg, path=folder / CONFIG)
    return target


def own_function(folder: Path, text: str, *, field: str) -> tuple[Path, str]:
    """Split `grade:grade`, or `mlebench.competitions.<id>.grade:grade`, into file and function.

    Raises:
        CompetitionError: It is not of that form, or there is no such file beside `config.yaml`.
    """
    match = _FUNCTION.fullmatch(text)
    module = match[1].removeprefix(f"mlebench.competitions.{folder.name}.") if match else ""
    if match is None or not module.isidentifier():
        msg = f"`{field}`: {text[:120]!r} is not `module:function` of a file beside it"
        raise CompetitionError(msg, path=folder / CONFIG)
    return own_file(folder, f"{module}.py", field=field), match[2]
