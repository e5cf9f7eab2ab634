"""Whether a submission is valid, told by the sample submission alone.

MLE-bench's `/validate` runs the grader on the answers and hands out what it raised. Here nothing
behind an answer is opened, so that whatever an agent is told, it could have found out itself.
"""

import csv
import io
import math
import os
import re
import stat
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langgraft._core.errors import CompetitionError, LanggraftError
from langgraft._core.lazy import require
from langgraft.environments.competitions.competition import Competition, Values, refuse_others
from langgraft.environments.competitions.graders import SUM_TOLERANCE
from langgraft.environments.competitions.preparing import not_prepared

if TYPE_CHECKING:
    import pandas as pd

_MIB: Final = 1 << 20
_EXAMPLES: Final = 3
_LONG: Final = re.compile(r'([^,"\r\n]{1000})[^,"\r\n]+')
"""A value of more than 1,000 characters: masks of pictures as run lengths have half a million."""
_PURPOSE: Final = "Reading submissions"
_LARGE: Final = 16 * _MIB
"""Bytes of a sample submission or of answers from which on a submission is read alone."""
_ALONE: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Validity:
    """Whether a submission is like the sample submission. Safe to show to an agent.

    `valid` where there is no reason against it.
    """

    valid: bool
    reasons: tuple[str, ...] = ()
    """What is wrong, each in a line; empty where it is valid."""


def check_submission(
    submission: "Path | str | bytes | pd.DataFrame", competition: Competition
) -> Validity:
    """Hold a submission against the sample submission; never opens the private folder.

    It is valid with the columns of the sample (in any order), its number of rows, its ids as
    often as they are there (in any order), and finite numbers wherever the sample has numbers, which
    are such as the metric takes (`Values`: probabilities, rows that sum up to 1 …). A file is read only up to 16 MiB and twelve times the size of the sample.

    Args:
        submission: A CSV file, what such a file holds, or a frame.
        competition: Its data must be prepared.

    Raises:
        CompetitionError: The sample submission is not there, or not public.
        MissingExtraError: pandas is not installed.
    """
    sample_data = _sample_bytes(competition)
    with alone(len(sample_data)):
        return _checked(submission, competition, sample_data)


@contextmanager
def alone(size: int) -> Iterator[None]:
    """Let one large submission be read at a time in a process; small ones do not wait.

    Of 5.35 million rows each takes 1.7 GB, and several would take no less time together.

    Args:
        size: Bytes of what the submission is held against.
    """
    if size < _LARGE:
        yield
        return
    with _ALONE:
        yield


def _checked(
    submission: "Path | str | bytes | pd.DataFrame", competition: Competition, sample_data: bytes
) -> Validity:
    sample = read_frame(sample_data)
    ids = competition.id_columns or tuple(sample.columns[:1])
    if not ids or not set(ids) <= set(sample.columns):
        msg = f"has no columns {', '.join(ids)}, which name its rows"
        raise CompetitionError(msg, path=competition.sample_submission)
    try:
        if isinstance(submission, str | Path):
            submission = read_bounded(Path(submission), most=most_bytes(len(sample_data)))
        if isinstance(submission, bytes):
            submission = _frame_like(submission, sample, sample_data)
        found = _compared(submission, sample, ids)
        if not found.valid:
            return found
        reasons = tuple(_refused(submission, sample, ids, competition.grader.values))
        return Validity(valid=not reasons, reasons=reasons)
    except UnusableFileError as error:
        return Validity(valid=False, reasons=(str(error),))


def most_bytes(sample: int) -> int:
    """Return how many bytes a submission may have, for a sample submission of so many."""
    return 16 * _MIB + 12 * sample  # a sample of zeros grows tenfold with full precision


def read_frame(data: bytes, *, rows: int | None = None) -> "pd.DataFrame":
    """Read CSV as MLE-bench does: numbers come back as they were written.

    Args:
        data: The file. One that is empty makes an empty frame.
        rows: The most that are read; `None` for all.

    Raises:
        UnusableFileError: It cannot be read as CSV.
        MissingExtraError: pandas is not installed.
    """
    pandas: Any = require("pandas", extra="mle", purpose=_PURPOSE)
    frame: pd.DataFrame
    try:
        frame = pandas.read_csv(io.BytesIO(data), low_memory=False, nrows=rows, **_exact(pandas))
    except pandas.errors.EmptyDataError:
        frame = pandas.DataFrame()
    except (pandas.errors.ParserError, ValueError, OverflowError) as error:
        why = _shown(" ".join(str(error).split()), 120)
        raise UnusableFileError(f"it cannot be read as CSV: {why}") from error
    return frame


def _exact(pandas: Any) -> dict[str, str]:
    """Return what makes pandas read numbers as they were written: by itself from 3.1 on."""
    major, minor = (int(each) for each in pandas.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def refuse_wide(data: bytes, *, most: int, row: int) -> list[str]:
    """Return the header of a CSV file, refusing rows whose mere width would eat the memory.

    pandas takes a first row that is longer than the header for one with an index of so many
    levels; a million of them, or of columns, are gigabytes and minutes.

    Args:
        data: The file.
        most: How many values the first row may have beyond the header's.
        row: The length in bytes of a row as it is expected.

    Returns:
        The names of the columns; of very long ones, how they begin.

    Raises:
        UnusableFileError: The header or the first row is longer than that, or does not end.
    """
    prefix = _MIB + 24 * row
    # Shortened: `csv` refuses values of more than 128 KiB, unless it is told otherwise globally.
    text = _LONG.sub(r"\1", data[:prefix].decode("utf-8-sig", "replace"))
    stream = io.StringIO(text, newline="")
    try:
        lines = (fields for fields in csv.reader(stream) if fields)
        header, first = next(lines, []), next(lines, [])
    except csv.Error as error:
        raise UnusableFileError(f"it cannot be read as CSV: {error}") from error
    if len(data) > prefix and stream.tell() >= len(text):
        raise UnusableFileError(f"its first two lines are longer than {prefix:,} bytes")
    if len(header) > 1000 + row:
        raise UnusableFileError(f"its header has {len(header):,} columns")
    if len(first) > len(header) + most:
        msg = f"its first row has {len(first)} values, its header {len(header)} columns"
        raise UnusableFileError(msg)
    return header


def sample_file(competition: Competition) -> Path:
    """Return the sample submission that submissions are held against.

    Raises:
        CompetitionError: It is not there, or not public.
        InputError: It is no competition.
    """
    refuse_others(competition)
    path = competition.sample_submission
    if not path.is_relative_to(competition.public_dir):
        msg = (
            f"{competition.id} keeps its sample submission in its private folder:"
            " submissions can be graded, but not checked without looking there"
        )
        raise CompetitionError(msg)
    try:
        there = path.is_file()
    except PermissionError as error:
        raise CompetitionError(f"cannot be read: {error.strerror}", path=path) from error
    if not there:
        raise CompetitionError(not_prepared(competition))
    return path


def _sample_bytes(competition: Competition) -> bytes:
    path = sample_file(competition)
    try:
        if path.suffix != ".zip":
            return path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            (name,) = archive.namelist()
            return archive.read(name)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise CompetitionError(f"cannot be read: {error}", path=path) from error


def _frame_like(data: bytes, sample: "pd.DataFrame", sample_data: bytes) -> "pd.DataFrame":
    """Read a submission no further than what can be like the sample."""
    if len(data) > most_bytes(len(sample_data)):
        most = most_bytes(len(sample_data))
        msg = f"it is too large: {len(data):,} bytes, and at most {most:,} are read"
        raise UnusableFileError(msg)
    row = len(sample_data) // (len(sample) + 1)
    wanted = refuse_wide(sample_data, most=0, row=row)
    if wrong := _columns_differ(refuse_wide(data, most=0, row=row), wanted):
        raise UnusableFileError(wrong)
    return read_frame(data, rows=len(sample) + 1)


def _compared(submission: "pd.DataFrame", sample: "pd.DataFrame", ids: Sequence[str]) -> Validity:
    if wrong := _columns_differ(_columns(submission), _columns(sample)):
        return Validity(valid=False, reasons=(wrong,))
    reasons = []
    if len(submission) > len(sample):
        reasons.append(f"it has more rows than the {len(sample):,} of the sample submission")
    else:
        if len(submission) < len(sample):
            reasons.append(
                f"it has {len(submission):,} rows, the sample submission {len(sample):,}"
            )
        reasons += _ids_differ(submission[list(ids)], sample[list(ids)])
    values = (name for name in sample.columns if name not in ids)
    reasons += [
        wrong for name in values if (wrong := _not_numbers(name, submission[name], sample[name]))
    ]
    return Validity(valid=not reasons, reasons=tuple(reasons))


def _columns(frame: "pd.DataFrame") -> list[str]:
    return [str(each) for each in frame.columns]


def _columns_differ(columns: Sequence[str], wanted: Sequence[str]) -> str:
    """Say how columns differ from the sample's; nothing where they do not."""
    if sorted(columns) == sorted(wanted):
        return ""
    parts = []
    if missing := [each for each in wanted if each not in columns]:
        parts.append(f"missing {_examples(missing)}")
    if further := [each for each in columns if each not in wanted]:
        parts.append(f"not in the sample submission {_examples(further)}")
    if "" in columns and "" not in wanted:
        parts.append("a column without a name is what a table written with its index has")
    twice = [each for each in wanted if list(columns).count(each) > 1]
    if twice:
        parts.append(f"more than once {_examples(twice)}")
    return f"its columns are not those of the sample submission: {'; '.join(parts)}"


def _ids_differ(submission: "pd.DataFrame", sample: "pd.DataFrame") -> list[str]:
    """Say how ids differ, by themselves and how often each is there."""
    ours, theirs = _keys(sample, submission), _keys(submission, sample)
    if len(ours) == len(theirs) and bool((ours.to_numpy() == theirs.to_numpy()).all()):
        return []
    wanted, there = ours.value_counts(sort=False), theirs.value_counts(sort=False)
    found = there.reindex(wanted.index, fill_value=0)
    if len(there) == len(wanted) and bool((found == wanted).all()):
        return []
    wrong = (
        ("ids are missing", wanted.index[found < wanted]),
        ("ids are not in the sample submission", there.index[~there.index.isin(wanted.index)]),
        ("ids are there too often", wanted.index[found > wanted]),
    )
    return [
        f"{len(rows):,} {what}: {_examples(rows.tolist())}" for what, rows in wrong if len(rows)
    ]


def _keys(frame: "pd.DataFrame", other: "pd.DataFrame") -> Any:
    """Return what names each row: as both frames have it, or else texts."""
    pandas: Any = require("pandas", extra="mle", purpose=_PURPOSE)
    if frame.shape[1] == 1:
        ours, theirs = frame.dtypes.iloc[0], other.dtypes.iloc[0]
        if ours == theirs or (ours.kind in "iuf" and theirs.kind in "iuf"):
            return frame.iloc[:, 0]
    rows = frame.itertuples(index=False, name=None)
    return pandas.Series([" / ".join(map(str, row)) for row in rows], dtype=object)


def _not_numbers(name: str, submission: "pd.Series[Any]", sample: "pd.Series[Any]") -> str:
    """Say which values are not the finite numbers that the sample has; nothing where all are."""
    pandas: Any = require("pandas", extra="mle", purpose=_PURPOSE)
    if sample.dtype.kind not in "biuf" or submission.empty:
        return ""
    numbers = submission.dtype.kind in "biuf"
    # As texts otherwise: integers of hundreds of digits are no floats.
    told = submission if numbers else submission.astype(str)
    values = pandas.to_numeric(told, errors="coerce").astype("float64")
    bad = ~(values.abs() < float("inf"))  # NaN is below nothing
    if sample.isna().any():
        bad &= submission.notna()
    if not bad.any() and numbers:
        return ""
    shown = _examples(submission[bad].tolist()) or "too many digits"
    what = "values are" if bad.sum() != 1 else "value is"
    return f"column {_shown(name, 40)!r}: {int(bad.sum()):,} {what} no finite number: {shown}"


def _refused(
    submission: "pd.DataFrame", sample: "pd.DataFrame", ids: Sequence[str], values: Values
) -> Iterator[str]:
    """Say which numbers the metric refuses, whatever the answers are."""
    if values == Values():
        return  # a sample may have millions of rows
    numpy: Any = require("numpy", extra="mle", purpose=_PURPOSE)
    numbers = [n for n in sample.columns if n not in ids and sample[n].dtype.kind in "biuf"]
    least, most = (
        math.inf * sign if bound is None else bound
        for sign, bound in ((-1, values.least), (1, values.most))
    )
    for name in numbers:
        given = submission[name].astype("float64")
        for bad, which in (
            (given < least, f"below {least:g}"),
            (given > most, f"above {most:g}"),
            (given % 1 > 0 if values.whole else given > math.inf, "that are no whole number"),
        ):
            if bad.any():
                shown = (
                    f"{int(bad.sum()):,} times, as in {_examples(submission[name][bad].tolist())}"
                )
                yield f"column {_shown(name, 40)!r}: the metric takes no values {which}: {shown}"
    if values.sum is not None:
        sums = submission[numbers].sum(axis=1)
        off = ~numpy.isclose(sums, values.sum, atol=SUM_TOLERANCE)
        if off.any():
            shown = f"{int(off.sum()):,} times, as in {_examples(sums[off].tolist())}"
            yield f"the metric takes no rows that do not add up to {values.sum:g}: {shown}"


def _examples(values: Sequence[object]) -> str:
    shown = ", ".join(repr(_shown(_written(each), 40)) for each in values[:_EXAMPLES])
    return shown if len(values) <= _EXAMPLES else f"{shown} …"


def _written(value: object) -> str:
    whole = isinstance(value, float) and value.is_integer()  # an empty id makes all ids floats
    return str(int(value)) if isinstance(value, float) and whole else str(value)


def _shown(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


class UnusableFileError(LanggraftError):
    """A file cannot be taken as a submission; the message may be shown to an agent."""


def read_bounded(path: Path, *, most: int) -> bytes:
    """Return what a regular file holds.

    Never follows a symbolic link in the last component (it may lead to the answers), never waits
    at a pipe, and never reads more than `most` bytes.

    Raises:
        UnusableFileError: There is no such file, it is no regular file, or too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        if os.path.islink(path):  # noqa: PTH114  (`Path.is_symlink` raises for long names)
            raise UnusableFileError("it is a symbolic link, not a file") from error
        raise UnusableFileError("there is no file that can be read") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableFileError("it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1) if status.st_size <= most else b""
    except OSError as error:
        raise UnusableFileError(f"it cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if status.st_size > most or len(data) > most:
        size = max(status.st_size, len(data))
        msg = f"it is too large: {size:,} bytes, and at most {most:,} are read"
        raise UnusableFileError(msg)
    return data
