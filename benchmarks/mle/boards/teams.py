"""Teams of a board: a pipeline on a view of the data, or a blend of such."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Team:
    """A pipeline, trained on all of the training rows or on the first of them."""

    name: str
    view: str
    """Name of the features it sees."""
    model: Callable[[], Any]
    """Makes an estimator of scikit-learn's form, with its seed."""
    share: float = 1.0
    """Of the training rows, which are in random order."""


@dataclass(frozen=True)
class Blend:
    """The mean of what other teams predict; of probabilities, where what is submitted are labels."""

    name: str
    of: tuple[str, ...]


def both(name: str, view: str, model: Callable[[], Any]) -> tuple[Team, Team]:
    """Make two teams of a pipeline: one that has all of the training rows, one with a quarter."""
    return Team(name, view, model), Team(f"{name}, a quarter of the rows", view, model, 0.25)
