"""Parts that any form of competition ends with: metric, validation, submission."""

from collections.abc import Iterator, Mapping
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.tasks import Metric, Task

_SCORES: Final[Mapping[Metric, str]] = {
    "rmsle": "root_mean_squared_error(truth, predicted)",
    "rmse": "root_mean_squared_error(truth, predicted)",
    "mae": "mean_absolute_error(truth, predicted)",
    "r2": "r2_score(truth, predicted)",
    "log-loss": "log_loss(truth, predicted, labels=np.arange(len(classes)))",
    "accuracy": "accuracy_score(truth, predicted.argmax(axis=1))",
    "kappa": 'cohen_kappa_score(truth, predicted.argmax(axis=1), weights="quadratic")',
    "f1": 'f1_score(truth, predicted.argmax(axis=1), average="macro")',
    "auc": (
        "roc_auc_score(truth, predicted[:, 1]) if len(classes) == 2 else"
        ' roc_auc_score(truth, predicted, multi_class="ovr")'
    ),
}
_METRIC: Final = """
def score(truth, predicted):
    return {score}
"""
_FOLDS: Final = """
scores = []
folds = {folds}(n_splits=$count, shuffle=True, random_state=SEED)
for fit_rows, held_rows in folds.split(np.zeros(len(y)), y):
    model = fit_model(X[fit_rows], y[fit_rows])
    scores.append(score(y[held_rows], predict(model, X[held_rows])))
print(f"Validation metric: {{np.mean(scores):.5f}}")
"""
_HELD_OUT: Final = """
fit_rows, held_rows = train_test_split(np.arange(len(y)), test_size=0.25, random_state=SEED{strata})
model = fit_model(X[fit_rows], y[fit_rows])
print(f"Validation metric: {{score(y[held_rows], predict(model, X[held_rows])):.5f}}")
"""
_SUBMISSION: Final = """
predicted = predict(fit_model(X, y), X_test)
{made}
submission[list(sample.columns)].to_csv("submission.csv", index=False)
"""
_PROBABILITIES: Final = """
submission = pd.DataFrame(predicted, columns=[str(name) for name in classes])
submission.insert(0, ID, {ids}[ID].to_numpy())
""".strip()
_ONE: Final = 'submission = pd.DataFrame({{ID: {ids}[ID].to_numpy(), "{output}": {value}}})'


def endings(task: Task) -> Iterator[Part]:
    """Yield the ways to measure, to validate and to submit."""
    yield Part("Metric", _named(task.metric), _METRIC.format(score=_SCORES[task.metric]))
    yield from validations(task)
    yield Part(
        "Submission",
        "in the form of the sample",
        _SUBMISSION.format(made=_made(task)),
    )


def validations(task: Task) -> Iterator[Part]:
    """Yield the ways to validate with rows that are independent of each other."""
    strata = ", stratify=y" if task.classes else ""
    folds = "StratifiedKFold" if task.classes else "KFold"
    yield Part("Validation", "a quarter held out", _HELD_OUT.format(strata=strata), 1.5)
    counts = {"count": ("3", "5")} if task.form == "table" else {"count": ("3",)}
    yield Part("Validation", "folds", _FOLDS.format(folds=folds), 1.0, options=counts)


def _made(task: Task) -> str:
    ids = "sample" if task.form == "pictures" else "test"
    if task.probabilities:
        return _PROBABILITIES.format(ids=ids)
    return _ONE.format(
        ids=ids, output=task.outputs[0] if task.outputs else "target", value=_value(task)
    )


def _value(task: Task) -> str:
    if task.metric == "rmsle":
        return "np.expm1(predicted).clip(0)"
    if task.metric in ("auc", "log-loss"):
        return "predicted[:, 1]"
    return "classes[predicted.argmax(axis=1)]" if task.classes else "predicted"


def _named(metric: Metric) -> str:
    return {
        "rmsle": "root mean squared logarithmic error",
        "rmse": "root mean squared error",
        "mae": "mean absolute error",
        "log-loss": "logarithmic loss",
        "auc": "area under the curve",
        "kappa": "quadratic weighted kappa",
        "f1": "mean F1",
        "r2": "R2",
    }.get(metric, metric)
