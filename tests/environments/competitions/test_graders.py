"""Our graders of the lite competitions refuse and score what MLE-bench's do."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from langgraft.environments.competitions import graders
from langgraft.environments.competitions.graders import InvalidSubmissionError
from langgraft.environments.competitions.registry import lite_competitions

IDS = [f"r{number}" for number in range(6)]
LABELS = [0, 1, 1, 0, 1, 0]
TOLD = [0.1, 0.9, 0.4, 0.5, 0.8, 0.2]
AUC = 8 / 9  # of nine pairs, 0.4 < 0.5 is the one in the wrong order
LOSS = -sum(math.log(p if y else 1 - p) for y, p in zip(LABELS, TOLD, strict=True)) / 6


def frame(**columns: Any) -> pd.DataFrame:
    """Return a frame with ids."""
    return pd.DataFrame({"id": IDS, **columns})


def shuffled(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in another order."""
    return rows.sample(frac=1, random_state=3)


def lite(name: str) -> tuple[Callable[[pd.DataFrame, pd.DataFrame], float], dict[str, Any]]:
    """Return a lite competition's grade function and its arguments."""
    arguments = dict(lite_competitions()[name].grader)
    return getattr(graders, arguments.pop("metric"))(**arguments), arguments


def multi(rows: list[list[float]]) -> pd.DataFrame:
    """Return probabilities of three classes for two rows."""
    return pd.DataFrame(rows, columns=["a", "b", "c"]).assign(id=["x", "y"])


def test_area_under_roc_when_rows_are_shuffled_is_that_of_the_pairs() -> None:
    """The share of pairs in the right order."""
    grade = graders.area_under_roc(id_column="id", target="y")
    assert grade(shuffled(frame(y=TOLD)), frame(y=LABELS)) == pytest.approx(AUC)


@pytest.mark.parametrize("name", ["id", "y"])
def test_score_when_rows_are_in_the_order_of_the_answers_is_that_of_any_order(name: str) -> None:
    """Also of frames whose index is not that of their rows, and with an id that stands twice."""
    grade = graders.root_mean_squared_error(id_column="id", target="y")
    answers = frame(y=LABELS).assign(id=[*IDS[:5], IDS[0]] if name == "y" else IDS)
    told = answers.assign(y=TOLD, id=answers["id"])
    mixed = shuffled(answers)
    assert grade(told.loc[mixed.index], mixed) == grade(told, answers)
    if name == "id":
        assert grade(shuffled(told), answers) == grade(told, answers)


def test_ids_when_one_is_missing_on_both_sides_are_refused() -> None:
    """A gap is the same as no other, however the rows are ordered."""
    ids: list[Any] = [*IDS[:5], None]
    rows = frame(y=TOLD).assign(id=ids)
    with pytest.raises(InvalidSubmissionError, match="are not those of the answers"):
        graders.root_mean_squared_error(id_column="id", target="y")(rows, rows.assign(y=LABELS))


def test_mean_area_when_rows_are_unlabeled_leaves_them_out() -> None:
    """As the Toxic Comment challenge marks them: -1 in every column."""
    grade = graders.mean_area_under_roc(
        id_column="id", targets=["y", "z"], probabilities=False, negative_is_unlabeled=True
    )
    marked = [*LABELS[:-1], -1]
    told = frame(y=TOLD, z=[10 * each for each in TOLD])
    assert grade(shuffled(told), frame(y=marked, z=marked)) == pytest.approx(5 / 6)


def test_log_loss_when_computed_is_the_mean_of_the_logarithms() -> None:
    """Of probabilities of 1."""
    grade = graders.log_loss(id_column="id", target="y")
    assert grade(shuffled(frame(y=TOLD)), frame(y=LABELS)) == pytest.approx(LOSS)


def test_multi_class_log_loss_when_computed_is_that_of_the_right_classes() -> None:
    """Whatever the order of rows and columns."""
    grade = graders.multi_class_log_loss(id_column="id", exactly=True)
    told = multi([[0.7, 0.2, 0.1], [0.25, 0.25, 0.5]])[["c", "id", "a", "b"]].iloc[::-1]
    expected = -(math.log(0.7) + math.log(0.25)) / 2
    assert grade(told, multi([[1, 0, 0], [0, 1, 0]])) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("off", "refused"), [(1e-6, False), (1.09e-5, False), (1.2e-5, True), (0.5, True)]
)
def test_multi_class_log_loss_when_rows_do_not_sum_to_one_refuses(
    off: float, refused: bool
) -> None:
    """Within 1e-6 and numpy's own 1e-5, as MLE-bench: nothing is rescaled."""
    grade = graders.multi_class_log_loss(id_column="id")
    told = multi([[0.5 + off, 0.3, 0.2], [0.2, 0.3, 0.5]])
    answers = multi([[1, 0, 0], [0, 1, 0]])
    if refused:
        with pytest.raises(InvalidSubmissionError, match="sum up to 1"):
            grade(told, answers)
    else:
        assert grade(told, answers) > 0


def test_errors_when_computed_are_those_of_the_rows() -> None:
    """The root of the mean square, of values and of their logarithms."""
    grade = graders.root_mean_squared_error(id_column="id", target="y")
    assert grade(shuffled(frame(y=[1.0] * 5 + [4.0])), frame(y=[1.0] * 6)) == pytest.approx(
        1.5**0.5
    )
    both = graders.mean_root_mean_squared_log_error(targets=["y", "z"])
    truth = frame(y=[math.e - 1] * 6, z=[0.0] * 6)
    assert both(frame(y=[0.0] * 6, z=[0.0] * 6), truth) == pytest.approx(0.5)


def test_accuracy_when_compared_as_text_counts_gaps_as_equal() -> None:
    """`NA` and nothing are read as gaps, on both sides."""
    grade = graders.accuracy(id_column="id", target="y", as_text=True)
    truth = frame(y=["a", "1", None, "b", "b", "b"])
    assert grade(shuffled(frame(y=["a", "1", None, "c", "b", "x"])), truth) == pytest.approx(4 / 6)


def test_kappa_when_grades_agree_is_one_and_falls_with_the_square() -> None:
    """Two apart cost four times as much."""
    grade = graders.quadratic_weighted_kappa(id_column="id", target="y")
    truth = frame(y=[0, 1, 2, 3, 4, 4])
    near, far = frame(y=[0, 1, 2, 3, 4, 3]), frame(y=[0, 1, 2, 3, 4, 2])
    assert grade(truth, truth) == 1
    assert 1 > grade(near, truth) > grade(far, truth)


@pytest.mark.parametrize("name", lite_competitions())
def test_grader_of_a_lite_competition_when_given_the_answers_is_perfect(name: str) -> None:
    """Each of the 22 grades, takes rows in any order where MLE-bench's does, and refuses others."""
    grade, arguments = lite(name)
    key = arguments.get("id_column", "id")
    answers = pd.DataFrame({key: IDS})
    if "multi_class" in grade.__qualname__:
        answers[["a", "b"]] = np.eye(2)[LABELS]
    for target in arguments.get("targets", [arguments["target"]] if "target" in arguments else []):
        answers[target] = LABELS
    board = lite_competitions()[name].thresholds
    rows = shuffled(answers) if "id_column" in arguments else answers
    assert grade(rows, answers) == pytest.approx(0 if board.lower_is_better else 1, abs=1e-9)
    with pytest.raises((InvalidSubmissionError, ValueError)):
        grade(answers.iloc[:-1], answers)
    with pytest.raises(InvalidSubmissionError):
        grade(answers.drop(columns=answers.columns[-1]), answers)


@pytest.mark.parametrize("name", lite_competitions())
def test_values_when_they_are_said_to_be_refused_are_by_the_grader(name: str) -> None:
    """And those that are not said to be are taken: checks and grades go together."""
    grade, arguments = lite(name)
    values = lite_competitions()[name].values  # noqa: PD011
    key, target = arguments.get("id_column", "id"), arguments.get("target", "a")
    answers = pd.DataFrame({key: IDS})
    for column in arguments.get("targets", [target]):
        answers[column] = LABELS
    if "multi_class" in grade.__qualname__:
        answers[["a", "b"]] = np.eye(2)[LABELS]
    columns = [each for each in answers.columns if each != key]
    for strange, refused in (
        (-1.5, values.least is not None or values.whole),
        (2.0, values.most is not None),
        (0.5, values.sum is not None or values.whole),
    ):
        told = answers.astype(dict.fromkeys(columns, float))
        told.loc[0, columns] = (
            strange if values.sum is None else [strange, *[0.0] * (len(columns) - 1)]
        )
        if refused:
            with pytest.raises((InvalidSubmissionError, ValueError)):
                grade(told, answers)
        else:
            assert math.isfinite(grade(told, answers))


@pytest.mark.parametrize(
    "told",
    [
        frame(y=[1.1, *TOLD[1:]]),
        frame(y=[-0.1, *TOLD[1:]]),
        frame(y=[math.nan, *TOLD[1:]]),
        frame(y=["high", *map(str, TOLD[1:])]),
        frame(y=TOLD).assign(id=["other", *IDS[1:]]),
        frame(y=TOLD).assign(id=[IDS[1], *IDS[1:]]),
    ],
)
def test_submission_when_not_of_probabilities_for_the_ids_is_refused(told: pd.DataFrame) -> None:
    """Out of range, a gap, a text, another id, one id twice."""
    with pytest.raises((InvalidSubmissionError, ValueError, TypeError)):
        graders.area_under_roc(id_column="id", target="y")(told, frame(y=LABELS))
