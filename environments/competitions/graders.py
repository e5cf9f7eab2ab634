"""Metrics as grade functions: for MLE-bench's 22 lite competitions, and for ones of your own.

    # grade.py
    from langgraft.environments.competitions.graders import root_mean_squared_error

    grade = root_mean_squared_error(id_column="id", target="price")

What they refuse and how they align rows is what MLE-bench's graders do for the same
competitions; each says where that is odd. A refused submission raises `InvalidSubmissionError`.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from langgraft._core.errors import LanggraftError
from langgraft._core.lazy import require
from langgraft.environments.competitions.competition import GradeFunction, Values

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

SUM_TOLERANCE: Final = 1e-6
"""How far from 1 the probabilities of a row may sum up to, beside numpy's own relative 1e-5."""


class InvalidSubmissionError(LanggraftError):
    """A submission cannot be graded. The message may tell of the answers: it is for the log."""


_PROBABILITIES: Final = Values(least=0, most=1)
_ASKED: Final[Mapping[str, Values]] = {
    "area_under_roc": _PROBABILITIES,
    "mean_area_under_roc": _PROBABILITIES,
    "log_loss": _PROBABILITIES,
    "multi_class_log_loss": Values(least=0, most=1, sum=1),
    # From -1 on by scikit-learn of today, from 0 on by that of before 1.5.
    "mean_root_mean_squared_log_error": Values(least=0),
    "accuracy": Values(whole=True),
    "quadratic_weighted_kappa": Values(whole=True),
}


def values_of(metric: str, arguments: Mapping[str, Any]) -> Values:
    """Return what a metric refuses of numbers, whatever the answers are.

    Args:
        metric: The name of one of these functions.
        arguments: What it is made with.
    """
    free = not arguments.get("probabilities", True) or arguments.get("as_text", False)
    return Values() if free else _ASKED.get(metric, Values())


def area_under_roc(*, id_column: str, target: str) -> GradeFunction:
    """Return the area under the ROC curve of a column of probabilities."""
    return mean_area_under_roc(id_column=id_column, targets=[target])


def mean_area_under_roc(
    *,
    id_column: str,
    targets: Sequence[str],
    probabilities: bool = True,
    negative_is_unlabeled: bool = False,
    exactly: bool = False,
) -> GradeFunction:
    """Return the mean, over columns, of the area under the ROC curve.

    Args:
        id_column: The column that names rows.
        targets: The columns.
        probabilities: Whether values outside of 0 to 1 are refused.
        negative_is_unlabeled: Whether rows whose answers sum up to less than 0 do not count.
        exactly: Whether further columns are refused.
    """

    def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
        if exactly:
            _exactly(submission, [id_column, *targets])
        if negative_is_unlabeled:
            answers, submission = _aligned(submission, answers, id_column, targets)
            labeled = answers[[*targets]].sum(axis=1).to_numpy() >= 0
            answers, submission = answers[labeled], submission[labeled]
        truth, told = _aligned(submission, answers, id_column, targets)
        scores = []
        for target in targets:
            if probabilities:
                _probabilities(told[[target]])
            truths, values = truth[target].to_numpy(), told[target].to_numpy()
            scores.append(_sklearn("roc_auc_score", truths, values))
        return sum(scores) / len(scores)

    return grade


def log_loss(*, id_column: str, target: str) -> GradeFunction:
    """Return the logarithmic loss of a column of probabilities of 1."""

    def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
        truth, told = _aligned(submission, answers, id_column, [target])
        _probabilities(told[[target]])
        return _sklearn("log_loss", truth[target], told[target])

    return grade


def multi_class_log_loss(*, id_column: str, exactly: bool = False) -> GradeFunction:
    """Return the logarithmic loss over classes, a column of probabilities for each.

    The classes are the columns of the answers. Each row must sum up to 1 (`SUM_TOLERANCE`), though
    descriptions on Kaggle say that rows are rescaled: MLE-bench refuses them, and so do we.

    Args:
        id_column: The column that names rows.
        exactly: Whether further columns are refused.
    """

    def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
        numpy: Any = require("numpy", extra="mle", purpose="Grading")
        classes = [name for name in answers.columns if name != id_column]
        if exactly:
            _exactly(submission, [id_column, *classes])
        truth, told = _aligned(submission, answers, id_column, classes)
        sums = told[classes].sum(axis=1)
        if not bool(numpy.isclose(sums, 1, atol=SUM_TOLERANCE).all()):
            raise InvalidSubmissionError("the probabilities of a row do not sum up to 1")
        _probabilities(told[classes])
        return _sklearn("log_loss", truth[classes].to_numpy(), told[classes].to_numpy())

    return grade


def root_mean_squared_error(
    *, id_column: str, target: str, check_ids: bool = True
) -> GradeFunction:
    """Return the root of the mean squared error of a column.

    Args:
        id_column: The column that names rows.
        target: The column.
        check_ids: Whether ids must be those of the answers; else rows are only sorted by them.
    """

    def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
        truth, told = _aligned(submission, answers, id_column, [target], check_ids=check_ids)
        return _sklearn("root_mean_squared_error", truth[target], told[target].astype(float))

    return grade


def mean_root_mean_squared_log_error(*, targets: Sequence[str]) -> GradeFunction:
    """Return the mean, over columns, of the root of the mean squared logarithmic error.

    Rows are taken as they stand, whatever their ids say: MLE-bench does so for nomad2018.
    """

    def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
        _columns(submission, targets)
        errors = [
            _sklearn("root_mean_squared_log_error", answers[each], submission[each])
            for each in targets
        ]
        return sum(errors) / len(errors)

    return grade


def accuracy(*, id_column: str, target: str, as_text: bool = False) -> GradeFunction:
    """Return the share of rows that are right.

    Args:
        id_column: The column that names rows.
        target: The column.
        as_text: Whether values are compared as texts; an empty one is `nan`, on both sides.
    """

    def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
        truth, told = _aligned(submission, answers, id_column, [target])
        values = (truth[target].tolist(), told[target].tolist())
        if as_text:
            values = ([str(each) for each in values[0]], [str(each) for each in values[1]])
        return _sklearn("accuracy_score", *values)

    return grade


def quadratic_weighted_kappa(*, id_column: str, target: str) -> GradeFunction:
    """Return Cohen's kappa with quadratic weights, of grades in order."""

    def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
        truth, told = _aligned(submission, answers, id_column, [target])
        return _sklearn(
            "cohen_kappa_score",
            told[target].to_numpy(),
            truth[target].to_numpy(),
            weights="quadratic",
        )

    return grade


def _aligned(
    submission: "pd.DataFrame",
    answers: "pd.DataFrame",
    name: str,
    targets: Sequence[str],
    *,
    check_ids: bool = True,
) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Return answers and submission, sorted by id, with the same ids in each row."""
    _columns(submission, [name, *targets])
    if len(submission) != len(answers):
        msg = f"it has {len(submission)} rows, the answers have {len(answers)}"
        raise InvalidSubmissionError(msg)
    answers = answers[[name, *targets]].reset_index(drop=True)
    submission = submission[[name, *targets]].reset_index(drop=True)
    # The default sort, as in MLE-bench: what is first among equal ids follows from it.
    truth = answers.sort_values(name)
    # Of the same ids the sort would be the same: of five million it takes seconds.
    same = submission[name].equals(answers[name])
    told = submission.loc[truth.index] if same else submission.sort_values(name)
    if check_ids and bool((truth[name].to_numpy() != told[name].to_numpy()).any()):
        raise InvalidSubmissionError(f"the values of {name!r} are not those of the answers")
    return truth, told


def _columns(submission: "pd.DataFrame", names: Sequence[str]) -> None:
    if missing := [each for each in names if each not in submission.columns]:
        raise InvalidSubmissionError(f"there is no column {', '.join(map(repr, missing[:5]))}")


def _exactly(submission: "pd.DataFrame", names: Sequence[str]) -> None:
    if sorted(submission.columns) != sorted(names):
        raise InvalidSubmissionError("there are columns beside the id and the targets, or too few")


def _probabilities(values: "pd.DataFrame") -> None:
    """Refuse what is no number from 0 to 1; gaps are left to the metric, which refuses them."""
    if bool(((values < 0) | (values > 1)).any(axis=None)):
        raise InvalidSubmissionError("there are values that are no probabilities from 0 to 1")


def _sklearn(name: str, *values: Any, **options: Any) -> float:
    metrics: Any = require("sklearn.metrics", extra="mle", purpose="Grading")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows within the tolerance, classes that do not occur
        return float(getattr(metrics, name)(*values, **options))
