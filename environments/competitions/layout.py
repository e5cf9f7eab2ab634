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

import ast
import csv
import hashlib
import importlib
import io
import math
import re
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from langgraft._core.errors import CompetitionError, MissingExtraError
from langgraft._core.untrusted import load_yaml, parse_program
from langgraft.environments.competitions.competition import (
    Board,
    Competition,
    Grader,
    MetricGroup,
    Modality,
    Values,
)

CONFIG: Final = "config.yaml"
DESCRIPTION: Final = "description.md"
LEADERBOARD: Final = "leaderboard.csv"
CHECKSUMS: Final = "checksums.yaml"

_MOST_BYTES: Final = 1 << 24
"""Of a text in a competition's folder: leaderboards of thousands of teams have half a megabyte."""
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FUNCTION: Final = re.compile(r"([A-Za-z0-9_.-]+):([A-Za-z_]\w*)")
_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_COLUMNS: Final = ("score", "scorenullable")
"""The first that is there, in any case, holds the scores: Kaggle's exports have both."""
_GAPS: Final = {"", "nan", "na", "n/a", "null", "none"}

Checked = TypeVar("Checked", bound=BaseModel)


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class DatasetConfig(_Config):
    """Where the files of a prepared competition are, relative to the data folder."""

    answers: str
    sample_submission: str
    gold_submission: str | None = None


class GraderConfig(_Config):
    """The metric's name, `module:function` that computes it, and ours, what that refuses of numbers."""

    name: str = Field(min_length=1)
    grade_fn: str
    values: Values = Field(default_factory=Values)


class CompetitionConfig(_Config):
    """A `config.yaml`: MLE-bench's keys, and six of ours, all optional."""

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
    config = _read_config(folder)
    checksums = folder / CHECKSUMS
    data, dataset = data_dir / config.id, config.dataset
    answers = data_dir / _data_file(folder, "answers", dataset.answers)
    sample = data_dir / _data_file(folder, "sample_submission", dataset.sample_submission)
    gold = None
    if dataset.gold_submission is not None:
        gold = data_dir / _data_file(folder, "gold_submission", dataset.gold_submission)
    description = read_text(_own_file(folder, config.description, field="description"))
    grade = _own_function(folder, config.grader.grade_fn, field="grader.grade_fn")
    board = (board_of or _board)(folder / LEADERBOARD, config.is_lower_better)
    prepare = None
    if config.preparer is not None:
        prepare = _own_function(folder, config.preparer, field="preparer")
    return Competition(
        id=config.id,
        name=config.name,
        description=description,
        competition_type=config.competition_type,
        modality=config.modality,
        metric_group=config.metric_group,
        grader=Grader(config.grader.name, grade, config.grader.values),
        board=board,
        raw_dir=data / "raw",
        public_dir=data / "prepared" / "public",
        private_dir=data / "prepared" / "private",
        answers=answers,
        sample_submission=sample,
        prepare_fn=prepare,
        gold_submission=gold,
        source_modules=tuple(config.source_modules),
        checksums=checksums if checksums.is_file() else None,
        id_columns=tuple(config.id_columns),
    )


def _read_config(folder: Path) -> CompetitionConfig:
    path = folder / CONFIG
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise CompetitionError("holds no mapping of keys to values", path=path)
    config = validated(CompetitionConfig, {"id": folder.name} | found, path)
    if not is_competition_id(config.id) or config.id != folder.name:
        msg = f"`id`: {config.id[:80]!r} is not the folder's name, {folder.name!r}"
        raise CompetitionError(msg, path=path)
    return config


def _data_file(folder: Path, field: str, text: str) -> Path:
    """Return a data file's path relative to the data folder: `<id>/prepared/private/a.csv`.

    It must be below `<id>/prepared/`, and answers not where agents look.
    """
    path = PurePosixPath(text)
    inside = path.parts[:2] == (folder.name, "prepared") and len(path.parts) > 2  # noqa: PLR2004
    if not inside or ".." in path.parts or "\\" in text or "\0" in text:
        msg = f"`dataset.{field}`: {text[:120]!r} is not a file below {folder.name}/prepared/"
        raise CompetitionError(msg, path=folder / CONFIG)
    if field != "sample_submission" and path.parts[2] == "public":
        msg = f"`dataset.{field}`: {text[:120]!r} is in public, where agents see it"
        raise CompetitionError(msg, path=folder / CONFIG)
    return Path(path)


def _own_file(folder: Path, text: str, *, field: str) -> Path:
    """Return a file that lies beside `config.yaml`, which names it.

    MLE-bench's own prefix is taken off: `mlebench/competitions/<id>/description.md`.
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


def _own_function(folder: Path, text: str, *, field: str) -> "OwnFunction":
    """Return the function that `grade:grade`, or `mlebench.competitions.<id>.grade:grade`, names."""
    match = _FUNCTION.fullmatch(text)
    module = match[1].removeprefix(f"mlebench.competitions.{folder.name}.") if match else ""
    if match is None or not module.isidentifier():
        msg = f"`{field}`: {text[:120]!r} is not `module:function` of a file beside it"
        raise CompetitionError(msg, path=folder / CONFIG)
    return OwnFunction(_own_file(folder, f"{module}.py", field=field), match[2])


def is_competition_id(text: str) -> bool:
    """Whether a text can be the id of a competition, and the name of its folder."""
    return _ID.fullmatch(text) is not None


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
    if data.startswith(_POINTER):
        msg = "is a pointer of Git LFS, not the file itself: run `git lfs pull` in its repository"
        raise CompetitionError(msg, path=path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CompetitionError(f"is not UTF-8 at byte {error.start}", path=path) from error


def validated(kind: type[Checked], found: object, path: Path) -> Checked:
    """Return what a file holds as a model.

    Raises:
        CompetitionError: It is not what its format asks for.
    """
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise CompetitionError(f"`{field[:80]}`: {first['msg']}", path=path) from error


def read_yaml(path: Path) -> Any:
    """Read a YAML file of a competition's folder.

    Raises:
        CompetitionError: It cannot be read, or is not YAML.
    """
    try:
        return load_yaml(read_text(path))
    except ValueError as error:
        raise CompetitionError(f"is not YAML: {error}", path=path) from error


class OwnFunction:
    """A function of a competition's own file: `grade.py`, `prepare.py`.

    It is the code of whoever wrote the competition. It is imported when it is first called, not
    when competitions are listed, and as part of a package whose name nobody else uses, so that
    `from .classes import CLASSES` works and ten competitions can each have a `grade.py`.

    Args:
        file: The Python file in the competition's folder.
        name: The function in it.

    Raises:
        CompetitionError: The file is not Python, or does not define the name.
    """

    def __init__(self, file: Path, name: str) -> None:
        self.file = file
        self.name = name
        if name not in _names(file):
            raise CompetitionError(f"defines no `{name}`", path=file)

    def __repr__(self) -> str:
        return f"OwnFunction({self.file}, {self.name})"

    def load(self) -> Callable[..., Any]:
        """Import the file and return the function.

        Raises:
            CompetitionError: The file cannot be imported, or the name is no function.
        """
        importlib.invalidate_caches()  # the folder may be newer than what Python knows of it
        try:
            module = importlib.import_module(f"{_package(self.file.parent)}.{self.file.stem}")
        except (CompetitionError, MissingExtraError):
            raise
        except ModuleNotFoundError as error:
            msg = f"needs `{error.name}`, which is not installed"
            raise CompetitionError(msg, path=self.file) from error
        except (Exception, SystemExit) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise CompetitionError(f"cannot be imported: {why}", path=self.file) from error
        function = getattr(module, self.name, None)
        if not callable(function):
            raise CompetitionError(f"`{self.name}` is not a function", path=self.file)
        loaded: Callable[..., Any] = function
        return loaded

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.load()(*args, **kwargs)


def _package(folder: Path) -> str:
    """Make a folder a package of a private name; return the name."""
    place = folder.resolve()
    name = f"_langgraft_competition_{hashlib.sha256(str(place).encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(place)]
        module: ModuleType = module_from_spec(spec)
        sys.modules[name] = module
    return name


def _names(file: Path) -> set[str]:
    """Return the names that a file's top level binds, without running it."""
    try:
        tree = parse_program(read_text(file), str(file))
    except (SyntaxError, ValueError) as error:
        raise CompetitionError(f"is not Python: {error}", path=file) from error
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((each.asname or each.name).split(".")[0] for each in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(each.id for each in targets if isinstance(each, ast.Name))
    return names


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
    """Whether a file holds, instead of its content, a pointer of Git LFS."""
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER


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


def _board(path: Path, lower_is_better: bool | None) -> Board:
    if not path.is_file():
        raise CompetitionError("is missing: a competition is judged by its board", path=path)
    return read_board(path, lower_is_better=lower_is_better)
