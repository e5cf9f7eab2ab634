"""Grades submissions, and reports them as `mlebench grade` does."""

import itertools
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from langgraft._core.effects import Clock, SystemClock
from langgraft._core.errors import CompetitionError, MissingExtraError
from langgraft.environments.competitions.competition import (
    Competition,
    above_median,
    medal,
    refuse_others,
    rounded,
)
from langgraft.environments.competitions.preparing import not_prepared
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.competitions.submissions import (
    UnusableFileError,
    alone,
    most_bytes,
    read_bounded,
    read_frame,
    refuse_wide,
)

_log: Final = logging.getLogger(__name__)


class CompetitionReport(BaseModel):
    """What a submission earned: the fields, in their order, that `mlebench grade` writes.

    Of the file `submission_path` for `competition_id`, at `created_at`. Scores that earn something:
    `gold_threshold`, `silver_threshold`, `bronze_threshold`, `median_threshold`; what was earned:
    `any_medal`, of which one of `gold_medal`, `silver_medal`, `bronze_medal`, and `above_median`.
    `is_lower_better` is the metric's direction.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    competition_id: str
    score: float | None
    """Five decimals; `None` where the submission is not valid."""
    gold_threshold: float
    silver_threshold: float
    bronze_threshold: float
    median_threshold: float
    any_medal: bool
    gold_medal: bool
    silver_medal: bool
    bronze_medal: bool
    above_median: bool
    submission_exists: bool
    """Whether there is a file, and its name ends in `.csv`."""
    valid_submission: bool
    """Whether the grader gave it a score that is a finite number."""
    is_lower_better: bool
    created_at: datetime
    submission_path: str


class GradingReport(BaseModel):
    """Totals over submissions, and the report of each.

    `total_runs` counts submissions, `total_runs_with_submissions` those whose file is there,
    `total_valid_submissions` those with a score, `total_medals`, `total_gold_medals`,
    `total_silver_medals`, `total_bronze_medals` and `total_above_median` what they earned;
    `competition_reports` has each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    total_runs: int
    total_runs_with_submissions: int
    total_valid_submissions: int
    total_medals: int
    total_gold_medals: int
    total_silver_medals: int
    total_bronze_medals: int
    total_above_median: int
    competition_reports: tuple[CompetitionReport, ...]

    @classmethod
    def of(cls, reports: Iterable[CompetitionReport]) -> "GradingReport":
        """Add up reports."""
        all_ = tuple(reports)
        return cls(
            total_runs=len(all_),
            total_runs_with_submissions=sum(each.submission_exists for each in all_),
            total_valid_submissions=sum(each.valid_submission for each in all_),
            total_medals=sum(each.any_medal for each in all_),
            total_gold_medals=sum(each.gold_medal for each in all_),
            total_silver_medals=sum(each.silver_medal for each in all_),
            total_bronze_medals=sum(each.bronze_medal for each in all_),
            total_above_median=sum(each.above_median for each in all_),
            competition_reports=all_,
        )


@dataclass(frozen=True, slots=True)
class Score:
    """What a grader said of a submission."""

    value: float | None
    """Five decimals; `None` where the submission is not valid."""
    problem: str = ""
    """Why there is no score. It may tell of the answers: for the log, never for an agent."""


def grade_submission(
    submission: Path | str, competition: Competition, *, clock: Clock | None = None
) -> CompetitionReport:
    """Grade a submission by the competition's answers and its board.

    A submission that cannot be graded is a report like any other, without a score; why is logged
    as a warning of this module's logger.

    Args:
        submission: A CSV file; it need not be there.
        competition: Its data must be prepared.
        clock: When the report says it was made; the machine's clock by default.

    Raises:
        CompetitionError: The data is not prepared, or the competition's own files are at fault.
        MissingExtraError: pandas or scikit-learn is not installed.
    """
    refuse_others(competition)
    path = Path(submission)
    if _absent(competition.answers):
        raise CompetitionError(not_prepared(competition))
    exists = os.path.isfile(path) and path.suffix.lower() == ".csv"  # noqa: PTH113  (never raises)
    score = score_file(path, competition) if exists else Score(None, _why_none(path))
    if score.value is None:
        _log.warning("%s, %s: no score: %s", competition.id, path, score.problem)
    return report(score.value, competition, path, exists=exists, clock=clock or SystemClock())


def score_file(path: Path, competition: Competition) -> Score:
    """Run the competition's grader on a file.

    Raises:
        CompetitionError: The competition's own files are at fault.
        MissingExtraError: pandas or scikit-learn is not installed.
    """
    try:
        size = competition.answers.stat().st_size
    except OSError as error:
        msg = f"cannot be read: {error.strerror}"
        raise CompetitionError(msg, path=competition.answers) from error
    with alone(size):
        return _scored(path, competition, size)


def _scored(path: Path, competition: Competition, size: int) -> Score:
    answers = _read_answers(competition.answers)
    try:
        data = read_bounded(path, most=most_bytes(2 * size))
        refuse_wide(data, most=1, row=2 * size // (len(answers) + 1))
        submission = read_frame(data)
    except UnusableFileError as error:
        return Score(None, str(error))
    try:
        value = competition.grader.grade(submission, answers)
        score = rounded(value)
    except (CompetitionError, MissingExtraError):
        raise
    except MemoryError as error:  # perhaps the machine's fault: no verdict on the submission
        raise CompetitionError(f"the memory ran out when {path} was graded") from error
    except (Exception, SystemExit) as error:  # noqa: BLE001  (graders raise anything for what they cannot grade)
        return Score(None, " ".join(f"{type(error).__name__}: {error}".split())[:1000])
    return Score(score, "" if score is not None else f"the grader returned {value!r}")


def report(
    score: float | None, competition: Competition, submission: Path, *, exists: bool, clock: Clock
) -> CompetitionReport:
    """Say what a score earns on the competition's board."""
    board, earned = competition.board, medal(score, competition.board)
    thresholds = board.thresholds
    return CompetitionReport(
        competition_id=competition.id,
        score=rounded(score),
        gold_threshold=thresholds.gold,
        silver_threshold=thresholds.silver,
        bronze_threshold=thresholds.bronze,
        median_threshold=thresholds.median,
        any_medal=earned is not None,
        gold_medal=earned == "gold",
        silver_medal=earned == "silver",
        bronze_medal=earned == "bronze",
        above_median=above_median(score, board),
        submission_exists=exists,
        valid_submission=rounded(score) is not None,
        is_lower_better=thresholds.lower_is_better,
        created_at=datetime.fromtimestamp(clock.time(), tz=UTC),
        submission_path=str(submission),
    )


def grade_jsonl(
    lines: Iterable[str], registry: Registry, *, clock: Clock | None = None
) -> GradingReport:
    """Grade submissions that are listed as MLE-bench lists them.

    Args:
        lines: `{"competition_id": …, "submission_path": …}` each; empty ones, and ones that begin
            with `#` or `//`, are skipped. All are read before the first is graded.
        registry: Where the competitions are found.
        clock: When the reports say they were made; the machine's clock by default.

    Raises:
        CompetitionError: A line is not of that form, or its competition cannot be graded here.
        MissingExtraError: pandas or scikit-learn is not installed.
    """
    listed = [
        _listed(text.strip(), number, registry)
        for number, text in enumerate(lines, start=1)
        if text.strip() and not text.strip().startswith(("#", "//"))
    ]
    return GradingReport.of(
        grade_submission(path, competition, clock=clock) for competition, path in listed
    )


def write_report(report: GradingReport, folder: Path, *, clock: Clock | None = None) -> Path:
    """Write a report as `<UTC>_grading_report.json` to a folder; return the file.

    Raises:
        CompetitionError: It cannot be written there.
    """
    now = datetime.fromtimestamp((clock or SystemClock()).time(), tz=UTC)
    stamp = now.strftime("%Y-%m-%dT%H-%M-%S-GMT")  # MLE-bench's form
    text = json.dumps(report_json(report), indent=2) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            suffix = "" if number == 1 else f"-{number}"
            path = folder / f"{stamp}{suffix}_grading_report.json"
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                continue
            return path
    except OSError as error:
        msg = f"the report cannot be written there: {error.strerror or error}"
        raise CompetitionError(msg, path=folder) from error
    raise AssertionError


def report_json(report: GradingReport | CompetitionReport) -> dict[str, Any]:
    """Return a report as JSON, its keys in `mlebench grade`'s order."""
    if isinstance(report, CompetitionReport):
        return report.model_dump() | {"created_at": report.created_at.isoformat()}
    reports = [report_json(each) for each in report.competition_reports]
    return report.model_dump(exclude={"competition_reports"}) | {"competition_reports": reports}


def _listed(text: str, number: int, registry: Registry) -> tuple[Competition, Path]:
    try:
        found = json.loads(text)
        name, path = found["competition_id"], found["submission_path"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"[:200]
        msg = f"line {number} is not {{'competition_id': …, 'submission_path': …}}: {why}"
        raise CompetitionError(msg) from error
    if not isinstance(name, str) or not isinstance(path, str):
        raise CompetitionError(f"line {number}: both values are to be texts")
    try:
        competition = registry.get_competition(name)
    except CompetitionError as error:
        raise CompetitionError(f"line {number}: {error}") from error
    if _absent(competition.answers):
        raise CompetitionError(f"line {number}: {not_prepared(competition)}")
    return competition, Path(path)


def _why_none(path: Path) -> str:
    if not os.path.exists(path):  # noqa: PTH110  (never raises: nobody chose these names for us)
        return "there is no such file"
    return "its name does not end in .csv" if path.is_file() else "it is no file"


def _absent(path: Path) -> bool:
    try:
        return not path.is_file()
    except PermissionError:  # there, but another user's: reading it will say so
        return False


def _read_answers(path: Path) -> Any:
    """Read answers as MLE-bench does: a frame of CSV, or a list of JSON lines."""
    try:
        if path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.strip()]
        if path.suffix == ".csv":
            return read_frame(path.read_bytes())
    except (OSError, ValueError, UnusableFileError) as error:
        raise CompetitionError(f"cannot be read: {error}", path=path) from error
    raise CompetitionError("answers are .csv or .jsonl", path=path)
