"""The metric: root mean squared logarithmic error of visits in a year, as ln(1 + visits)."""

from typing import TYPE_CHECKING

from langgraft.environments.competitions.shipped.metrics import rmsle

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the score; lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return rmsle(submission, answers, target="visits")
