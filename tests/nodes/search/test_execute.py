"""How a program ended, and what a search makes of it."""

import pytest

from langgraft.environments.sandboxes.results import ExecutionResult, ProgramError
from langgraft.nodes.search.execute import ended
from langgraft.nodes.search.gathering import first_sentences
from langgraft.nodes.search.packages import shipped_packages


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (ExecutionResult(0, "", "", 1.0), ""),
        (ExecutionResult(0, "", "", 1.0, oom=True), ""),
        (ExecutionResult(137, "", "", 1.0, stopped="timeout"), "it was stopped after 120 minutes"),
        (ExecutionResult(137, "", "", 1.0, stopped="output"), "it was stopped for printing too"),
        (ExecutionResult(137, "", "", 1.0, oom=True, signal="SIGKILL"), "it ran out of memory"),
        (ExecutionResult(139, "", "", 1.0, signal="SIGSEGV"), "it was ended by SIGSEGV"),
        (ExecutionResult(3, "", "", 1.0), "it ended with exit code 3"),
        (
            ExecutionResult(1, "", "", 1.0, error=ProgramError("KeyError", "'id'")),
            "it raised KeyError",
        ),
    ],
)
def test_reason_when_a_program_failed_names_what_ended_it(
    result: ExecutionResult, said: str
) -> None:
    """A program whose child was killed, and that went on to its end, has not failed."""
    told = ended(result, 7200.0)
    assert told.startswith(said)
    assert bool(told) == bool(said)


@pytest.mark.parametrize(
    ("plan", "fix"),
    [
        ("Pass `eta`. It runs then. More.", "Pass `eta`. It runs then."),
        ("Use version 1.2 of it.\nThen\nstop! Now.", "Use version 1.2 of it. Then stop!"),
        ("One thing only", "One thing only"),
        ("", ""),
    ],
)
def test_fix_when_a_repair_worked_is_the_beginning_of_its_plan(plan: str, fix: str) -> None:
    """Two sentences, on one line."""
    assert first_sentences(plan) == fix


def test_packages_when_nobody_names_any_are_those_that_the_image_is_asked_for() -> None:
    """By the names that the field knows, without what they need themselves."""
    packages = shipped_packages()
    assert {"numpy", "scikit-learn", "xgboost", "lightgbm"} <= set(packages)
    assert "joblib" not in packages
