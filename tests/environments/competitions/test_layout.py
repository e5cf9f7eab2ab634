"""A competition's folder is untrusted: one error names the file and the field."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy_competition import ID, config, write_competition

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.layout import OwnFunction, read_board, read_competition


def read(place: Path, **changes: Any) -> Competition:
    """Write the toy competition with changes to its configuration, and read it."""
    return read_competition(write_competition(place, **changes), place / "data")


def test_folder_when_read_is_the_competition(tmp_path: Path) -> None:
    """Texts, places, functions, board."""
    found = read(
        tmp_path, modality="tabular", metric_group="regression", source_modules=["sklearn.datasets"]
    )
    assert (found.id, found.name, found.competition_type) == (ID, "House prices", "simple")
    assert found.description.startswith("# House prices")
    assert found.answers == tmp_path / "data" / ID / "prepared/private/answers.csv"
    assert found.sample_submission == found.public_dir / "sample_submission.csv"
    assert found.raw_dir == tmp_path / "data" / ID / "raw"
    assert (found.modality, found.metric_group) == ("tabular", "regression")
    assert found.source_modules == ("sklearn.datasets",)
    assert found.grader.name == "rmse"
    assert found.board.thresholds.teams == 20
    assert found.board.thresholds.lower_is_better
    assert found.checksums is None
    assert not found.prepared


def test_configuration_when_of_mle_bench_is_read_as_it_is(tmp_path: Path) -> None:
    """A folder copied from there, with its own way to name files and functions."""
    found = read(
        tmp_path,
        description=f"mlebench/competitions/{ID}/description.md",
        grader={"name": "rmse", "grade_fn": f"mlebench.competitions.{ID}.grade:grade"},
        preparer=f"mlebench.competitions.{ID}.prepare:prepare",
        awards_medals=True,
        prizes=[{"position": 1, "value": 7000}, {"position": "Special Prize", "value": 5}],
    )
    assert found.description.startswith("# House prices")
    assert isinstance(found.prepare_fn, OwnFunction)
    assert found.prepare_fn.file.name == "prepare.py"


def data(**changes: str) -> dict[str, str]:
    """Return the files of the data with changes."""
    files: dict[str, str] = config()["dataset"]
    return files | changes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": "red"}, "`colour`"),
        ({"name": 3}, "`name`.*string"),
        ({"id": "other"}, "`id`: 'other'"),
        ({"id": 7}, "`id`"),
        ({"modality": "smell"}, "`modality`"),
        ({"is_lower_better": "yes"}, "`is_lower_better`"),
        ({"source_modules": "sklearn"}, "`source_modules`"),
        ({"dataset": None}, "`dataset`.*required"),
        ({"dataset": {"answers": "a.csv"}}, "`dataset.sample_submission`"),
        ({"dataset": data(answers="/etc/passwd")}, "`dataset.answers`: '/etc/passwd'"),
        ({"dataset": data(answers=f"{ID}/prepared/../../x")}, "`dataset.answers`"),
        ({"dataset": data(answers="other/prepared/private/a.csv")}, "`dataset.answers`"),
        ({"dataset": data(answers=f"{ID}/prepared/private\\..\\a")}, "`dataset.answers`"),
        ({"dataset": data(answers=f"{ID}/prepared/public/a.csv")}, "where agents see it"),
        ({"dataset": data(gold_submission=f"{ID}/prepared/public/a.csv")}, "where agents"),
        ({"dataset": data(sample_submission=f"{ID}/raw/a.csv")}, "`dataset.sample_submission`"),
        ({"description": "../secret.md"}, "`description`.*leads out"),
        ({"description": "/etc/passwd"}, "`description`.*leads out"),
        ({"description": "absent.md"}, "`description`: there is no file 'absent.md'"),
        ({"description": "\0"}, "`description`"),
        ({"grader": {"name": "rmse"}}, "`grader.grade_fn`.*required"),
        ({"grader": {"name": "", "grade_fn": "grade:grade"}}, "`grader.name`"),
        ({"grader": {"name": "x", "grade_fn": "grade"}}, "`grader.grade_fn`: 'grade'"),
        ({"grader": {"name": "x", "grade_fn": "os:system"}}, "there is no file 'os.py'"),
        ({"grader": {"name": "x", "grade_fn": "a.b:c"}}, "`grader.grade_fn`: 'a.b:c'"),
        ({"grader": {"name": "x", "grade_fn": "..grade:grade"}}, "`grader.grade_fn`"),
        ({"grader": {"name": "x", "grade_fn": "grade:absent"}}, "grade.py: defines no `absent`"),
        ({"preparer": "prepare:nothing"}, "prepare.py: defines no `nothing`"),
    ],
)
def test_configuration_when_it_says_what_is_not_allowed_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """The field is named, and nothing outside of the folder is touched."""
    with pytest.raises(CompetitionError, match=said) as caught:
        read(tmp_path, **changes)
    assert str(tmp_path / ID) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n",
        "a: [\n",
        "a: &x [1]\nb: *x\n",
        "!!python/object/apply:os.getcwd []\n",
        "[" * 5000,
    ],
)
def test_configuration_when_not_a_plain_mapping_is_refused(tmp_path: Path, text: str) -> None:
    """Broken YAML, objects, aliases, endless nesting."""
    folder = write_competition(tmp_path)
    (folder / "config.yaml").write_text(text)
    with pytest.raises(CompetitionError, match=r"config\.yaml: (is not YAML|holds no mapping)"):
        read_competition(folder, tmp_path)


@pytest.mark.parametrize("name", ["config.yaml", "description.md", "grade.py", "leaderboard.csv"])
def test_file_when_missing_is_named(tmp_path: Path, name: str) -> None:
    """Each that a competition cannot be without."""
    folder = write_competition(tmp_path)
    (folder / name).unlink()
    with pytest.raises(CompetitionError, match=name):
        read_competition(folder, tmp_path)


def test_description_when_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Its text would be shown to agents."""
    (tmp_path / "secret.md").write_text("secret")
    folder = write_competition(tmp_path)
    (folder / "description.md").unlink()
    (folder / "description.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(CompetitionError, match="leads out"):
        read_competition(folder, tmp_path)


def test_code_of_a_folder_when_read_is_not_run(tmp_path: Path) -> None:
    """It is imported when it is called, under a name that nobody else uses."""
    folder = write_competition(tmp_path)
    (folder / "grade.py").write_text(
        "from .numbers_ import ONE\nran = open(__file__ + '.ran', 'w')\nran.close()\n"
        "def grade(submission, answers):\n    return ONE\n"
    )
    (folder / "numbers_.py").write_text("ONE = 1.0\n")
    found = read_competition(folder, tmp_path)
    assert not (folder / "grade.py.ran").exists()
    assert found.grader.grade(None, None) == 1.0  # type: ignore[arg-type]
    assert (folder / "grade.py.ran").exists()
    assert "grade" not in sys.modules


def test_code_of_two_folders_when_both_are_used_stays_apart(tmp_path: Path) -> None:
    """Each has a `grade.py` of its own."""
    found = []
    for number in (1, 2):
        folder = write_competition(tmp_path / str(number))
        (folder / "grade.py").write_text(f"def grade(submission, answers): return {number}\n")
        found.append(read_competition(folder, tmp_path))
    assert [each.grader.grade(None, None) for each in found] == [1, 2]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def grade(:\n", "is not Python"),
        ("import no_such_package_\ngrade = 1\n", "needs `no_such_package_`"),
        ("grade = 1\n", "is not a function"),
        ("def grade(): pass\nraise OSError('no disk')\n", "OSError: no disk"),
    ],
)
def test_code_of_a_folder_when_broken_is_named(tmp_path: Path, code: str, said: str) -> None:
    """When it is read, or when it is first needed."""
    folder = write_competition(tmp_path)
    (folder / "grade.py").write_text(code)
    with pytest.raises(CompetitionError, match=rf"grade\.py: .*{said}"):
        read_competition(folder, tmp_path).grader.grade(None, None)  # type: ignore[arg-type]


def test_configuration_when_short_has_defaults(tmp_path: Path) -> None:
    """What only MLE-bench's harness needs may be left out, the id as well."""
    folder = write_competition(tmp_path, id=None, competition_type=None, description=None)
    held = yaml.safe_load((folder / "config.yaml").read_text())
    assert set(held) == {"name", "dataset", "grader", "preparer"}
    found = read_competition(folder, tmp_path)
    assert (found.id, found.competition_type) == (ID, "simple")


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:d5f3\nsize 84693\n"


def board_file(folder: Path, text: str) -> Path:
    """Write a leaderboard."""
    path = folder / "leaderboard.csv"
    path.write_text(text, newline="")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "score\n3\n2\n1\n",
        "scoreNullable,teamId,submissionDate,score,hasScore\n3,7,2019,3,True\n2,8,,2.0,True\n1,9,,1,True",
        'Rank,TeamName,Score\r\n1,"a, b",3\r\n2,"c\nd",2\r\n3,,1\r\n',
        "teamId,scoreNullable\n1,3\n2,2\n3,1\n4,\n5,NaN\n",
        "\ufeffscore,teamId\n3,1\n2,2\n,3\nnull,4\n1,5\n",
        "score\n3\n\n2\n1e0\n\n",
    ],
)
def test_leaderboard_when_read_has_its_scores(tmp_path: Path, text: str) -> None:
    """Its column is `score` in any case, and rows without one are left out."""
    board = read_board(board_file(tmp_path, text))
    assert board.scores == (3, 2, 1)
    assert not board.thresholds.lower_is_better


def test_leaderboard_when_long_is_read(tmp_path: Path) -> None:
    """Ten thousand teams."""
    rows = "\n".join(f"{team},team {team},{team / 1e5:.5f}" for team in range(10_000))
    board = read_board(board_file(tmp_path, f"teamId,teamName,score\n{rows}\n"))
    assert board.thresholds.teams == 10_000
    assert board.thresholds.gold == 0.00029  # row 30


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (POINTER, "Git LFS.*git lfs pull"),
        ("", "no column `score`.*nothing"),
        ("team,points\n1,2\n", "no column `score`.*team, points"),
        ("score,Score\n1,2\n", "2 columns `score`"),
        ("score\n", "no score of any team"),
        ("score\n3\ntwo\n1\n", "line 3: 'two' is not a score"),
        ("score\n3\ninf\n1\n", "line 3: 'inf' is not a score"),
        ("score\n1_000\n1\n", "line 2: '1_000'"),
        ("score\n2\n3\n1\n", "not sorted.*is_lower_better"),
        ("score\n1\n1\n", "are 1.0: say whether.*is_lower_better"),
    ],
)
def test_leaderboard_when_wrong_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file and what is wrong in it."""
    with pytest.raises(CompetitionError, match=said) as caught:
        read_board(board_file(tmp_path, text))
    assert caught.value.path == tmp_path / "leaderboard.csv"


def test_leaderboard_when_not_text_or_missing_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, a folder, nothing."""
    path = tmp_path / "leaderboard.csv"
    with pytest.raises(CompetitionError, match="cannot be read"):
        read_board(path)
    path.write_bytes(b"score\n\xff\xfe\n")
    with pytest.raises(CompetitionError, match="UTF-8"):
        read_board(path)


def test_direction_when_declared_settles_equal_and_unsorted_rows(tmp_path: Path) -> None:
    """But not rows that are sorted the other way round."""
    equal = board_file(tmp_path, "score\n1\n1\n")
    assert read_board(equal, lower_is_better=True).thresholds.lower_is_better
    unsorted = board_file(tmp_path, "score\n2\n3\n1\n")
    assert read_board(unsorted, lower_is_better=False).scores == (3, 2, 1)
    opposite = board_file(tmp_path, "score\n1\n2\n2\n3\n")
    with pytest.raises(CompetitionError, match=r"from 1\.0 to 3\.0, best first, but"):
        read_board(opposite, lower_is_better=False)
