"""What a plan will be able to see is said before anything is paid."""

import pytest

from langgraft._core.errors import MissingExtraError
from langgraft.benchmarks.continual import power
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy


def notes(**fields: int) -> tuple[str, ...]:
    """Return the notes on a plan of these sizes."""
    plan = ContinualPlan(train_items=1, **fields)
    study = ContinualStudy()
    return study.notes(plan, study.expand(plan))


def test_notes_when_plan_is_the_papers_then_name_the_detectable_difference() -> None:
    """A hundred items of two tasks in two runs, as evaluation §2.3 counts them."""
    (line,) = notes()
    assert line == "detectable difference at 80 % power: about 8.0 pp (200 test items × 2 runs)"  # noqa: RUF001


def test_notes_when_plan_is_tiny_then_say_that_nothing_can_be_detected() -> None:
    """Two items in one run are not worth paying for, and the line says so."""
    (line,) = notes(test_items=1, runs=1)
    assert "none, the plan is too small (2 test items × 1 run)" in line  # noqa: RUF001


def test_notes_when_scipy_is_missing_then_say_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan can be looked at without the extra; only this figure is missing."""

    def missing(*_: int) -> float:
        msg = "needs `scipy`: pip install 'langgraft[bench]'"
        raise MissingExtraError(msg)

    monkeypatch.setattr(power, "planned_effect", missing)
    (line,) = notes(test_items=1)
    assert "pip install 'langgraft[bench]'" in line
