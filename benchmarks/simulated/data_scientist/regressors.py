"""Models of numbers."""

from collections.abc import Iterator

from langgraft.benchmarks.simulated.data_scientist.estimators import regressor
from langgraft.benchmarks.simulated.data_scientist.parts import Part


def regressors() -> Iterator[Part]:
    """Yield models of numbers."""
    yield regressor(
        "ridge regression",
        "make_pipeline(StandardScaler(), Ridge(alpha=$alpha))",
        1.5,
        alpha=("1.0", "10.0", "30.0"),
    )
    yield regressor(
        "ridge regression on counts",
        "Ridge(alpha=$alpha)",
        2,
        takes=("sparse",),
        alpha=("0.3", "1.0", "3.0"),
    )
    yield regressor(
        "a random forest",
        'RandomForestRegressor(n_estimators=$trees, criterion="squared_error", '
        "min_samples_leaf=$leaf, max_features=0.5, max_samples=0.5, random_state=0)",
        1.8,
        trees=("40", "60"),
        leaf=("10", "30"),
    )
    yield regressor(
        "extra trees",
        'ExtraTreesRegressor(n_estimators=$trees, criterion="squared_error", '
        "min_samples_leaf=$leaf, max_features=0.5, random_state=0)",
        1.2,
        trees=("40", "60"),
        leaf=("5", "10"),
    )
    yield regressor(
        "gradient boosting",
        'GradientBoostingRegressor(loss="squared_error", n_estimators=$trees, max_depth=3, '
        "learning_rate=0.1, subsample=0.5, random_state=0)",
        1.2,
        heavy=True,
        trees=("50", "80"),
    )
    yield regressor(
        "histogram gradient boosting",
        "HistGradientBoostingRegressor(max_iter=$rounds, learning_rate=$rate, "
        "max_leaf_nodes=$leaves, l2_regularization=1.0, random_state=0)",
        2,
        rounds=("80", "120"),
        rate=("0.05", "0.1"),
        leaves=("15", "31"),
    )
    yield regressor(
        "a network",
        "make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=($size,), alpha=0.1, "
        "max_iter=$rounds, random_state=0))",
        1.5,
        heavy=True,
        size=("24", "40"),
        rounds=("12", "20"),
    )
    yield regressor(
        "bagged trees",
        "BaggingRegressor(estimator=DecisionTreeRegressor(min_samples_leaf=$leaf), "
        "n_estimators=20, max_features=0.4, max_samples=0.5, random_state=0)",
        0.6,
        leaf=("10", "20"),
    )


def neighbors() -> Part:
    """Return nearest neighbors."""
    return regressor(
        "nearest neighbors",
        'make_pipeline(StandardScaler(), KNeighborsRegressor($count, weights="distance"))',
        0.8,
        count=("30", "60"),
    )
