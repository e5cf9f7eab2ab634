"""Judges submissions."""

import pandas as pd
from sklearn.metrics import root_mean_squared_error


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the root mean squared error of the rents; raise for what cannot be graded."""
    if sorted(submission.columns) != ["id", "rent"]:
        raise ValueError("a submission has the columns id and rent")
    both = answers.merge(submission, on="id", suffixes=("", "_told"), validate="one_to_one")
    if len(both) != len(answers) or len(submission) != len(answers):
        raise ValueError(f"a submission has one row for each of the {len(answers)} flats")
    return float(root_mean_squared_error(both["rent"], both["rent_told"]))
