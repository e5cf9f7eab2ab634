"""What a board needs to know of a competition: its data as competitors read it, and its teams."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from langgraft._core.lazy import require


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


Floats = NDArray[np.float64]
View = Callable[["Data"], tuple[Any, Any]]
"""Makes features of the data: of the training rows, and of the test's."""


@dataclass
class Data:
    """A prepared competition as competitors see it, and the truth that they do not."""

    train: Any
    """Whatever views are made of: a table, or an array of pictures."""
    test: Any
    labels: Any
    """What models learn to predict."""
    truth: Any
    """The same of the test, in the order of its rows."""
    _seen: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def view(self, name: str, make: View) -> tuple[Any, Any]:
        """Return a view of training and test rows, made once."""
        if name not in self._seen:
            self._seen[name] = make(self)
        return self._seen[name]


@dataclass(frozen=True)
class Contest:
    """A competition, and who competes in it."""

    id: str
    metric: Literal["accuracy", "log-loss", "rmse"]
    """What the competition's own metric comes down to on `truth`; boards are graded by the
    competition's `grade`, and a test holds both against each other."""
    load: Callable[[Path], Data]
    """Reads a folder with `public` and `private`."""
    views: Mapping[str, View]
    teams: tuple[Team, ...]
    blends: tuple[Blend, ...]
    held_out: Team
    """On no board: a sensible solution, settled before the splits it is judged on were seen."""
    finish: Callable[[Floats], Floats] = lambda prediction: prediction
    """Makes what is submitted of what is predicted."""
    units: Callable[[Floats], Floats] = lambda losses: losses
    """Means of losses over what is drawn as a whole: rows that belong together."""
    judged: str = "judged"
    """What the splits are called that the pipeline held out is judged on (`fresh`): a name that
    was never used while teams and the competition itself were settled."""

    @property
    def lower_is_better(self) -> bool:
        """The metric's direction."""
        return self.metric != "accuracy"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all teams."""
        return (*(team.name for team in self.teams), *(blend.name for blend in self.blends))

    def losses(self, prediction: Floats, data: Data) -> Floats:
        """Return the loss of each row.

        That is -ln of the true class's probability, the squared error, or 1 where the likeliest
        class is not the true one.
        """
        if self.metric == "rmse":
            difference: Floats = (prediction - data.truth) ** 2
            return difference
        if self.metric == "accuracy":
            wrong: Floats = (prediction.argmax(axis=1) != data.truth).astype(np.float64)
            return wrong
        share = prediction / prediction.sum(axis=1, keepdims=True)
        likely = share[np.arange(len(share)), data.truth]
        missed: Floats = -np.log(np.maximum(likely, 1e-7))
        return missed

    def score(self, losses: Floats) -> float:
        """Return the score of rows with these losses."""
        mean = float(losses.mean())
        if self.metric == "accuracy":
            return 1 - mean
        return mean if self.metric == "log-loss" else float(np.sqrt(mean))


def read_table(file: Path) -> Any:
    """Read a CSV file."""
    pandas = require("pandas", extra="mle", purpose="Making a board")
    return pandas.read_csv(file)


def read_pictures(folder: Path, numbers: Sequence[int]) -> Floats:
    """Read gray pictures `<number>.png`, as shades from 0 to 255: picture, row, column."""
    pillow = require("PIL.Image", extra="mle", purpose="Making a board")
    pictures = []
    for number in numbers:
        with pillow.open(folder / f"{number}.png") as picture:
            pictures.append(np.asarray(picture, dtype=np.float64))
    return np.stack(pictures)


def places(values: Sequence[str], classes: Sequence[str]) -> NDArray[np.int64]:
    """Return classes as their positions."""
    known = {name: place for place, name in enumerate(classes)}
    return np.array([known[str(value)] for value in values], dtype=np.int64)
