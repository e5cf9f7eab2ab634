"""Grades, and reports as `mlebench grade` writes them."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from toy_competition import ID, predictions, write_competition

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.grading import (
    CompetitionReport,
    grade_jsonl,
    grade_submission,
    report_json,
    write_report,
)
from langgraft.environments.competitions.layout import read_competition
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import Registry

FIELDS = [
    "competition_id",
    "score",
    "gold_threshold",
    "silver_threshold",
    "bronze_threshold",
    "median_threshold",
    "any_medal",
    "gold_medal",
    "silver_medal",
    "bronze_medal",
    "above_median",
    "submission_exists",
    "valid_submission",
    "is_lower_better",
    "created_at",
    "submission_path",
]
TOTALS = [
    "total_runs",
    "total_runs_with_submissions",
    "total_valid_submissions",
    "total_medals",
    "total_gold_medals",
    "total_silver_medals",
    "total_bronze_medals",
    "total_above_median",
    "competition_reports",
]


class Noon:
    """A clock that stands at noon of a day."""

    def time(self) -> float:
        """Seconds since the epoch."""
        return 1_767_268_800.0  # 2026-01-01 12:00 UTC

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return 0.0


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    """Return the toy competition, prepared; its board runs from 0.5 to 2.4 in steps of 0.1."""
    found = read_competition(write_competition(tmp_path / "mine"), tmp_path / "data")
    prepare_competition(found)
    return found


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Return what is logged."""
    with caplog.at_level(logging.WARNING):
        yield caplog


def graded(competition: Competition, text: str | bytes, name: str = "s.csv") -> CompetitionReport:
    """Grade a submission of this content."""
    path = competition.raw_dir.parent / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return grade_submission(path, competition, clock=Noon())


@pytest.mark.parametrize(
    ("error", "earned", "above"),
    [
        (0.0, "gold", True),
        (0.6, "gold", True),
        (0.8, "silver", True),
        (1.2, "bronze", True),
        (1.3, None, True),
        (1.45, None, False),
        (9.0, None, False),
    ],
)
def test_submission_when_graded_earns_what_its_score_does(
    competition: Competition, error: float, earned: str | None, above: bool
) -> None:
    """Rows 2, 4 and 8 of twenty, and the median."""
    told = graded(competition, predictions(error=error))
    assert told.score == pytest.approx(error)
    assert [told.gold_medal, told.silver_medal, told.bronze_medal] == [
        earned == color for color in ("gold", "silver", "bronze")
    ]
    assert told.any_medal == (earned is not None)
    assert told.above_median == above
    assert (told.gold_threshold, told.silver_threshold, told.bronze_threshold) == (0.6, 0.8, 1.2)
    assert (told.median_threshold, told.is_lower_better) == (1.45, True)
    assert told.submission_exists
    assert told.valid_submission


def test_score_when_reported_has_five_decimals(competition: Competition) -> None:
    """As MLE-bench rounds it."""
    assert graded(competition, predictions(error=1 / 3)).score == 0.33333


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id,price\n1,2\n", "InvalidSubmissionError: it has 1 rows"),
        ("id,cost\n1,2\n", "no column 'price'"),
        ("", "InvalidSubmissionError"),
        (predictions().replace(",10", ",x"), "ValueError"),
        (predictions(error=float("nan")), "ValueError"),
        (b"\xff\xfe\x00", "cannot be read as CSV"),
        ("id,price\n1,2" + "," * 100_000, "first row has 100002 values"),
        ("id,price" + "," * 500_000 + "\n1,2\n", "its header has 500,002 columns"),
    ],
)
def test_submission_when_not_gradable_has_no_score_and_the_log_says_why(
    competition: Competition, logged: pytest.LogCaptureFixture, text: str | bytes, why: str
) -> None:
    """It is a report like any other; what the grader raised is in none of its fields."""
    told = graded(competition, text)
    assert (told.score, told.valid_submission, told.any_medal) == (None, False, False)
    assert told.submission_exists
    assert not told.above_median
    assert why in logged.text
    assert why not in told.model_dump_json()


@pytest.mark.parametrize("score", ["float('nan')", "float('inf')", "-1e999", "None", "'0.1'", "[]"])
def test_score_when_no_finite_number_is_not_valid(competition: Competition, score: str) -> None:
    """MLE-bench counts NaN as valid and fails on others."""
    grade = competition.raw_dir.parents[2] / "mine" / ID / "grade.py"
    grade.write_text(f"def grade(submission, answers):\n    return {score}\n")
    told = graded(read_competition(grade.parent, competition.raw_dir.parents[1]), predictions())
    assert (told.score, told.valid_submission, told.any_medal) == (None, False, False)


def test_score_when_of_numpy_is_a_score(competition: Competition) -> None:
    """MLE-bench fails on a float of 32 bits."""
    grade = competition.raw_dir.parents[2] / "mine" / ID / "grade.py"
    grade.write_text(
        "import numpy\ndef grade(submission, answers):\n    return numpy.float32(0.6)\n"
    )
    told = graded(read_competition(grade.parent, competition.raw_dir.parents[1]), predictions())
    assert told.score == 0.6
    assert told.gold_medal


def test_submission_when_absent_or_not_csv_does_not_exist(
    competition: Competition, tmp_path: Path
) -> None:
    """By MLE-bench's rule: a file whose name ends in .csv."""
    for path in (tmp_path / "absent.csv", tmp_path, tmp_path / f"{'a' * 5000}.csv"):
        told = grade_submission(path, competition, clock=Noon())
        assert (told.submission_exists, told.valid_submission, told.score) == (False, False, None)
    assert not graded(competition, predictions(), "submission.txt").submission_exists
    assert graded(competition, predictions(), "SUBMISSION.CSV").valid_submission


def test_submission_when_a_link_to_the_answers_earns_nothing(competition: Competition) -> None:
    """An agent may leave any link it likes."""
    link = competition.raw_dir.parent / "link.csv"
    link.symlink_to(competition.answers)
    assert grade_submission(link, competition).score is None


def test_report_when_written_has_mle_benchs_fields_in_their_order(
    competition: Competition, tmp_path: Path
) -> None:
    """So that its aggregation reads it."""
    path = tmp_path / "s.csv"
    path.write_text(predictions())
    registry = Registry(tmp_path / "data", folders=[tmp_path / "mine"])
    line = json.dumps({"competition_id": ID, "submission_path": str(path)})
    told = grade_jsonl(["# a comment", "", "  // another\n", line + "\n"], registry, clock=Noon())
    files = [write_report(told, tmp_path / "reports", clock=Noon()) for _ in range(2)]
    assert [each.name for each in files] == [
        "2026-01-01T12-00-00-GMT_grading_report.json",
        "2026-01-01T12-00-00-GMT-2_grading_report.json",
    ]
    held = json.loads(files[0].read_text())
    assert list(held) == TOTALS
    (one,) = held["competition_reports"]
    assert list(one) == FIELDS
    assert one["created_at"] == "2026-01-01T12:00:00+00:00"
    assert one["submission_path"] == str(path)
    assert held == report_json(told)


def test_report_when_its_folder_cannot_be_made_is_refused_in_a_line(tmp_path: Path) -> None:
    """A file where the folder is to be, or no permission."""
    (tmp_path / "reports").write_text("")
    with pytest.raises(CompetitionError, match="the report cannot be written there: File exists"):
        write_report(grade_jsonl([], Registry(tmp_path)), tmp_path / "reports")


def test_log_when_there_is_no_file_says_what_is_in_its_place(
    competition: Competition, tmp_path: Path, logged: pytest.LogCaptureFixture
) -> None:
    """A name mistyped, a folder, and a name that MLE-bench does not take."""
    (tmp_path / "s.txt").write_text(predictions())
    for path in (tmp_path / "absent.csv", tmp_path, tmp_path / "s.txt"):
        grade_submission(path, competition)
    said = ["there is no such file", "it is no file", "its name does not end in .csv"]
    assert [each.message.rpartition(": ")[2] for each in logged.records] == said


def test_totals_when_added_up_count_each_kind(competition: Competition, tmp_path: Path) -> None:
    """Runs, files, valid ones, medals."""
    lines = []
    for number, error in enumerate([0.1, 0.2, 0.7, 1.1, 1.4, 5.0, None]):
        path = tmp_path / f"{number}.csv"
        path.write_text("id\n1\n" if error is None else predictions(error=error))
        lines.append(json.dumps({"competition_id": ID, "submission_path": str(path)}))
    lines.append(json.dumps({"competition_id": ID, "submission_path": "absent.csv"}))
    registry = Registry(tmp_path / "data", folders=[tmp_path / "mine"])
    held = report_json(grade_jsonl(lines, registry))
    assert [held[name] for name in TOTALS[:-1]] == [8, 7, 6, 4, 2, 1, 1, 5]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 is not"),
        ("[]", "line 2 is not"),
        ('{"competition_id": "house-prices"}', "line 2 is not"),
        ('{"competition_id": 1, "submission_path": "x"}', "line 2: both values"),
        ('{"competition_id": "none", "submission_path": "x"}', "line 2: .*no competition 'none'"),
        ('{"competition_id": "leaf-classification", "submission_path": "x"}', "line 2: .*mlebench"),
    ],
)
def test_list_when_a_line_is_wrong_is_refused_before_anything_is_graded(
    competition: Competition, tmp_path: Path, line: str, said: str
) -> None:
    """Not after an hour."""
    registry = Registry(tmp_path / "data", folders=[tmp_path / "mine"])
    with pytest.raises(CompetitionError, match=said):
        grade_jsonl(["", line], registry)


def test_data_when_not_prepared_is_said(tmp_path: Path) -> None:
    """With the command that prepares it."""
    found = read_competition(write_competition(tmp_path), tmp_path / "data")
    with pytest.raises(CompetitionError, match="langgraft competitions prepare house-prices"):
        grade_submission(tmp_path / "s.csv", found)


def test_answers_when_of_json_lines_are_given_as_a_list(
    competition: Competition, tmp_path: Path
) -> None:
    """As for MLE-bench's tensorflow2-question-answering."""
    folder = tmp_path / "mine" / ID
    config = (folder / "config.yaml").read_text().replace("answers.csv", "answers.jsonl")
    (folder / "config.yaml").write_text(config)
    (folder / "grade.py").write_text(
        "def grade(submission, answers):\n    return answers[1]['right'] + len(submission)\n"
    )
    (competition.private_dir / "answers.jsonl").write_text('{"right": 1}\n{"right": 0.5}\n')
    assert graded(read_competition(folder, tmp_path / "data"), predictions()).score == 40.5


def test_grader_when_it_ends_the_program_gives_no_score(competition: Competition) -> None:
    """The grading of other submissions goes on."""
    grade = competition.raw_dir.parents[2] / "mine" / ID / "grade.py"
    grade.write_text("def grade(submission, answers):\n    raise SystemExit(0)\n")
    found = read_competition(grade.parent, competition.raw_dir.parents[1])
    assert graded(found, predictions()).score is None


def test_grader_when_it_ends_the_program_as_it_is_read_is_at_fault(
    competition: Competition,
) -> None:
    """As with whatever else it raises then."""
    grade = competition.raw_dir.parents[2] / "mine" / ID / "grade.py"
    grade.write_text("raise SystemExit(0)\ndef grade(submission, answers):\n    return 1\n")
    found = read_competition(grade.parent, competition.raw_dir.parents[1])
    with pytest.raises(CompetitionError, match="cannot be imported: SystemExit"):
        graded(found, predictions())


def test_grader_when_the_memory_runs_out_blames_no_submission(competition: Competition) -> None:
    """It may be the machine's fault."""
    grade = competition.raw_dir.parents[2] / "mine" / ID / "grade.py"
    grade.write_text("def grade(submission, answers):\n    raise MemoryError\n")
    found = read_competition(grade.parent, competition.raw_dir.parents[1])
    with pytest.raises(CompetitionError, match="memory ran out"):
        graded(found, predictions())


def test_competition_when_its_own_code_is_at_fault_blames_no_submission(
    competition: Competition, tmp_path: Path
) -> None:
    """A grader that cannot be imported is an error, not an invalid submission."""
    folder = tmp_path / "mine" / ID
    (folder / "grade.py").write_text("import no_such_package_\ndef grade(a, b): return 1\n")
    with pytest.raises(CompetitionError, match="needs `no_such_package_`"):
        graded(read_competition(folder, tmp_path / "data"), predictions())
    competition.answers.write_bytes(b"\xff")
    with pytest.raises(CompetitionError, match=r"answers\.csv: cannot be read"):
        graded(competition, predictions())
