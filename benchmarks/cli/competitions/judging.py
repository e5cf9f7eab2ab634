"""`langgraft competitions check` and `grade`."""

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

from langgraft._core.errors import CompetitionError
from langgraft.benchmarks.cli.competitions.showing import show_columns
from langgraft.benchmarks.cli.printing import say, write_json
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.grading import (
    CompetitionReport,
    GradingReport,
    grade_jsonl,
    grade_submission,
    report_json,
    write_report,
)
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.competitions.submissions import check_submission


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
