"""The metric: root mean squared error of shades of gray, 0 to 255."""

from typing import TYPE_CHECKING

from langgraft.environments.competitions.shipped.metrics import rmse

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the score; lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return rmse(submission, answers, target="value")
