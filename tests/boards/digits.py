"""Teams of the competition `digits`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from boards import pictures
from boards.contests import Blend, Contest, Data, Floats, Team, both, read_pictures, read_table


def load(folder: Path) -> Data:
    """Read pictures."""
    train = read_table(folder / "public" / "train.csv")
    answers = read_table(folder / "private" / "answers.csv")
    return Data(
        read_pictures(folder / "public" / "train", train["id"].tolist()),
        read_pictures(folder / "public" / "test", answers["id"].tolist()),
        train["digit"].to_numpy(),
        answers["digit"].to_numpy(),
    )


class Turned(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model that also learns from its pictures moved and turned.

    Args:
        model: Learns from features.
        features: Makes them of pictures.
        turns: How pictures are changed.
    """

    def __init__(
        self,
        model: Any,
        features: Callable[[Floats], Floats],
        turns: tuple[Callable[[Floats], Floats], ...],
    ) -> None:
        self.model = model
        self.features = features
        self.turns = turns

    def fit(self, shown: Floats, labels: Any) -> "Turned":
        """Learn."""
        seen = [self.features(turn(shown)) for turn in self.turns]
        self.model.fit(np.concatenate(seen), np.tile(labels, len(seen)))
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, shown: Floats) -> Floats:
        """Say how likely each class is."""
        return np.asarray(self.model.predict_proba(self.features(shown)))


def _same(shown: Floats) -> Floats:
    return shown


MOVES: Final = (
    _same,
    lambda shown: pictures.moved(shown, 0, 1),
    lambda shown: pictures.moved(shown, 1, 0),
    lambda shown: pictures.moved(shown, 0, -1),
    lambda shown: pictures.moved(shown, -1, 0),
)
TURNS: Final = (
    _same,
    lambda shown: pictures.turned(shown, 12),
    lambda shown: pictures.turned(shown, -12),
)


def _pair(make: Callable[[Floats], Floats]) -> Any:
    return lambda data: (make(data.train), make(data.test))


def _smooth(shown: Floats) -> Floats:
    return pictures.pooled(pictures.smooth(shown))


def _both(shown: Floats) -> Floats:
    return np.column_stack([pictures.gradients(shown), _smooth(shown)])


def _logistic(penalty: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=100))


def _vectors(penalty: float) -> Any:
    return CalibratedClassifierCV(SVC(C=penalty), ensemble=False, cv=3)


def _directions(count: int, model: Any) -> Any:
    return make_pipeline(PCA(count, random_state=0), model)


def _neighbors(count: int) -> Any:
    return KNeighborsClassifier(count, weights="distance")


def _network(size: int, rounds: int, alpha: float = 1.0) -> Any:
    return make_pipeline(
        StandardScaler(),
        MLPClassifier(
            hidden_layer_sizes=(size,),
            max_iter=rounds,
            alpha=alpha,
            tol=0.0,
            n_iter_no_change=10_000,
            random_state=0,
        ),
    )


CONTEST: Final = Contest(
    id="digits",
    metric="accuracy",
    load=load,
    views={
        "pictures": _pair(_same),
        "pixels": _pair(pictures.flat),
        "pooled": _pair(pictures.pooled),
        "smooth": _pair(_smooth),
        "edges": _pair(pictures.gradients),
        "both": _pair(_both),
    },
    teams=(
        Team("how often each was", "pooled", DummyClassifier),
        Team("naive Bayes", "pooled", lambda: GaussianNB(var_smoothing=0.1)),
        Team("naive Bayes, edges", "edges", lambda: GaussianNB(var_smoothing=0.01)),
        Team("tree", "edges", lambda: DecisionTreeClassifier(max_depth=10, random_state=0)),
        *both("logistic", "pixels", lambda: _logistic(0.003)),
        Team("logistic, untamed", "pooled", lambda: _logistic(10.0)),
        *both("logistic, pooled", "pooled", lambda: _logistic(0.01)),
        *both("logistic, edges", "edges", lambda: _logistic(0.01)),
        *both(
            "discriminants",
            "pooled",
            lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2),
        ),
        *both("8 neighbors", "pixels", lambda: _neighbors(8)),
        *both("20 neighbors, 30 directions", "pixels", lambda: _directions(30, _neighbors(20))),
        *both("forest", "pixels", lambda: RandomForestClassifier(80, random_state=0)),
        *both("forest, smooth", "smooth", lambda: RandomForestClassifier(80, random_state=0)),
        *both("extra trees, edges", "edges", lambda: ExtraTreesClassifier(100, random_state=0)),
        *both("vectors", "pixels", lambda: _vectors(3.0)),
        *both("vectors, smooth", "smooth", lambda: _vectors(5.0)),
        *both("vectors, edges", "edges", lambda: _vectors(5.0)),
        *both("vectors, 25 directions", "pixels", lambda: _directions(25, _vectors(2.0))),
        *both("network", "pooled", lambda: _network(60, 30)),
        *both("network, edges", "edges", lambda: _network(60, 30, 3.0)),
        Team("vectors, both", "both", lambda: _vectors(5.0)),
        Team(
            "network, turned",
            "pictures",
            lambda: Turned(_network(100, 15), _smooth, (*MOVES, *TURNS[1:])),
        ),
        Team(
            "network, turned, longer",
            "pictures",
            lambda: Turned(_network(160, 20, 3.0), _smooth, (*MOVES, *TURNS[1:])),
        ),
        Team(
            "edges, moved, network",
            "pictures",
            lambda: Turned(_network(100, 12, 3.0), pictures.gradients, (*MOVES, *TURNS[1:])),
        ),
        Team(
            "vectors, turned",
            "pictures",
            lambda: Turned(_directions(30, _vectors(5.0)), _smooth, TURNS),
        ),
        Team(
            "edges, turned",
            "pictures",
            lambda: Turned(_directions(40, _vectors(5.0)), pictures.gradients, TURNS),
        ),
    ),
    blends=(
        Blend("vectors of two kinds", ("vectors, smooth", "vectors, edges")),
        Blend("vectors of three kinds", ("vectors, both", "vectors, smooth", "vectors, edges")),
        Blend("networks", ("network, turned, longer", "edges, moved, network")),
        Blend("network and vectors", ("network, turned", "vectors, smooth", "vectors, edges")),
        Blend("turned together", ("network, turned", "vectors, turned", "edges, turned")),
        Blend("turned and not", ("vectors, turned", "edges, turned", "vectors, edges", "vectors")),
    ),
    finish=lambda prediction: prediction.argmax(axis=1),
    judged="judged-accuracy",  # the splits `judged-1` … judged this board by another metric
    held_out=Team(
        "quadratic discriminants, 20 directions",
        "pixels",
        lambda: _directions(20, QuadraticDiscriminantAnalysis(reg_param=0.1)),
    ),
)
