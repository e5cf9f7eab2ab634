"""What `langgraft competitions` does: list, prepare, check and grade competitions."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from langgraft._core.canonical import JSON
from langgraft._core.errors import CompetitionError
from langgraft.cli.printing import say, write_json
from langgraft.environments.competitions.archives import unpack_archives
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.grading import (
    CompetitionReport,
    GradingReport,
    grade_jsonl,
    grade_submission,
    report_json,
    write_report,
)
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.competitions.submissions import check_submission


def registry(data_dir: Path | None, folders: Sequence[Path] | None) -> Registry:
    """Make the registry that was asked for.

    Raises:
        CompetitionError: A folder of competitions is not there.
    """
    return Registry(data_dir, folders=folders or ())


def show_all(found: Registry, *, as_json: bool) -> None:
    """List competitions; those whose files are not as they should be say why."""
    told: list[dict[str, JSON]] = []
    for name in found.list_competition_ids():
        try:
            told.append(_summary(found.get_competition(name), found))
        except CompetitionError as error:
            told.append({"id": name, "source": found.get_source(name), "unusable": str(error)})
    if as_json:
        write_json(list(told))
        return
    usable = [each for each in told if "unusable" not in each]
    columns = ("id", "source", "prepared", "modality", "teams", "better", "metric")
    say(f"{len(told)} competitions, data in {found.get_data_dir()}")
    show_columns(columns, [[_word(each[column]) for column in columns] for each in usable])
    for each in told:
        if "unusable" in each:
            say(f"{each['id']} cannot be used: {each['unusable']}")


def show_one(found: Registry, name: str, *, as_json: bool) -> None:
    """Show one competition.

    Raises:
        CompetitionError: There is none of this id, or its files are not as they should be.
    """
    competition = found.get_competition(name)
    told: dict[str, JSON] = {
        **_summary(competition, found),
        "description": competition.description,
        "public": str(competition.public_dir),
        "sample_submission": str(competition.sample_submission),
    }
    if as_json:
        write_json(told)
        return
    say(f"{competition.name} ({competition.id})")
    for key, value in told.items():
        if key not in {"id", "name", "description"}:
            say(f"{key}: {_word(value)}")
    for line in ("", *competition.description.splitlines()):
        say(line)


def show_columns(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns as wide as what is in them: ids are there to be copied, and never cut."""
    lines = [columns, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        say("  ".join(cells).rstrip())


def _summary(competition: Competition, found: Registry) -> dict[str, JSON]:
    thresholds = competition.board.thresholds
    return {
        "id": competition.id,
        "name": competition.name,
        "source": found.get_source(competition.id),
        "modality": competition.modality,
        "metric": competition.grader.name,
        "metric_group": competition.metric_group,
        "better": "lower" if thresholds.lower_is_better else "higher",
        "teams": thresholds.teams,
        "gold": thresholds.gold,
        "silver": thresholds.silver,
        "bronze": thresholds.bronze,
        "median": thresholds.median,
        "prepared": competition.prepared,
    }


def _word(value: JSON) -> JSON:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else value


def prepare(found: Registry, names: Sequence[str], *, force: bool, as_json: bool) -> None:
    """Prepare competitions, or all that ship.

    Raises:
        CompetitionError: One of them cannot be prepared; those before it are.
    """
    chosen = [found.get_competition(each) for each in names or found.get_shipped_competition_ids()]
    told: list[JSON] = []
    for competition in chosen:
        with redirect_stdout(sys.stderr):  # what a prepare.py prints is not our answer
            done = prepare_competition(competition, force=force)
            unpack_archives(competition)
        told.append(
            {
                "id": done.competition_id,
                "path": str(done.path),
                "made": done.made,
                "verified": done.verified,
            }
        )
        if not as_json:
            state = "prepared" if done.made else "was prepared already"
            proof = "" if done.verified else ", without checksums to hold it against"
            say(f"{done.competition_id} {state}{proof}: {done.path}")
    if as_json:
        write_json(told)


def check(submission: Path, competition: Competition, *, as_json: bool) -> bool:
    """Say whether a submission is like the sample submission; return it.

    Raises:
        CompetitionError: There is no sample submission to hold it against.
    """
    validity = check_submission(submission, competition)
    if as_json:
        write_json({"valid": validity.valid, "reasons": list(validity.reasons)})
    else:
        say("valid" if validity.valid else "not valid:")
        for reason in validity.reasons:
            say(f"- {reason}")
    return validity.valid


def grade(
    file: Path, name: str | None, found: Registry, *, output_dir: Path | None, as_json: bool
) -> None:
    """Grade one submission, or those of a list.

    Raises:
        CompetitionError: There is no such competition or list, data is not prepared, or the
            report cannot be written.
    """
    with redirect_stdout(sys.stderr):  # graders print; standard output is the report
        report = _graded(file, name, found)
    # Shown first: what was graded is not lost where it cannot be written.
    if as_json:
        _write(report if name is None else report.competition_reports[0])
    else:
        _show(report)
    written = None if output_dir is None else write_report(report, output_dir)
    if written is not None and not as_json:
        say(f"report: {written}")


def _graded(file: Path, name: str | None, found: Registry) -> GradingReport:
    if name is None:
        return grade_jsonl(_lines(file), found)
    competition = found.get_competition(name)
    if not os.path.exists(file):  # noqa: PTH110  (never raises); in a list it is a run without a submission, as for MLE-bench
        raise CompetitionError("there is no such file", path=file)
    return GradingReport.of([grade_submission(file, competition)])


def _show(report: GradingReport) -> None:
    columns = ("competition", "score", "medal", "above median", "gold", "silver", "bronze")
    rows = [_row(each) for each in report.competition_reports]
    medals, runs = report.total_medals, report.total_runs
    counted = f"{medals} {'medal' if medals == 1 else 'medals'}"
    say(f"{counted} in {runs} {'run' if runs == 1 else 'runs'}")
    show_columns(columns, rows)


def _lines(file: Path) -> list[str]:
    if file.suffix.lower() == ".csv":
        raise CompetitionError("is a submission: say also which competition it is for", path=file)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CompetitionError(f"cannot be read: {error}", path=file) from error
    if not any(line.strip() for line in lines):
        raise CompetitionError("lists no submission", path=file)
    return lines


def _row(report: CompetitionReport) -> tuple[object, ...]:
    medals = ("gold", "silver", "bronze")
    earned = [each for each in medals if getattr(report, f"{each}_medal")]
    state = "no file" if not report.submission_exists else "not valid"
    return (
        report.competition_id,
        state if report.score is None else report.score,
        earned[0] if earned else "-",
        "yes" if report.above_median else "no",
        report.gold_threshold,
        report.silver_threshold,
        report.bronze_threshold,
    )


def _write(report: GradingReport | CompetitionReport) -> None:
    print(json.dumps(report_json(report)))  # noqa: T201  (keys in MLE-bench's order)
