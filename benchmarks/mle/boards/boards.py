"""Trains all teams of a competition on one split of its data, and sorts them."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from langgraft._core.extras import require
from langgraft.benchmarks.mle.boards.contests import Contest, Data, Floats
from langgraft.benchmarks.mle.boards.teams import Team
from langgraft.environments.competitions.medals import DECIMALS, Board


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
