"""Makes the board of a split, and measures whether boards tell skill from chance.

That is how far gold and median are apart, and which medal a pipeline on no board earns on new splits.
"""

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.catalog import find, load
from boards.contests import Contest, Data, Floats, Team
from langgraft._core.lazy import require
from langgraft.environments.competitions.competition import (
    DECIMALS,
    Board,
    Medal,
    medal,
    medal_rows,
    rank,
)


@dataclass(frozen=True)
class Entry:
    """What a team reached."""

    team: str
    score: float
    losses: Floats
    """Of each row of the test."""


@dataclass(frozen=True)
class Made:
    """A board on one split."""

    entries: tuple[Entry, ...]
    """Best first."""
    lower_is_better: bool

    @property
    def board(self) -> Board:
        """The scores, as a leaderboard holds them."""
        scores = [entry.score for entry in self.entries]
        return Board.from_scores(scores, lower_is_better=self.lower_is_better)


def make_board(contest: Contest, data: Data) -> Made:
    """Train every team, blend, and sort by score; equal scores in the order of teams."""
    found = {team.name: predict(contest, data, team) for team in contest.teams}
    for blend in contest.blends:
        found[blend.name] = np.mean([found[name] for name in blend.of], axis=0)
    entries = [enter(contest, data, name, found[name]) for name in contest.names]
    lower = contest.lower_is_better
    entries.sort(key=lambda entry: entry.score, reverse=not lower)
    return Made(tuple(entries), lower)


def enter(contest: Contest, data: Data, name: str, prediction: Floats) -> Entry:
    """Score a prediction."""
    losses = contest.losses(prediction, data)
    return Entry(name, round(contest.score(losses), DECIMALS), losses)


def predict(contest: Contest, data: Data, team: Team) -> Floats:
    """Train a team on its rows and return what it predicts of the test."""
    train, test = data.view(team.view, contest.views[team.view])
    rows = max(1, round(team.share * len(data.labels)))
    with one_thread(), _rounds_are_chosen():
        model = team.model().fit(train[:rows], data.labels[:rows])
        if contest.metric == "rmse":
            return np.asarray(model.predict(test), dtype=np.float64)
        return _by_class(model, test, data)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra to one thread: sums then do not depend on how work was shared out."""
    limits = require("threadpoolctl", extra="mle", purpose="Making a board")
    with limits.threadpool_limits(limits=1):
        yield


@contextmanager
def _rounds_are_chosen() -> Iterator[None]:
    """Let networks stop after the rounds that a team gives them, without a word."""
    problems = require("sklearn.exceptions", extra="mle", purpose="Making a board")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", problems.ConvergenceWarning)
        yield


def _by_class(model: Any, test: Any, data: Data) -> Floats:
    """Return probabilities with a column for every class, also for those the model never saw."""
    classes = int(max(data.labels.max(), data.truth.max())) + 1
    found = np.zeros((len(data.truth), classes))
    found[:, model.classes_] = model.predict_proba(test)
    return found


@dataclass(frozen=True, slots=True)
class Separation:
    """Two teams, and how far apart they are."""

    gold: str
    """The team at gold's row."""
    median: str
    """The team at the median: the better one of the two in the middle where their number is even,
    which makes the difference smaller, not larger."""
    difference: float
    error: float
    """Standard error of the difference, over draws of the test's rows."""
    units: int
    """What is drawn: rows, or pictures."""
    draws: int

    @property
    def errors(self) -> float:
        """The difference in standard errors."""
        return self.difference / self.error


def separation(contest: Contest, made: Made, *, draws: int = 2000, seed: int = 2605) -> Separation:
    """Draw the test's units with replacement, the same for both teams, and score both anew."""
    count = len(made.entries)
    gold = made.entries[medal_rows(count)[0] - 1]
    median = made.entries[(count - 1) // 2]
    losses = np.column_stack([contest.units(entry.losses) for entry in (gold, median)])
    units = len(losses)
    chance = np.random.default_rng(seed)
    drawn = [
        [contest.score(column) for column in losses[chance.integers(units, size=units)].T]
        for _ in range(draws)
    ]
    error = float(np.std(np.diff(drawn, axis=1), ddof=1))
    difference = abs(median.score - gold.score)
    return Separation(gold.team, median.team, difference, error, units, draws)


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
