"""The metric: the share of pictures whose digit is right."""

from typing import TYPE_CHECKING

from langgraft.environments.competitions.shipped.metrics import accuracy

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the score; higher is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return accuracy(submission, answers, target="digit")
