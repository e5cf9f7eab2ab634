"""Models of features, for numbers and for classes. Every one is a `Part` of the slot Model."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

_TEXT: Final = """
def fit_model(features, answers):
    model = {model}
    return model.fit(features, answers)


def predict(model, features):
    return model.{method}(features)
"""
_BOTH: Final = ("dense", "sparse")

_LIGHTGBM: Final = """
def fit_model(features, answers):
    X_fit, X_stop, y_fit, y_stop = train_test_split(
        features, answers, test_size=0.15, random_state=SEED
    )
    model = lgb.LGBM{kind}(
        n_estimators=$rounds, learning_rate=$rate, num_leaves=$leaves, verbose=-1, n_jobs=1
    )
    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], callbacks=[lgb.early_stopping(15, verbose=False)])
    return model


def predict(model, features):
    return model.{method}(features)
"""
_XGBOOST: Final = """
def fit_model(features, answers):
    X_fit, X_stop, y_fit, y_stop = train_test_split(
        features, answers, test_size=0.15, random_state=SEED
    )
    model = xgb.XGB{kind}(
        n_estimators=$rounds, learning_rate=$rate, max_depth=$depth, subsample=0.8, n_jobs=1,
        tree_method="hist", early_stopping_rounds=15,
    )
    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], verbose=False)
    return model


def predict(model, features):
    return model.{method}(features)
"""


def models_for(task: Task) -> Iterator[Part]:
    """Yield the models that a task allows.

    Where there are many features or rows, boosting gets fewer rounds, and neighbors and
    vectors are left out where there are too many: programs are to take a second or two.
    """
    if task.classes:
        yield from _classifiers(rounds=("25", "40") if task.form == "table" else ("8", "15"))
        if task.form != "text":
            yield from _vectors()
    else:
        yield from _regressors()
        if task.form != "restoring":
            yield _neighbors()
    yield from _boosters(task)


def _part(
    title: str,
    model: str,
    weight: float,
    *,
    classes: bool,
    takes: tuple[str, ...] = ("dense",),
    heavy: bool = False,
    **options: tuple[str, ...],
) -> Part:
    method = "predict_proba" if classes else "predict"
    return Part(
        "Model",
        title,
        _TEXT.format(model=model, method=method),
        weight,
        heavy=heavy,
        takes=takes,
        options=options,
    )


def _classifiers(rounds: tuple[str, ...]) -> Iterator[Part]:
    yield _part(
        "logistic regression on scaled features",
        "make_pipeline(StandardScaler(), LogisticRegression(C=$c, max_iter=400))",
        2,
        classes=True,
        c=("0.01", "0.05", "0.3", "1.0"),
    )
    yield _part(
        "logistic regression",
        "LogisticRegression(C=$c, max_iter=400)",
        2,
        classes=True,
        takes=("sparse",),
        c=("1.0", "4.0", "10.0", "20.0"),
    )
    yield _part(
        "naive Bayes of counts",
        "MultinomialNB(alpha=$alpha)",
        2,
        classes=True,
        takes=("sparse",),
        alpha=("0.1", "0.3", "1.0"),
    )
    yield _part(
        "stochastic gradient descent",
        'SGDClassifier(loss="log_loss", alpha=$alpha, random_state=0)',
        1,
        classes=True,
        takes=("sparse",),
        alpha=("1e-4", "3e-5"),
    )
    yield _part(
        "linear support vectors, calibrated",
        "CalibratedClassifierCV(estimator=LinearSVC(C=$c), cv=3)",
        1,
        classes=True,
        takes=("sparse",),
        c=("0.1", "0.3", "1.0"),
    )
    yield _part(
        "a random forest",
        'RandomForestClassifier(n_estimators=$trees, min_samples_leaf=$leaf, max_features="sqrt", '
        "random_state=0)",
        2,
        classes=True,
        trees=("60", "100"),
        leaf=("3", "8", "20"),
    )
    yield _part(
        "extra trees",
        "ExtraTreesClassifier(n_estimators=$trees, min_samples_leaf=$leaf, random_state=0)",
        1,
        classes=True,
        trees=("80", "120"),
        leaf=("2", "4", "8"),
    )
    yield _part(
        "gradient boosting",
        'GradientBoostingClassifier(loss="log_loss", n_estimators=$trees, max_depth=2, '
        "learning_rate=0.1, subsample=0.7, random_state=0)",
        1,
        classes=True,
        heavy=True,
        trees=rounds,
    )
    yield _part(
        "histogram gradient boosting",
        "HistGradientBoostingClassifier(max_iter=$rounds, learning_rate=$rate, "
        "max_leaf_nodes=$leaves, l2_regularization=0.1, random_state=0)",
        1.5,
        classes=True,
        heavy=True,
        rounds=rounds,
        rate=("0.06", "0.1"),
        leaves=("6", "12"),
    )
    yield _part(
        "nearest neighbors",
        'make_pipeline(StandardScaler(), KNeighborsClassifier($count, weights="distance"))',
        0.8,
        classes=True,
        count=("15", "40", "80"),
    )
    yield _part(
        "a network",
        "make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=($size,), alpha=$alpha, "
        "max_iter=$rounds, random_state=0))",
        1.2,
        classes=True,
        size=("30", "60"),
        alpha=("1.0", "5.0"),
        rounds=("30", "50"),
    )
    yield _part(
        "linear discriminants",
        'LinearDiscriminantAnalysis(solver="lsqr", shrinkage=$shrinkage)',
        0.8,
        classes=True,
        shrinkage=("0.05", "0.2"),
    )
    yield _part(
        "naive Bayes with normal densities",
        "make_pipeline(StandardScaler(), GaussianNB(var_smoothing=$smoothing))",
        0.5,
        classes=True,
        smoothing=("0.01", "0.1"),
    )
    yield _part(
        "bagged trees",
        "BaggingClassifier(estimator=DecisionTreeClassifier(min_samples_leaf=$leaf), "
        "n_estimators=25, random_state=0)",
        0.6,
        classes=True,
        leaf=("5", "10"),
    )


def _vectors() -> Iterator[Part]:
    yield _part(
        "support vectors, calibrated",
        "make_pipeline(StandardScaler(), "
        "CalibratedClassifierCV(estimator=SVC(C=$c), ensemble=False, cv=3))",
        1.5,
        classes=True,
        heavy=True,
        c=("0.5", "1.0", "3.0"),
    )
    yield _part(
        "support vectors on features as they are",
        "CalibratedClassifierCV(estimator=SVC(C=$c), ensemble=False, cv=3)",
        1.2,
        classes=True,
        heavy=True,
        c=("1.0", "3.0", "5.0"),
    )


def _regressors() -> Iterator[Part]:
    yield _part(
        "ridge regression",
        "make_pipeline(StandardScaler(), Ridge(alpha=$alpha))",
        1.5,
        classes=False,
        alpha=("1.0", "10.0", "30.0"),
    )
    yield _part(
        "ridge regression on counts",
        "Ridge(alpha=$alpha)",
        2,
        classes=False,
        takes=("sparse",),
        alpha=("0.3", "1.0", "3.0"),
    )
    yield _part(
        "a random forest",
        'RandomForestRegressor(n_estimators=$trees, criterion="squared_error", '
        "min_samples_leaf=$leaf, max_features=0.5, max_samples=0.5, random_state=0)",
        1.8,
        classes=False,
        trees=("40", "60"),
        leaf=("10", "30"),
    )
    yield _part(
        "extra trees",
        'ExtraTreesRegressor(n_estimators=$trees, criterion="squared_error", '
        "min_samples_leaf=$leaf, max_features=0.5, random_state=0)",
        1.2,
        classes=False,
        trees=("40", "60"),
        leaf=("5", "10"),
    )
    yield _part(
        "gradient boosting",
        'GradientBoostingRegressor(loss="squared_error", n_estimators=$trees, max_depth=3, '
        "learning_rate=0.1, subsample=0.5, random_state=0)",
        1.2,
        classes=False,
        heavy=True,
        trees=("50", "80"),
    )
    yield _part(
        "histogram gradient boosting",
        "HistGradientBoostingRegressor(max_iter=$rounds, learning_rate=$rate, "
        "max_leaf_nodes=$leaves, l2_regularization=1.0, random_state=0)",
        2,
        classes=False,
        rounds=("80", "120"),
        rate=("0.05", "0.1"),
        leaves=("15", "31"),
    )
    yield _part(
        "a network",
        "make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=($size,), alpha=0.1, "
        "max_iter=$rounds, random_state=0))",
        1.5,
        classes=False,
        heavy=True,
        size=("24", "40"),
        rounds=("12", "20"),
    )
    yield _part(
        "bagged trees",
        "BaggingRegressor(estimator=DecisionTreeRegressor(min_samples_leaf=$leaf), "
        "n_estimators=25, max_samples=0.5, random_state=0)",
        0.6,
        classes=False,
        leaf=("10", "20"),
    )


def _neighbors() -> Part:
    return _part(
        "nearest neighbors",
        'make_pipeline(StandardScaler(), KNeighborsRegressor($count, weights="distance"))',
        0.8,
        classes=False,
        count=("30", "60"),
    )


def _boosters(task: Task) -> Iterator[Part]:
    classes = task.classes
    method = "predict_proba" if classes else "predict"
    kind = "Classifier" if classes else "Regressor"
    rounds = ("60", "90") if classes else ("120", "200")
    if classes and task.form != "table":
        rounds = ("15", "25")
    yield Part(
        "Model",
        "LightGBM with early stopping",
        _LIGHTGBM.format(kind=kind, method=method),
        3.0,
        package="lightgbm",
        heavy=True,
        options={"rounds": rounds, "rate": ("0.05", "0.1"), "leaves": ("7", "15")},
    )
    yield Part(
        "Model",
        "XGBoost with early stopping",
        _XGBOOST.format(kind=kind, method=method),
        2.5,
        package="xgboost",
        heavy=True,
        options={"rounds": rounds, "rate": ("0.08", "0.15"), "depth": ("3", "4")},
    )


_MEAN: Final = """def fit_model(features, answers):
    return fit_first(features, answers), fit_second(features, answers)


def predict(models, features):
    return (predict_first(models[0], features) + predict_second(models[1], features)) / 2"""


def blended(first: str, second: str) -> str:
    """Join the texts of two models into one whose prediction is the mean of theirs.

    Args:
        first: The body of a Model section.
        second: That of another.
    """
    return "\n\n\n".join((_renamed(first, "first"), _renamed(second, "second"), _MEAN))


def _renamed(text: str, name: str) -> str:
    names: Mapping[str, str] = {"fit_model": f"fit_{name}", "predict": f"predict_{name}"}
    for old, new in names.items():
        text = re.sub(rf"\bdef {old}\(", f"def {new}(", text)
    return text
