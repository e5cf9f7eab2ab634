"""The metric: multi-class log-loss of the digit on a picture."""

from typing import TYPE_CHECKING, Final

from langgraft.environments.competitions.shipped.metrics import log_loss

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

CLASSES: Final = tuple(f"p{digit}" for digit in range(10))


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the score; lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    renamed = answers.assign(digit="p" + answers["digit"].astype(str))
    return log_loss(submission, renamed, label="digit", classes=CLASSES)
