"""Turns neighbors of the test's rows in the source into predictions, and picks the best."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from langgraft.benchmarks.mle.boards.contests import Contest, Data, Floats
from langgraft.environments.competitions.medals import DECIMALS

NEIGHBORS = (1, 2, 3, 5, 10, 20, 50)
TRUST = (0.5, 0.7, 0.9, 0.99)
"""How much of the probability goes to what neighbors say; the rest to how often classes are."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """What looking the test's rows up in the source comes to."""

    joined: float
    """Share of the test's rows that are found in the source exactly."""
    score: float
    """The best over the settings of the attack, chosen with the answers at hand."""
    how: str


def nearest(source: Floats, rows: Floats) -> NDArray[np.int64]:
    """Return the source's rows by distance, nearest first, for each row."""
    distance = (source**2).sum(axis=1) - 2 * rows @ source.T
    few = np.argpartition(distance, most := max(NEIGHBORS), axis=1)[:, :most]
    places = np.argsort(np.take_along_axis(distance, few, axis=1), axis=1, kind="stable")
    return np.take_along_axis(few, places, axis=1)


def best(contest: Contest, data: Data, predictions: Iterable[Floats]) -> float:
    """Return the best score of predictions."""
    scores = [contest.score(contest.losses(each, data)) for each in predictions]
    return round(min(scores) if contest.lower_is_better else max(scores), DECIMALS)


def votes(neighbors: NDArray[np.int64], labels: NDArray[np.int64]) -> Iterable[Floats]:
    """Return probabilities from the classes of neighbors, by their number and by trust."""
    classes = int(labels.max()) + 1
    usual = np.bincount(labels, minlength=classes) / len(labels)
    for count in NEIGHBORS:
        seen = labels[neighbors[:, :count]]
        share = (seen[:, :, None] == np.arange(classes)).mean(axis=1)
        for trust in TRUST:
            yield trust * share + (1 - trust) * usual


def joined(source: Floats, rows: Floats) -> float:
    """Return the share of rows whose values all equal those of a source's row."""
    known = {row.tobytes() for row in np.round(source, 3) + 0.0}
    return float(np.mean([row.tobytes() in known for row in np.round(rows, 3) + 0.0]))
