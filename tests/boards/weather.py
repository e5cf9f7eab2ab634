"""Teams of the competition `weather`."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from boards.contests import Blend, Contest, Data, Floats, Team, both, places, read_table

KINDS: Final = ("drizzle", "fog", "rain", "snow", "sun")
WETNESS: Final = {"dry": 0, "trace": 1, "light": 2, "heavy": 3}


def load(folder: Path) -> Data:
    """Read tables."""
    train = read_table(folder / "public" / "train.csv")
    answers = read_table(folder / "private" / "answers.csv")
    return Data(
        train,
        read_table(folder / "public" / "test.csv"),
        places(train["weather"], KINDS),
        places(answers["weather"], KINDS),
    )


def _plain(table: Any) -> Floats:
    numbers = table[["month", "warmest", "coldest", "wind"]].to_numpy(dtype=np.float64)
    return np.column_stack([numbers, table["wetness"].map(WETNESS).to_numpy()])


def _dry(table: Any) -> Floats:
    return _plain(table)[:, 1:4]


def _wide(table: Any) -> Floats:
    plain = _plain(table)
    wet = plain[:, [4]] == np.arange(4)
    return np.column_stack([plain[:, 1:4], wet, plain[:, [0]] == np.arange(1, 13)])


def _season(table: Any) -> Floats:
    plain = _plain(table)
    turn = 2 * np.pi * (plain[:, 0] - 0.5) / 12
    wet = plain[:, [4]] == np.arange(4)
    spread = plain[:, 1] - plain[:, 2]
    mean = (plain[:, 1] + plain[:, 2]) / 2
    return np.column_stack([mean, spread, plain[:, 3], wet, np.sin(turn), np.cos(turn)])


def _pair(make: Any) -> Any:
    return lambda data: (make(data.train), make(data.test))


def _logistic(penalty: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=500))


def _curved(penalty: float) -> Any:
    return make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=penalty, max_iter=500),
    )


def _splines(penalty: float) -> Any:
    return make_pipeline(
        SplineTransformer(n_knots=4, degree=2),
        StandardScaler(),
        LogisticRegression(C=penalty, max_iter=500),
    )


def _neighbors(count: int) -> Any:
    return make_pipeline(StandardScaler(), KNeighborsClassifier(count))


def _forest(leaf: int, kind: Any = RandomForestClassifier) -> Any:
    return kind(80, min_samples_leaf=leaf, random_state=0)


def _vectors(penalty: float) -> Any:
    machine = CalibratedClassifierCV(SVC(C=penalty), ensemble=False, cv=4)
    return make_pipeline(StandardScaler(), machine)


def _histograms(**settings: Any) -> Any:
    return HistGradientBoostingClassifier(random_state=0, **settings)


CONTEST: Final = Contest(
    id="weather",
    metric="log-loss",
    load=load,
    views={
        "plain": _pair(_plain),
        "dry": _pair(_dry),
        "wide": _pair(_wide),
        "season": _pair(_season),
    },
    teams=(
        Team("how often each was", "plain", DummyClassifier),
        Team("logistic, no rain", "dry", lambda: _logistic(1.0)),
        Team("logistic, untamed", "wide", lambda: _logistic(1000.0)),
        *both("logistic", "plain", lambda: _logistic(1.0)),
        *both("logistic on wide", "wide", lambda: _logistic(0.05)),
        *both("logistic on season", "season", lambda: _logistic(0.3)),
        *both("curved", "season", lambda: _curved(0.02)),
        Team("splines", "plain", lambda: _splines(0.05)),
        Team("splines on season", "season", lambda: _splines(0.05)),
        Team("10 neighbors", "plain", lambda: _neighbors(10)),
        *both("40 neighbors", "plain", lambda: _neighbors(40)),
        Team("100 neighbors", "season", lambda: _neighbors(100)),
        *both("naive Bayes", "plain", GaussianNB),
        Team(
            "linear discriminants",
            "season",
            lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
        ),
        Team(
            "quadratic discriminants", "plain", lambda: QuadraticDiscriminantAnalysis(reg_param=0.1)
        ),
        Team(
            "tree of depth 3", "plain", lambda: DecisionTreeClassifier(max_depth=3, random_state=0)
        ),
        Team(
            "tree of depth 5",
            "plain",
            lambda: DecisionTreeClassifier(max_depth=5, min_samples_leaf=10, random_state=0),
        ),
        *both("forest", "plain", lambda: _forest(1)),
        *both("forest, leaves of 5", "plain", lambda: _forest(5)),
        Team("forest, leaves of 25", "season", lambda: _forest(25)),
        *both("extra trees, leaves of 5", "season", lambda: _forest(5, ExtraTreesClassifier)),
        Team("boosting", "plain", lambda: _histograms(max_iter=60)),
        Team("logistic on season, a tenth of the rows", "season", lambda: _logistic(0.3), 0.1),
        Team("forest, leaves of 5, a tenth of the rows", "plain", lambda: _forest(5), 0.1),
        Team("100 neighbors, a quarter of the rows", "season", lambda: _neighbors(100), 0.25),
        Team("boosting, dry", "dry", lambda: _histograms(max_iter=20)),
        Team("forest, dry", "dry", lambda: _forest(10)),
        Team("splines, dry", "dry", lambda: _splines(0.05)),
        *both(
            "boosting, gentle",
            "plain",
            lambda: _histograms(max_iter=40, learning_rate=0.05, max_leaf_nodes=6),
        ),
        Team("vectors", "season", lambda: _vectors(1.0)),
    ),
    blends=(
        Blend("curved and logistic", ("curved", "logistic on season", "forest, leaves of 25")),
        Blend("splines, curved, boosting", ("splines on season", "curved", "boosting, gentle")),
        Blend("logistic and forest", ("logistic on season", "forest, leaves of 5")),
        Blend("curved, splines, extra trees", ("curved", "splines", "extra trees, leaves of 5")),
        Blend(
            "seven together",
            (
                "curved",
                "splines",
                "logistic on wide",
                "logistic on season",
                "extra trees, leaves of 5",
                "forest, leaves of 25",
                "vectors",
            ),
        ),
    ),
    held_out=Team(
        "gradient boosting of small trees",
        "plain",
        lambda: GradientBoostingClassifier(
            n_estimators=60,
            max_depth=2,
            learning_rate=0.05,
            subsample=0.5,
            min_samples_leaf=10,
            random_state=0,
        ),
    ),
)
