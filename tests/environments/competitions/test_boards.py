"""`leaderboard.csv` as MLE-bench has it, as Kaggle exports it, and as it goes wrong."""

from pathlib import Path

import pytest

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.boards import read_board

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
