"""An estimator of scikit-learn as a part of a program."""

from typing import Final

from langgraft.benchmarks.simulated.data_scientist.parts import Part

_TEXT: Final = """
def fit_model(features, answers):
    model = {model}
    return model.fit(features, answers)


def predict(model, features):
    return model.{method}(features)
"""


def estimator(
    title: str,
    model: str,
    weight: float,
    *,
    classes: bool,
    takes: tuple[str, ...] = ("dense",),
    heavy: bool = False,
    **options: tuple[str, ...],
) -> Part:
    """Make a Model part of an expression that makes an estimator."""
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
