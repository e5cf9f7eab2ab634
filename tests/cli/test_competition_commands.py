"""`langgraft competitions` as a user meets it."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from toy_competition import ID, predictions, write_competition

from langgraft.cli.app import run_command_line


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object) -> Done:
    """Run a command in this process, as the console script does."""
    out, err, code = io.StringIO(), io.StringIO(), None
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["langgraft", "competitions", *map(str, arguments)])
        patch.setenv("COLUMNS", "60")
        try:
            run_command_line()
        except SystemExit as ended:
            code = ended.code
    return Done(int(code or 0), out.getvalue(), err.getvalue())


def told(*arguments: object) -> Any:
    """Run a command that succeeds and return its JSON."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(*arguments: object) -> str:
    """Run a command that is refused and return its one line."""
    done = run(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture
def places(tmp_path: Path) -> tuple[object, ...]:
    """Return the options that name the toy competition's folder and data."""
    write_competition(tmp_path / "mine")
    return ("--data-dir", tmp_path / "data", "--folder", tmp_path / "mine")


@pytest.fixture
def prepared(places: tuple[object, ...]) -> tuple[object, ...]:
    """Return the same options when the data is prepared."""
    assert run("prepare", ID, *places).returncode == 0
    return places


def written(folder: Path, text: str, name: str = "submission.csv") -> Path:
    """Write a file."""
    (folder / name).write_text(text)
    return folder / name


def test_competitions_when_listed_have_whole_ids(places: tuple[object, ...]) -> None:
    """Lines to copy from, however narrow the terminal."""
    done = run("list", *places)
    assert done.returncode == 0
    assert "\njigsaw-toxic-comment-classification-challenge " in done.stdout
    (line,) = (each for each in done.stdout.splitlines() if each.startswith(ID))
    assert line.split() == [ID, "own", "no", "-", "20", "lower", "rmse"]
    listed = {each["id"]: each for each in told("list", *places)}
    assert listed["leaf-classification"]["gold"] == 0.0
    assert listed[ID]["source"] == "own"


def test_competition_when_broken_is_listed_with_its_fault(
    places: tuple[object, ...], tmp_path: Path
) -> None:
    """And the others are listed all the same."""
    (tmp_path / "mine" / ID / "grade.py").unlink()
    done = run("list", *places)
    assert done.returncode == 0
    assert f"{ID} cannot be used: " in done.stdout
    assert "there is no file 'grade.py'" in done.stdout
    assert "spooky-author-identification" in done.stdout


def test_list_when_asked_for_loads_no_pandas(tmp_path: Path) -> None:
    """It works without the extra."""
    code = (
        "import sys; sys.argv = ['langgraft', 'competitions', 'list', '--json'];"
        "sys.modules['pandas'] = sys.modules['sklearn'] = None;"
        "from langgraft.cli.app import app; app()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)},
    )
    assert len(json.loads(done.stdout)) >= 28


def test_competition_when_shown_says_what_it_takes(places: tuple[object, ...]) -> None:
    """Thresholds, places, the description."""
    done = run("show", ID, *places)
    assert "House prices (house-prices)" in done.stdout
    assert "gold: 0.6" in done.stdout
    assert "Tell what a house costs." in done.stdout
    shown = told("show", ID, *places)
    assert (shown["silver"], shown["bronze"], shown["better"]) == (0.8, 1.2, "lower")


def test_data_when_prepared_is_said_to_be(places: tuple[object, ...]) -> None:
    """Made the first time, there the second, made again by force."""
    first = told("prepare", ID, *places)
    assert [(each["id"], each["made"], each["verified"]) for each in first] == [(ID, True, False)]
    done = run("prepare", ID, *places)
    assert "house-prices was prepared already, without checksums" in done.stdout
    assert told("prepare", ID, *places, "--force")[0]["made"]


def test_submission_when_checked_ends_with_its_validity(
    prepared: tuple[object, ...], tmp_path: Path
) -> None:
    """0 where it is valid, 1 where it is not, and why."""
    good = written(tmp_path, predictions())
    assert run("check", good, ID, *prepared) == (0, "valid\n", "")
    bad = written(tmp_path, "id,price\n60,x\n")
    done = run("check", bad, ID, *prepared)
    assert done.returncode == 1
    assert "not valid:\n- it has 1 rows, the sample submission 40\n" in done.stdout
    assert json.loads(run("check", bad, ID, *prepared, "--json").stdout)["valid"] is False


def test_submission_when_graded_shows_its_medal(
    prepared: tuple[object, ...], tmp_path: Path
) -> None:
    """As a line, and as MLE-bench's fields in their order."""
    file = written(tmp_path, predictions(error=0.7))
    done = run("grade", file, ID, *prepared)
    assert "1 medal in 1 run" in done.stdout
    assert done.stdout.splitlines()[2].split()[:4] == [ID, "0.7", "silver", "yes"]
    report = told("grade", file, ID, *prepared)
    assert list(report)[:2] == ["competition_id", "score"]
    assert report["silver_medal"]
    invalid = written(tmp_path, "id,price\n1,1\n")
    assert "not valid" in run("grade", invalid, ID, *prepared).stdout
    assert "there is no such file" in refusal("grade", tmp_path / "absent.csv", ID, *prepared)


def test_json_when_own_code_prints_is_json_alone(
    places: tuple[object, ...], tmp_path: Path
) -> None:
    """What `prepare.py` and `grade.py` print goes to standard error."""
    folder = tmp_path / "mine" / ID
    for name in ("prepare", "grade"):
        code = (folder / f"{name}.py").read_text()
        (folder / f"{name}.py").write_text(f"print('{name} is read')\n{code}")
    assert told("prepare", ID, *places)[0]["made"]
    done = run("grade", written(tmp_path, predictions()), ID, *places, "--json")
    assert json.loads(done.stdout)["score"] == 0
    assert "grade is read" in done.stderr


def test_list_when_graded_writes_a_report(prepared: tuple[object, ...], tmp_path: Path) -> None:
    """To a folder, as `mlebench grade` does."""
    file = written(tmp_path, predictions())
    line = json.dumps({"competition_id": ID, "submission_path": str(file)})
    listed = written(tmp_path, f"# mine\n{line}\n{line}\n", "list.jsonl")
    done = run("grade", listed, "--output-dir", tmp_path / "out", *prepared)
    assert done.returncode == 0, done.stderr
    (report,) = (tmp_path / "out").iterdir()
    assert report.name.endswith("_grading_report.json")
    assert json.loads(report.read_text())["total_gold_medals"] == 2
    assert str(report) in done.stdout
    assert told("grade", listed, *prepared)["total_runs"] == 2


def test_command_when_it_cannot_be_done_says_why_in_a_line(
    places: tuple[object, ...], tmp_path: Path
) -> None:
    """And exits with 2."""
    file = written(tmp_path, predictions())
    assert "did you mean 'house-prices'?" in refusal("show", "house-price", *places)
    advice = f"run `langgraft competitions prepare {ID} --data-dir {tmp_path / 'data'}`"
    assert advice in refusal("check", file, ID, *places)
    assert advice in refusal("grade", file, ID, *places)
    assert "which competition it is for" in refusal("grade", file, *places)
    assert "cannot be read" in refusal("grade", tmp_path / "none.jsonl", *places)
    assert "lists no submission" in refusal("grade", written(tmp_path, "\n", "l.jsonl"), *places)
    assert "mlebench prepare" in refusal("prepare", "leaf-classification", *places)
    assert "no such folder" in refusal("list", "--folder", tmp_path / "absent")
