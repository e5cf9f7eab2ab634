"""What a plan will be able to see is said before anything is paid."""

import re

import pytest

from langgraft._core.errors import MissingExtraError
from langgraft.benchmarks.continual import contrasts
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy


def notes(**fields: int) -> tuple[str, ...]:
    """Return the notes on a plan of these sizes."""
    plan = ContinualPlan(train_items=1, **fields)
    study = ContinualStudy()
    return study.notes(plan, study.expand(plan))


def test_notes_when_plan_has_defaults_then_name_the_detectable_difference() -> None:
    """The first step of Holm's procedure over four memories and an order effect are in the figure."""
    (line,) = notes()
    found = re.search(r"about ([0-9.]+) pp \(200 test items × 5 runs, 4 memories compared", line)  # noqa: RUF001
    assert found is not None
    assert 9.0 < float(found[1]) < 13.0
    assert "an order effect of 5 pp assumed" in line


def test_notes_when_plan_has_the_papers_two_runs_then_say_that_there_is_no_verdict() -> None:
    """Two runs say next to nothing of how training orders differ."""
    (line,) = notes(runs=2)
    assert "none, no verdict below 3 runs (200 test items × 2 runs)" in line  # noqa: RUF001


def test_notes_when_plan_is_tiny_then_say_that_nothing_can_be_detected() -> None:
    """Two items are not worth paying for, and the line says so."""
    (line,) = notes(test_items=1, runs=3)
    assert "none, the plan is too small (2 test items × 3 runs" in line  # noqa: RUF001


def test_notes_when_scipy_is_missing_then_say_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan can be looked at without the extra; only this figure is missing."""

    def missing(*_: int, **__: int) -> float:
        msg = "needs `scipy`: pip install 'langgraft[bench]'"
        raise MissingExtraError(msg)

    monkeypatch.setattr(contrasts, "planned_difference", missing)
    (line,) = notes(test_items=1)
    assert "pip install 'langgraft[bench]'" in line
