"""The medal of a pipeline that is on no board, on one split after another."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from langgraft.benchmarks.mle.boards.boards import enter, make_board, predict
from langgraft.benchmarks.mle.boards.catalog import find
from langgraft.benchmarks.mle.boards.splits import load
from langgraft.environments.competitions.medals import Board, Medal, medal, rank


@dataclass(frozen=True, slots=True)
class Fresh:
    """What the pipeline that is held out reached on one split."""

    place: int
    """On the board of this split."""
    medal: Medal | None
    """On the board of this split."""
    shipped_medal: Medal | None
    """By the thresholds of the board that ships."""


def fresh_splits(competition: str, shipped: Board, count: int) -> Iterator[Fresh]:
    """Split the source anew, remake the whole board, and look at the pipeline held out.

    The splits, `judged-1`, `judged-2` … for most, served no other purpose: teams and the pipeline
    held out were settled on splits of other names.
    """
    contest = find(competition)
    for number in range(1, count + 1):
        data = load(competition, f"{contest.judged}-{number}")
        board = make_board(contest, data).board
        held = contest.held_out
        score = enter(contest, data, held.name, predict(contest, data, held)).score
        yield Fresh(
            place=rank(score, board) or 0,
            medal=medal(score, board),
            shipped_medal=medal(score, shipped),
        )


def most_common(found: list[Fresh]) -> tuple[Medal | None, int]:
    """Return the medal reached most often, and how often."""
    return Counter(each.medal for each in found).most_common(1)[0]
