"""Models of features, for numbers and for classes. Every one is a `Part` of the slot Model."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.classifiers import classifiers, vectors
from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.regressors import neighbors, regressors
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

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
        yield from classifiers(rounds=("25", "40") if task.form == "table" else ("8", "15"))
        if task.form != "text":
            yield from vectors()
    else:
        yield from regressors()
        if task.form != "restoring":
            yield neighbors()
    yield from _boosters(task)


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
