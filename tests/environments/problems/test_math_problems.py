"""MATH from folders, files and rows; what is wrong in it is said in a line, with its place."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from langgraft._core.errors import InputError
from langgraft.environments.problems import read_math
from langgraft.environments.problems.answers import readings
from langgraft.environments.problems.grading import equal

ROW = {
    "problem": "What is $1+1$?",
    "level": "Level 3",
    "type": "Algebra",
    "solution": r"It is $\boxed{2}$.",
}


def test_problems_are_the_same_from_folders_a_file_and_rows(tmp_path: Path) -> None:
    """The three ways to have MATH; folders by number, not by name."""
    rows = [{**ROW, "problem": f"What is ${n}$?"} for n in range(12)]
    (tmp_path / "train" / "algebra").mkdir(parents=True)
    for n, row in enumerate(rows):
        (tmp_path / "train" / "algebra" / f"{n}.json").write_text(json.dumps(row))
    lines = "\n".join(map(json.dumps, rows)).encode()
    (tmp_path / "math.jsonl").write_bytes(lines)
    (tmp_path / "math.jsonl.gz").write_bytes(gzip.compress(lines))
    sources: list[Any] = [
        tmp_path / "train",
        tmp_path / "math.jsonl",
        tmp_path / "math.jsonl.gz",
        rows,
    ]
    found = [[each.text for each in read_math(source)] for source in sources]
    assert found == [[row["problem"] for row in rows]] * 4
    first = read_math(tmp_path / "train")[0]
    assert (first.id, first.level, first.subject, first.answer) == ("algebra/0", 3, "Algebra", "2")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"problem": None}, "line 2: the field 'problem' is missing"),
        ({"problem": "  "}, "line 2: the field 'problem' is no text"),
        ({"level": "hard"}, "line 2: unknown level 'hard'"),
        ({"level": "Level 6"}, "line 2: unknown level 'Level 6'"),
        ({"solution": "It is 2."}, "line 2: the solution has no boxed answer"),
        ({"unique_id": "1"}, "two problems have the id '1'"),
    ],
)
def test_problem_when_something_is_wrong_then_its_line_is_named(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """Nothing is read before all of it can be."""
    path = tmp_path / "math.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{json.dumps({**ROW, **change})}\n")
    with pytest.raises(InputError, match=said):
        read_math(path)


def test_file_when_it_is_not_json_lines_then_is_refused(tmp_path: Path) -> None:
    """Other encodings and other files are told from an empty one."""
    (tmp_path / "latin").write_bytes(json.dumps(ROW, ensure_ascii=False).encode() + b"\xe9\n")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InputError, match="latin, line 1: not JSON"):
        read_math(tmp_path / "latin")
    with pytest.raises(InputError, match="no problems"):
        read_math(tmp_path / "empty")
    with pytest.raises(InputError, match="cannot be read"):
        read_math(tmp_path / "absent")


def test_training_set_is_read_whole_and_each_answer_equals_itself(data_dir: Path) -> None:
    """All 7,500 with the levels that the set has; only empty boxes cannot be read."""
    problems = read_math(data_dir / "math" / "train.jsonl")
    assert len(problems) == 7500
    assert sum(each.level in {3, 4, 5} for each in problems) == 5586
    assert sum(each.level is None for each in problems) == 2
    unreadable = [each for each in problems if not readings(each.answer)]
    assert [each.answer for each in unreadable] == ["", ""]
    assert all(equal(each.answer, each.answer) for each in problems if each.answer)
