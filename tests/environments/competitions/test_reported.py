"""The metric that a program says it reached: read by stated rules, and never taken for a score."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.environments.competitions.attempts import reported_metric
from langgraft.environments.sandboxes.sandbox import ExecutionResult


def value(printed: str, metric: str = "auc-roc", stderr: str = "") -> float | None:
    """Return what is read from an output."""
    return reported_metric(ExecutionResult(0, printed, stderr, duration=1.0), metric).value


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Validation AUC: 0.91", 0.91),
        ("Final Validation Metric: .5", 0.5),
        ("score: 1", 1.0),
        ("score: 0", 0.0),
        ("score:-0.5", -0.5),
        ("AUC: 1e-3", 1e-3),
        ("Validation RMSE = 1,234.5", 1234.5),
        ("mae 1,234,567", 1234567.0),
        ("val acc 84.5%", 0.845),
        ("Accuracy is 84.5 %", 0.845),
        ("score: 0.91.", 0.91),
        ("Mean AUC: 0.91 ± 0.02", 0.91),
        ("CV score: mean=0.85 std=0.01", 0.85),
        ("Validation: 0.83", 0.83),
        ("OOF = 0.83", 0.83),
        ("roc_auc_score 0.7", 0.7),
    ],
)
def test_metric_when_a_line_names_one_and_a_number_then_is_that_number(
    line: str, expected: float
) -> None:
    """Integers, fractions, exponents, thousands and percentages are numbers."""
    assert value(line) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[100] train-auc:0.99 validation-auc:0.91", 0.91),
        ("[100]\tvalid_0's auc: 0.91\ttraining's auc: 0.99", 0.91),
        ("Epoch 10/10 - loss: 0.1 - val_loss: 0.45 - val_auc: 0.91", 0.91),
        ("AUC-ROC on the 5-fold validation: 0.91", 0.91),
        ("Best AUC (epoch=7): 0.91", 0.91),
        ("AUC (validation): 0.91", 0.91),
        ("Fold 3 AUC 0.91", 0.91),
        ("top-1 accuracy 0.91", 0.91),
        ("f1 score 0.91", 0.91),
        ("Val AUC 0.91 at epoch 7", 0.91),
    ],
)
def test_metric_when_a_line_has_several_numbers_then_is_the_validations(
    line: str, expected: float
) -> None:
    """Training metrics, epochs, folds and names with digits are not taken for it."""
    assert value(line) == expected


def test_metric_when_several_lines_name_one_then_is_that_of_the_last() -> None:
    """What is printed last is what the program came to."""
    assert value("Fold 1 AUC: 0.7\nFold 2 AUC: 0.8\nMean AUC: 0.75\nsaved 200 rows\n") == 0.75


def test_metric_when_a_later_line_names_another_metric_then_is_the_competitions() -> None:
    """The competition's own metric goes before any other."""
    printed = "Validation RMSE: 3.5\nValidation accuracy: 0.9\n"
    assert value(printed, "rmse") == 3.5
    assert value(printed, "accuracy") == 0.9
    assert value(printed, "pearson-r") == 0.9


@pytest.mark.parametrize(
    ("metric", "line"),
    [
        ("multi-class-log-loss", "Validation logloss: 0.3"),
        ("multi-class-log-loss", "multi_class_log_loss 0.3"),
        ("quadratic-weighted-kappa", "QWK=0.3"),
        ("mean-column-wise-auc", "AUC 0.3"),
        ("root-mean-squared-error", "valid rmse: 0.3"),
        ("rmsle", "CV RMSLE 0.3"),
    ],
)
def test_metric_when_programs_call_it_otherwise_then_is_known(metric: str, line: str) -> None:
    """A grader's long name and what programs print are the same metric."""
    assert value(f"{line}\nscore of something else: 9\n", metric) == 0.3


@pytest.mark.parametrize("printed", ["Validation score: nan", "auc = -inf", "AUC is NaN"])
def test_metric_when_the_program_reports_nan_then_there_is_none_and_a_reason(printed: str) -> None:
    """A metric that is no number is none, instead of the best one ever seen."""
    reported = reported_metric(ExecutionResult(0, printed, "", duration=1.0), "auc-roc")
    assert reported.value is None
    assert "no number" in reported.reason
    assert reported.line == printed


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "AUC 0,85",
        "score 0.1,0.2",
        "train auc 0.99",
        "Saved validation rows: 2000",
        "Error: 404",
        "auc version 1.2.3",
        "AUC after 5s",
        "the best of 3",
    ],
)
def test_metric_when_nothing_says_it_plainly_then_there_is_none(printed: str) -> None:
    """What might be something else is not read."""
    reported = reported_metric(ExecutionResult(0, printed, "", duration=1.0), "auc-roc")
    assert reported.value is None
    assert "names a metric" in reported.reason


def test_metric_when_only_standard_error_names_it_then_is_read_there() -> None:
    """Programs that log print to standard error; standard output goes before it."""
    assert value("done\n", stderr="INFO:root:Validation AUC: 0.9\n") == 0.9
    assert value("AUC: 0.8\n", stderr="Validation AUC: 0.9\n") == 0.8


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_metric_when_python_prints_a_float_then_is_that_float(number: float) -> None:
    """Whatever `print` makes of a float is read back exactly."""
    assert value(f"Validation score: {number}") == number


@given(st.text(), st.text(max_size=20))
def test_metric_when_output_is_anything_then_is_finite_or_none(printed: str, metric: str) -> None:
    """No output and no name of a metric breaks it."""
    found = value(printed, metric)
    assert found is None or math.isfinite(found)
