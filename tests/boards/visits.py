"""Teams of the competition `visits`. All learn ln(1 + visits), but those that miss the metric."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from boards.contests import Blend, Contest, Data, Floats, Team, both, read_table

HEALTH: Final = {"excellent": 0, "good": 1, "fair": 2, "poor": 3}


def load(folder: Path) -> Data:
    """Read tables; labels and truth are ln(1 + visits)."""
    train = read_table(folder / "public" / "train.csv")
    answers = read_table(folder / "private" / "answers.csv")
    test = read_table(folder / "public" / "test.csv")
    return Data(
        train, test, np.log1p(train["visits"].to_numpy()), np.log1p(answers["visits"].to_numpy())
    )


def finish(prediction: Floats) -> Floats:
    """Return visits."""
    return np.expm1(prediction)


def _plain(table: Any) -> Floats:
    columns = ["plan_level", "deductible", "incentive", "spending_cap", "limited", "illness"]
    health = table["health"].map(HEALTH).to_numpy()
    return np.column_stack([table[columns].to_numpy(dtype=np.float64), health])


def _wide(table: Any) -> Floats:
    plain = _plain(table)
    levels = plain[:, [0]] == np.arange(5)
    health = plain[:, [6]] == np.arange(4)
    zero = plain[:, [2, 3]] == 0
    return np.column_stack([plain, levels, health, zero, plain[:, 5] * plain[:, 4]])


def _pair(make: Any) -> Any:
    return lambda data: (make(data.train), make(data.test))


def _counts(model: Any) -> Any:
    """Learn visits themselves, as those do who did not read the metric."""
    return TransformedTargetRegressor(
        model, func=np.expm1, inverse_func=_log_of_positive, check_inverse=False
    )


def _log_of_positive(visits: Floats) -> Floats:
    return np.log1p(np.maximum(visits, 0))


def _histograms(**settings: Any) -> Any:
    return HistGradientBoostingRegressor(random_state=0, **settings)


def _splines(alpha: float) -> Any:
    return make_pipeline(SplineTransformer(n_knots=6), StandardScaler(), Ridge(alpha))


def _kernel(gamma: float, alpha: float) -> Any:
    return make_pipeline(
        StandardScaler(), Nystroem(gamma=gamma, n_components=200, random_state=0), Ridge(alpha)
    )


def _neighbors(count: int) -> Any:
    return make_pipeline(StandardScaler(), KNeighborsRegressor(count))


def _forest(leaf: int, features: float = 0.4) -> Any:
    return RandomForestRegressor(50, min_samples_leaf=leaf, max_features=features, random_state=0)


CONTEST: Final = Contest(
    id="visits",
    metric="rmse",
    load=load,
    finish=finish,
    views={"plain": _pair(_plain), "wide": _pair(_wide)},
    teams=(
        Team("mean", "plain", DummyRegressor),
        Team("visits themselves, ridge", "plain", lambda: _counts(Ridge())),
        Team(
            "visits themselves, Poisson",
            "wide",
            lambda: _counts(make_pipeline(StandardScaler(), PoissonRegressor())),
        ),
        Team("visits themselves, boosting", "plain", lambda: _counts(_histograms())),
        *both("ridge", "plain", Ridge),
        *both("ridge on wide", "wide", Ridge),
        *both("10 neighbors", "plain", lambda: _neighbors(10)),
        *both("50 neighbors", "plain", lambda: _neighbors(50)),
        Team("150 neighbors", "wide", lambda: _neighbors(150)),
        Team("tree", "plain", lambda: DecisionTreeRegressor(random_state=0)),
        Team("tree of depth 4", "plain", lambda: DecisionTreeRegressor(max_depth=4)),
        Team(
            "tree of depth 8", "plain", lambda: DecisionTreeRegressor(max_depth=8, random_state=0)
        ),
        *both("forest", "plain", lambda: _forest(1, 1.0)),
        *both("forest, leaves of 5", "plain", lambda: _forest(5)),
        *both("forest, leaves of 30", "wide", lambda: _forest(30)),
        Team("extra trees", "plain", lambda: ExtraTreesRegressor(50, random_state=0)),
        Team(
            "extra trees, leaves of 10",
            "plain",
            lambda: ExtraTreesRegressor(50, min_samples_leaf=10, random_state=0),
        ),
        Team(
            "extra trees, leaves of 20",
            "wide",
            lambda: ExtraTreesRegressor(50, min_samples_leaf=20, random_state=0),
        ),
        *both("boosting, hasty", "plain", lambda: _histograms(learning_rate=0.3)),
        Team("boosting, long", "plain", lambda: _histograms(max_iter=300)),
        *both(
            "boosting, slower", "plain", lambda: _histograms(learning_rate=0.05, max_leaf_nodes=15)
        ),
        Team(
            "boosting, tuned",
            "wide",
            lambda: _histograms(
                learning_rate=0.03,
                max_iter=160,
                max_leaf_nodes=8,
                min_samples_leaf=40,
                l2_regularization=5.0,
            ),
        ),
        *both("splines", "wide", lambda: _splines(3.0)),
        Team("splines, a tenth of the rows", "wide", lambda: _splines(30.0), 0.1),
        Team(
            "boosting, slower, a tenth of the rows",
            "plain",
            lambda: _histograms(learning_rate=0.05, max_leaf_nodes=15, max_iter=50),
            0.1,
        ),
        Team("forest, leaves of 30, a tenth of the rows", "wide", lambda: _forest(30), 0.1),
        Team("splines, smoother", "wide", lambda: _splines(100.0)),
        Team("kernel", "wide", lambda: _kernel(0.03, 1.0)),
        Team("kernel, narrow", "wide", lambda: _kernel(0.2, 0.1)),
    ),
    blends=(
        Blend("extra trees and kernel", ("extra trees, leaves of 10", "kernel")),
        Blend("boosting and forest", ("boosting, slower", "forest, leaves of 30")),
        Blend("boosting and extra trees", ("boosting, tuned", "extra trees, leaves of 10")),
        Blend(
            "five together",
            (
                "boosting, tuned",
                "boosting, slower",
                "extra trees, leaves of 10",
                "forest, leaves of 30",
                "kernel",
            ),
        ),
    ),
    held_out=Team(
        "ridge on products of columns",
        "plain",
        lambda: make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge(10.0)),
    ),
)
