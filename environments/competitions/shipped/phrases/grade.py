"""The metric: multi-class log-loss of a phrase's language."""

from typing import TYPE_CHECKING, Final

from langgraft.environments.competitions.shipped.metrics import log_loss

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

CLASSES: Final = tuple(f"lang_{number}" for number in range(10))


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the score; lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return log_loss(submission, answers, label="language", classes=CLASSES)
