"""Parts that programs of any form end with: metric, validation, submission."""

from collections.abc import Iterator, Mapping
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.tasks import Form, Metric, Task

_SCORES: Final[Mapping[Metric, tuple[str, str]]] = {
    "rmsle": (
        "root mean squared logarithmic error",
        "root_mean_squared_error(truth, predicted)",
    ),
    "rmse": ("root mean squared error", "root_mean_squared_error(truth, predicted)"),
    "mae": ("mean absolute error", "mean_absolute_error(truth, predicted)"),
    "r2": ("R2", "r2_score(truth, predicted)"),
    "log-loss": (
        "logarithmic loss",
        "log_loss(truth, predicted, labels=np.arange(len(classes)))",
    ),
    "accuracy": ("accuracy", "accuracy_score(truth, predicted.argmax(axis=1))"),
    "kappa": (
        "quadratic weighted kappa",
        'cohen_kappa_score(truth, predicted.argmax(axis=1), weights="quadratic")',
    ),
    "f1": ("mean F1", 'f1_score(truth, predicted.argmax(axis=1), average="macro")'),
    "auc": (
        "area under the curve",
        'roc_auc_score(truth, predicted[:, -1] if len(classes) == 2 else predicted, multi_class="ovr")',
    ),
}
"""Titles, and what computes them; answers to RMSLE are logarithms already."""

_METRIC: Final = """
def score(truth, predicted):
    return {score}
"""
_FOLDS: Final = """
scores = []
folds = {folds}(n_splits=$count, shuffle=True, random_state=SEED)
for fit_rows, held_rows in folds.split(np.zeros(len(y)), {strata}):
    model = {fitted}
    scores.append({scored})
print(f"Validation metric: {{np.mean(scores):.5f}}")
"""
_HELD_OUT: Final = """
fit_rows, held_rows = train_test_split(np.arange(len(y)), test_size=0.25, random_state=SEED{strata})
model = {fitted}
print(f"Validation metric: {{{scored}:.5f}}")
"""
_FITTED: Final[Mapping[Form, str]] = {
    "table": "fit_model(X[fit_rows], y[fit_rows])",
    "text": "fit_model(X[fit_rows], y[fit_rows])",
    "pictures": "fit_on(fit_rows)",
    "restoring": "fit_on(fit_rows)",
}
_ON_ALL: Final[Mapping[Form, str]] = {
    "table": "predict(fit_model(X, y), X_test)",
    "text": "predict(fit_model(X, y), X_test)",
    "pictures": "predict(fit_on(np.arange(len(y))), X_test)",
    "restoring": "restored(fit_on(np.arange(len(y))), X_test)",
}
_SCORED: Final = "score(y[held_rows], predict(model, X[held_rows]))"
_SCORED_PIXELS: Final = "score(y[held_rows].ravel(), restored(model, X[held_rows]).ravel())"

_SUBMISSION: Final = """
predicted = {predicted}
{made}
submission[list(sample.columns)].to_csv("submission.csv", index=False)
"""
_PROBABILITIES: Final = """
submission = pd.DataFrame(predicted, columns=[str(name) for name in classes])
submission.insert(0, ID, {ids}[ID].to_numpy())
""".strip()
_ONE: Final = 'submission = pd.DataFrame({{ID: {ids}[ID].to_numpy(), "{output}": {value}}})'
_PIXELS: Final = """
where = sample[ID].str.rsplit("_", n=2, expand=True)
picture = where[0].map({{name: at for at, name in enumerate(new_names)}}).to_numpy()
pixel = where[1].astype(int).to_numpy() * new.shape[2] + where[2].astype(int).to_numpy()
submission = pd.DataFrame({{ID: sample[ID], "{output}": predicted[picture, pixel].round(2)}})
""".strip()


def metric_called(title: str) -> Metric | None:
    """Return the metric that a program's section of that title computes, if it is one of ours."""
    return next((metric for metric, (called, _) in _SCORES.items() if called == title), None)


def endings(task: Task) -> Iterator[Part]:
    """Yield the ways to measure, to validate and to submit."""
    title, score = _SCORES[task.metric]
    yield Part("Metric", title, _METRIC.format(score=score))
    yield from _validations(task)
    submission = _SUBMISSION.format(predicted=_ON_ALL[task.form], made=_made(task))
    yield Part("Submission", "in the form of the sample", submission)


def _validations(task: Task) -> Iterator[Part]:
    fitted = _FITTED[task.form]
    scored = _SCORED_PIXELS if task.form == "restoring" else _SCORED
    strata = ", stratify=y" if task.classes else ""
    held_out = _HELD_OUT.format(strata=strata, fitted=fitted, scored=scored)
    yield Part("Validation", "a quarter held out", held_out, 2)
    folds = _FOLDS.format(
        folds="StratifiedKFold" if task.classes else "KFold",
        strata="y",
        fitted=fitted,
        scored=scored,
    )
    counts = ("3", "5") if task.form == "table" else ("3",)
    yield Part("Validation", "folds", folds, 1, options={"count": counts})


def _made(task: Task) -> str:
    ids = "sample" if task.form == "pictures" else "test"
    if task.form == "restoring":
        return _PIXELS.format(output=task.outputs[0])
    if task.probabilities:
        return _PROBABILITIES.format(ids=ids)
    return _ONE.format(ids=ids, output=task.outputs[0], value=_value(task))


def _value(task: Task) -> str:
    if task.metric == "rmsle":
        return "np.expm1(predicted).clip(0)"
    if task.metric in ("auc", "log-loss"):
        return "predicted[:, 1]"
    return "classes[predicted.argmax(axis=1)]" if task.classes else "predicted"
