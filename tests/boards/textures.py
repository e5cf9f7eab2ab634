"""Teams of the competition `textures`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from boards import pictures
from boards.contests import (
    Blend,
    Contest,
    Data,
    Floats,
    Team,
    both,
    places,
    read_pictures,
    read_table,
)

SURFACES: Final = ("surface_a", "surface_b", "surface_c")


def load(folder: Path) -> Data:
    """Read pictures."""
    train = read_table(folder / "public" / "train.csv")
    answers = read_table(folder / "private" / "answers.csv")
    return Data(
        read_pictures(folder / "public" / "train", train["id"].tolist()),
        read_pictures(folder / "public" / "test", answers["id"].tolist()),
        places(train["surface"], SURFACES),
        places(answers["surface"], SURFACES),
    )


def _texture(shown: Floats) -> Floats:
    return np.column_stack([pictures.rings(shown), pictures.moments(shown), pictures.edges(shown)])


def _everything(shown: Floats) -> Floats:
    return np.column_stack([_texture(shown), pictures.spectrum(shown, 6)])


def _pair(make: Callable[[Floats], Floats]) -> Any:
    return lambda data: (make(data.train), make(data.test))


def _logistic(penalty: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=200))


def _vectors(penalty: float) -> Any:
    return make_pipeline(
        StandardScaler(), CalibratedClassifierCV(SVC(C=penalty), ensemble=False, cv=3)
    )


def _network(size: int, rounds: int) -> Any:
    return make_pipeline(
        StandardScaler(),
        MLPClassifier(
            hidden_layer_sizes=(size,),
            max_iter=rounds,
            alpha=10.0,
            tol=0.0,
            n_iter_no_change=10_000,
            random_state=0,
        ),
    )


def _forest(leaf: int, kind: Any = RandomForestClassifier) -> Any:
    return kind(80, min_samples_leaf=leaf, random_state=0)


def _gentle() -> Any:
    return HistGradientBoostingClassifier(
        max_iter=50, learning_rate=0.06, max_leaf_nodes=6, random_state=0
    )


CONTEST: Final = Contest(
    id="textures",
    metric="log-loss",
    load=load,
    views={
        "pixels": _pair(pictures.flat),
        "spectrum": _pair(pictures.spectrum),
        "rings": _pair(pictures.rings),
        "moments": _pair(pictures.moments),
        "edges": _pair(pictures.edges),
        "texture": _pair(_texture),
        "everything": _pair(_everything),
    },
    teams=(
        Team("how often each was", "rings", DummyClassifier),
        Team("pixels, logistic", "pixels", lambda: _logistic(0.0001)),
        Team(
            "pixels, 60 directions, vectors",
            "pixels",
            lambda: make_pipeline(PCA(60, random_state=0), _vectors(1.0)),
        ),
        Team("pixels, forest", "pixels", lambda: _forest(5)),
        Team("rings, naive Bayes", "rings", GaussianNB),
        *both("spectrum, forest", "spectrum", lambda: _forest(3)),
        *both("spectrum, logistic", "spectrum", lambda: _logistic(0.01)),
        Team("spectrum, vectors", "spectrum", lambda: _vectors(1.0)),
        *both("rings, logistic", "rings", lambda: _logistic(1.0)),
        *both("rings, forest", "rings", lambda: _forest(5)),
        Team("moments, logistic", "moments", lambda: _logistic(0.3)),
        Team("moments, forest", "moments", lambda: _forest(5)),
        *both("edges, logistic", "edges", lambda: _logistic(1.0)),
        Team("edges, forest", "edges", lambda: _forest(5)),
        *both("texture, logistic", "texture", lambda: _logistic(0.1)),
        *both("texture, forest", "texture", lambda: _forest(3)),
        *both("texture, vectors", "texture", lambda: _vectors(2.0)),
        *both(
            "texture, discriminants",
            "texture",
            lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.05),
        ),
        Team(
            "texture, 30 neighbors",
            "texture",
            lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(30)),
        ),
        *both("texture, boosting", "texture", _gentle),
        *both("texture, network", "texture", lambda: _network(30, 40)),
        Team("everything, extra trees", "everything", lambda: _forest(3, ExtraTreesClassifier)),
        Team("everything, logistic", "everything", lambda: _logistic(0.01)),
        Team("everything, vectors", "everything", lambda: _vectors(2.0)),
    ),
    blends=(
        Blend("vectors and network", ("texture, vectors", "texture, network")),
        Blend("logistic and vectors", ("texture, logistic", "texture, vectors")),
        Blend("boosting and forest", ("texture, boosting", "texture, forest")),
        Blend(
            "logistic, boosting, vectors",
            ("texture, logistic", "texture, boosting", "texture, vectors"),
        ),
        Blend("logistic of two kinds", ("texture, logistic", "everything, logistic")),
        Blend("logistic and forest", ("texture, logistic", "texture, forest")),
        Blend("logistic and boosting", ("texture, logistic", "texture, boosting")),
        Blend(
            "logistic, network, boosting",
            ("texture, logistic", "texture, network", "texture, boosting"),
        ),
        Blend("vectors of two kinds", ("texture, vectors", "everything, vectors")),
        Blend(
            "four together",
            ("texture, vectors", "everything, vectors", "texture, network", "texture, logistic"),
        ),
    ),
    held_out=Team(
        "texture, forest of 200",
        "texture",
        lambda: RandomForestClassifier(200, min_samples_leaf=2, max_features=0.5, random_state=0),
    ),
)
