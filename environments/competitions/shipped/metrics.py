"""Metrics of the competitions that ship; each refuses what it cannot grade.

Probabilities are rescaled, as Kaggle does and descriptions say: an agent is not to fail by the
last digit of a sum (`graders.multi_class_log_loss`, MLE-bench's way, refuses such rows).
Submissions may have their rows in any order. What is wrong is said in terms of the submission
and of the form asked for; no message tells anything about the answers themselves.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from langgraft.environments.competitions.graders import InvalidSubmissionError

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

Floats = NDArray[np.float64]

SMALLEST = 1e-7
"""Probabilities below count as this one."""


def accuracy(submission: "pd.DataFrame", answers: "pd.DataFrame", *, target: str) -> float:
    """Return the share of rows that are right; a number that is no label is wrong.

    Args:
        submission: `id` and `target`.
        answers: The same; labels are numbers.
        target: The column with the label.

    Raises:
        InvalidSubmissionError: If ids or columns are not those asked for, or labels are no numbers.
    """
    given = _matched(submission, answers, [target])[:, 0]
    return float((given == answers[target].to_numpy(dtype=np.float64)).mean())


def log_loss(
    submission: "pd.DataFrame", answers: "pd.DataFrame", *, label: str, classes: Sequence[str]
) -> float:
    """Return the mean of -ln of the probability given to what was true.

    Rows are divided by their sum, and then cut below at `SMALLEST`.

    Args:
        submission: `id` and one column of probabilities for each class.
        answers: `id` and the true class.
        label: The answers' column with the class.
        classes: The submission's columns, and the classes they stand for.

    Raises:
        InvalidSubmissionError: If ids or columns are not those asked for, or numbers are no probabilities.
    """
    given = _matched(submission, answers, classes)
    total = given.sum(axis=1)
    if (given < 0).any() or (total <= 0).any():
        raise InvalidSubmissionError("probabilities must not be negative, nor all zero in a row")
    places = {name: place for place, name in enumerate(classes)}
    truth = [places[str(name)] for name in answers[label]]
    likely = (given / total[:, None])[np.arange(len(given)), truth]
    return float(-np.log(np.maximum(likely, SMALLEST)).mean())


def rmse(submission: "pd.DataFrame", answers: "pd.DataFrame", *, target: str) -> float:
    """Return the root of the mean squared difference.

    Raises:
        InvalidSubmissionError: If ids or columns are not those asked for, or values are no numbers.
    """
    given = _matched(submission, answers, [target])[:, 0]
    truth = answers[target].to_numpy(dtype=np.float64)
    return float(np.sqrt(np.mean((given - truth) ** 2)))


def rmsle(submission: "pd.DataFrame", answers: "pd.DataFrame", *, target: str) -> float:
    """Return the root of the mean squared difference of ln(1 + value).

    Raises:
        InvalidSubmissionError: If ids or columns are not those asked for, or values are no numbers, or
            negative.
    """
    given = _matched(submission, answers, [target])[:, 0]
    if (given < 0).any():
        raise InvalidSubmissionError(f"`{target}` must not be negative")
    truth = answers[target].to_numpy(dtype=np.float64)
    return float(np.sqrt(np.mean((np.log1p(given) - np.log1p(truth)) ** 2)))


def _matched(submission: "pd.DataFrame", answers: "pd.DataFrame", columns: Sequence[str]) -> Floats:
    """Return the submission's numbers, in the order of the answers."""
    asked = ["id", *columns]
    if sorted(map(str, submission.columns)) != sorted(asked):
        raise InvalidSubmissionError(f"columns must be {', '.join(asked)}")
    if len(submission) != len(answers):
        raise InvalidSubmissionError(f"{len(submission)} rows, where {len(answers)} are asked for")
    if submission["id"].duplicated().any():
        raise InvalidSubmissionError("an `id` is there twice")
    given = submission.set_index("id")[list(columns)]
    if any(each.kind not in "biuf" for each in given.dtypes):
        raise InvalidSubmissionError("a value is not a number")
    # By value: 3.0 is 3, as for the check by the sample submission.
    values = given.reindex(answers["id"]).to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise InvalidSubmissionError(
            "an `id` is none of the test's, or a value is missing or not finite"
        )
    return values
