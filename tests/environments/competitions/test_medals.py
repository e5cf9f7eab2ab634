"""The medal rule, held against tables that were not made by it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.competition import (
    Board,
    Thresholds,
    above_median,
    medal,
    medal_rows,
    rank,
    rounded,
)
from langgraft.environments.competitions.registry import lite_competitions

ROWS = {
    1: (1, 1, 1),
    2: (1, 1, 1),
    3: (1, 1, 1),
    4: (1, 1, 1),
    5: (1, 1, 2),
    9: (1, 1, 3),
    10: (1, 2, 4),
    99: (9, 19, 39),
    100: (10, 20, 40),
    249: (10, 49, 99),
    250: (10, 50, 100),
    499: (10, 50, 100),
    500: (11, 50, 100),
    999: (11, 50, 100),
    1000: (12, 50, 100),
    # The 22 lite competitions.
    50: (5, 10, 20),
    81: (8, 16, 32),
    129: (10, 25, 51),
    162: (10, 32, 64),
    163: (10, 32, 65),
    261: (10, 50, 100),
    462: (10, 50, 100),
    879: (11, 50, 100),
    1149: (12, 57, 114),
    1152: (12, 57, 115),
    1189: (12, 59, 118),
    1221: (12, 61, 122),
    1242: (12, 62, 124),
    1281: (12, 64, 128),
    1315: (12, 65, 131),
    1318: (12, 65, 131),
    1485: (12, 74, 148),
    1547: (13, 77, 154),
    1596: (13, 79, 159),
    2929: (15, 146, 292),
    3308: (16, 165, 330),
    4539: (19, 226, 453),
}
"""Rows of gold, silver and bronze by the number of teams, worked out by hand from Kaggle's rule."""

HIGHER = Board(Thresholds(0.9, 0.8, 0.7, 0.5, lower_is_better=False, teams=50))
LOWER = Board(Thresholds(0.1, 0.2, 0.3, 0.5, lower_is_better=True, teams=50))


@pytest.mark.parametrize(("teams", "rows"), ROWS.items())
def test_rows_when_teams_are_counted_are_those_of_the_table(
    teams: int, rows: tuple[int, int, int]
) -> None:
    """All lite boards, and the sizes at which the rule changes."""
    assert medal_rows(teams) == rows


def test_table_of_rows_when_read_covers_the_lite_boards() -> None:
    """No board of the 22 is left out of it."""
    assert {each.thresholds.teams for each in lite_competitions().values()} <= set(ROWS)


@pytest.mark.parametrize("teams", ROWS)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("ties", [1, 3])
def test_medals_when_boards_have_ties_are_those_of_the_rows(
    teams: int, lower: bool, ties: int
) -> None:
    """Every team is at least as good as the rows it shares a score with."""
    scores = [
        round((team // ties) / 1000 if lower else 9 - (team // ties) / 1000, 3)
        for team in range(teams)
    ]
    board = Board.from_scores(scores, lower_is_better=lower)
    colors = list(zip(ROWS[teams], ("gold", "silver", "bronze"), strict=True))
    median = float(np.median(scores))
    near = {row + each for row in (*ROWS[teams], teams // 2) for each in range(-5, 5)}
    for team in sorted(near & set(range(teams)) | {0, teams - 1}):
        score = scores[team]
        better = scores.index(score)
        assert medal(score, board) == next((color for row, color in colors if better < row), None)
        assert rank(score, board) == better + 1
        assert above_median(score, board) == (score < median if lower else score > median)


@pytest.mark.parametrize(
    ("score", "board", "earned"),
    [
        (0.9, HIGHER, "gold"),
        (0.899994, HIGHER, "silver"),
        (0.899996, HIGHER, "gold"),
        (0.8, HIGHER, "silver"),
        (0.7, HIGHER, "bronze"),
        (0.69, HIGHER, None),
        (0.1, LOWER, "gold"),
        (0.100004, LOWER, "gold"),
        (0.2, LOWER, "silver"),
        (0.3, LOWER, "bronze"),
        (0.31, LOWER, None),
        (-math.inf, LOWER, None),
        (math.inf, HIGHER, None),
        (math.nan, HIGHER, None),
        (None, HIGHER, None),
    ],
)
def test_score_when_judged_earns_the_medal_of_its_place(
    score: float | None, board: Board, earned: str | None
) -> None:
    """At least as good as the row, after rounding to five decimals; what is no number earns none."""
    assert medal(score, board) == earned


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, float])
def test_score_when_of_any_float_type_is_compared_as_float64(kind: type) -> None:
    """MLE-bench fails on numpy's float32: here 0.9 of any precision that has five decimals is 0.9."""
    expected = "silver" if kind is np.float16 else "gold"  # 0.89990
    assert medal(kind(0.9), HIGHER) == expected
    assert type(rounded(kind(0.9))) is float


@pytest.mark.parametrize("score", [1, np.int64(1), np.uint8(1)])
def test_score_when_whole_is_a_score(score: float) -> None:
    """Integers of Python and numpy."""
    assert medal(score, HIGHER) == "gold"


def test_score_when_a_text_is_refused() -> None:
    """A grader that returns one is at fault."""
    with pytest.raises(TypeError, match=r"'0\.9'"):
        rounded("0.9")  # type: ignore[arg-type]


def test_score_when_equal_to_the_median_is_not_above_it() -> None:
    """Strictly better, in either direction."""
    assert not above_median(0.5, HIGHER)
    assert not above_median(0.5, LOWER)
    assert above_median(0.50001, HIGHER)
    assert above_median(0.49999, LOWER)
    assert not above_median(math.nan, LOWER)


def test_zero_when_negative_is_zero() -> None:
    """A loss of -0.0 is the gold of a board whose gold is 0."""
    assert math.copysign(1, rounded(-1e-9) or 0.0) == 1


@pytest.mark.parametrize("teams", [1, 2, 3, 4])
def test_board_when_tiny_has_one_threshold(teams: int) -> None:
    """Gold, silver and bronze are the first row up to four teams."""
    board = Board.from_scores([5.0 - team for team in range(teams)], lower_is_better=False)
    thresholds = board.thresholds
    assert thresholds.gold == thresholds.silver == thresholds.bronze == 5.0
    assert medal(5.0, board) == "gold"
    assert medal(4.99, board) is None


@pytest.mark.parametrize(("scores", "lower"), [([3, 2, 1], False), ([1, 2, 3], True)])
def test_direction_when_not_given_is_that_of_the_rows(scores: list[float], lower: bool) -> None:
    """The first row is the best."""
    assert Board.from_scores(scores).thresholds.lower_is_better is lower


@pytest.mark.parametrize("scores", [[1.0], [0.5, 0.5, 0.5]])
def test_direction_when_all_rows_are_equal_has_to_be_given(scores: list[float]) -> None:
    """MLE-bench would say that higher is better."""
    with pytest.raises(CompetitionError, match="say whether lower is better"):
        Board.from_scores(scores)
    assert Board.from_scores(scores, lower_is_better=True).thresholds.lower_is_better


def test_rows_when_not_sorted_are_sorted_where_the_direction_is_sure() -> None:
    """It is where it is given, or the first row is the best and the last the worst."""
    assert Board.from_scores([2, 3, 1], lower_is_better=True).scores == (1, 2, 3)
    assert Board.from_scores([9, 7, 8, 1]).scores == (9, 8, 7, 1)
    with pytest.raises(CompetitionError, match="not sorted"):
        Board.from_scores([2, 3, 1])


def test_teams_when_without_score_are_left_out() -> None:
    """Nor do they say anything of the direction."""
    board = Board.from_scores([math.nan, 1, 2, math.nan, 3, math.nan])
    assert board.scores == (1, 2, 3)
    assert board.thresholds.teams == 3
    assert board.thresholds.lower_is_better


@pytest.mark.parametrize("scores", [[], [math.nan], [1, math.inf], [-math.inf, 1]])
def test_board_when_nothing_can_be_judged_by_it_is_refused(scores: list[float]) -> None:
    """No scores, or infinite ones."""
    with pytest.raises(CompetitionError):
        Board.from_scores(scores)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=400), st.booleans())
def test_thresholds_when_rows_are_shuffled_are_ordered(values: list[int], lower: bool) -> None:
    """Gold is at least as hard as silver, silver as bronze, whatever the board."""
    thresholds = Board.from_scores(values, lower_is_better=lower).thresholds
    named = [thresholds.gold, thresholds.silver, thresholds.bronze]
    assert all(a <= b if lower else a >= b for a, b in pairwise(named))
    assert thresholds.median == np.median(values)


def test_rank_when_only_thresholds_are_known_is_not_told() -> None:
    """Nor that of a score that is none."""
    assert rank(0.9, HIGHER) is None
    assert rank(math.nan, Board.from_scores([2, 1])) is None
