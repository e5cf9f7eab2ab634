"""An estimator of scikit-learn as a part of a program."""

from functools import partial
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.parts import Part

_TEXT: Final = """
def fit_model(features, answers):
    model = {model}
    return model.fit(features, answers)


def predict(model, features):
    return model.{method}(features)
"""


def _estimator(
    method: str,
    title: str,
    model: str,
    weight: float,
    *,
    takes: tuple[str, ...] = ("dense",),
    heavy: bool = False,
    **options: tuple[str, ...],
) -> Part:
    """Make a Model part of an expression that makes an estimator, and the method that predicts."""
    return Part(
        "Model",
        title,
        _TEXT.format(model=model, method=method),
        weight,
        heavy=heavy,
        takes=takes,
        options=options,
    )


classifier: Final = partial(_estimator, "predict_proba")
"""Make a model that says how likely each class is: title, expression, weight."""
regressor: Final = partial(_estimator, "predict")
"""Make a model of numbers: title, expression, weight."""
