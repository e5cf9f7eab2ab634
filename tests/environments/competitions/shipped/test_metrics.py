"""The metrics of the competitions that ship grade what can be graded and refuse the rest."""

import math
from collections.abc import Callable
from typing import Any

import pytest

pd = pytest.importorskip("pandas")

from langgraft.environments.competitions.graders import InvalidSubmissionError  # noqa: E402
from langgraft.environments.competitions.shipped.metrics import (  # noqa: E402
    accuracy,
    log_loss,
    rmse,
    rmsle,
)

ANSWERS = pd.DataFrame({"id": [3, 1, 2], "kind": ["b", "a", "b"]})
SHARES = pd.DataFrame({"id": [1, 2, 3], "a": [3.0, 0.5, 0.0], "b": [1.0, 0.5, 1.0]})


def test_log_loss_when_rows_do_not_sum_to_one_rescales_them() -> None:
    """Rows count by their shares, in any order, as the description says."""
    expected = -(math.log(0.75) + math.log(0.5) + math.log(1)) / 3
    found = log_loss(SHARES, ANSWERS, label="kind", classes=("a", "b"))
    assert found == pytest.approx(expected)


def test_log_loss_when_ids_are_written_as_floats_takes_them() -> None:
    """As the check does: 3.0 is what pandas writes of 3 where a gap was in the column before."""
    floats = SHARES.assign(id=SHARES["id"].astype(float))
    found = log_loss(floats, ANSWERS, label="kind", classes=("a", "b"))
    assert found == log_loss(SHARES, ANSWERS, label="kind", classes=("a", "b"))


def test_log_loss_when_what_is_true_was_ruled_out_is_large_but_finite() -> None:
    """A probability of 0 counts as one in ten million."""
    wrong = SHARES.assign(a=[0, 0, 1], b=[1, 1, 0])
    found = log_loss(wrong, ANSWERS, label="kind", classes=("a", "b"))
    assert found == pytest.approx(-2 * math.log(1e-7) / 3)


def test_errors_when_predictions_are_known_are_as_by_hand() -> None:
    """RMSE and RMSLE agree with their formulas."""
    answers = pd.DataFrame({"id": [0, 1], "y": [0, 3]})
    given = pd.DataFrame({"id": [1, 0], "y": [1.0, 2.0]})
    assert rmse(given, answers, target="y") == pytest.approx(2.0)
    expected = math.sqrt((math.log(3) ** 2 + math.log(2) ** 2) / 2)
    assert rmsle(given, answers, target="y") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="b"), "columns must be id, a, b"),
        (lambda frame: frame.assign(c=0), "columns must be id, a, b"),
        (lambda frame: frame[:2], "2 rows, where 3"),
        (lambda frame: frame.assign(id=[1, 1, 2]), "twice"),
        (lambda frame: frame.assign(id=[1, 2, 4]), "none of the test's"),
        (lambda frame: frame.assign(a=[math.nan, 1, 1]), "not finite"),
        (lambda frame: frame.assign(a=[math.inf, 1, 1]), "not finite"),
        (lambda frame: frame.assign(a=["x", "y", "z"]), "not a number"),
        (lambda frame: frame.assign(a=["1_0", "1", "1"]), "not a number"),
        (lambda frame: frame.assign(a=[10**30, 1, 1]), "not a number"),
        (lambda frame: frame.assign(a=[-0.1, 1, 1]), "negative"),
        (lambda frame: frame.assign(a=0.0, b=0.0), "all zero"),
    ],
)
def test_log_loss_when_a_submission_cannot_be_graded_says_why(
    change: Callable[[Any], Any], message: str
) -> None:
    """What is wrong is told in terms of the submission, without a word on answers."""
    with pytest.raises(InvalidSubmissionError, match=message):
        log_loss(change(SHARES), ANSWERS, label="kind", classes=("a", "b"))


def test_rmsle_when_a_prediction_is_negative_refuses_it() -> None:
    """Counts below zero have no logarithm here."""
    answers = pd.DataFrame({"id": [0], "y": [1]})
    with pytest.raises(InvalidSubmissionError, match="negative"):
        rmsle(pd.DataFrame({"id": [0], "y": [-1.0]}), answers, target="y")


def test_accuracy_when_rows_are_in_any_order_is_the_share_that_is_right() -> None:
    """Labels are matched by id; 7.0 is 7, and a number that is no label is wrong, not refused."""
    answers = pd.DataFrame({"id": [0, 1, 2, 3], "digit": [7, 0, 5, 5]})
    given = pd.DataFrame({"id": [3, 2, 1, 0], "digit": [5.0, 4.5, 11.0, 7.0]})
    assert accuracy(given, answers, target="digit") == 0.5


@pytest.mark.parametrize("label", ["seven", "", None, math.inf])
def test_accuracy_when_a_label_is_no_number_refuses_it(label: object) -> None:
    """A row without a digit is refused, as the check by the sample submission does."""
    answers = pd.DataFrame({"id": [0, 1], "digit": [7, 1]})
    with pytest.raises(InvalidSubmissionError, match=r"not a number|not finite"):
        accuracy(pd.DataFrame({"id": [0, 1], "digit": [7, label]}), answers, target="digit")
