"""How a program ended, and what a search makes of it."""

from pathlib import Path

import pytest
from tree_cases import toy

from langgraft.environments.competitions.attempts import judged
from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.results import ExecutionResult, ProgramError
from langgraft.memory.recall import BLOCK_END, BLOCK_START
from langgraft.nodes.execution_text import ended
from langgraft.nodes.replies import first_sentences
from langgraft.nodes.search.execute import shown
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


@pytest.mark.parametrize("end", ["", f"\n{BLOCK_END}\nlast words"])
def test_output_when_it_quotes_memory_is_told_without_it_and_with_how_it_ended(
    end: str, tmp_path: Path
) -> None:
    """Also where the block is so long that its end, or without one all that follows, would be cut."""
    printed = f"first words\n{BLOCK_START}\n" + "- drop the column\n" * 1_000 + end
    error = ProgramError("KeyError", "'sex'")
    result = ExecutionResult(1, printed, "Traceback: somewhere", 1.0, error=error)
    told = shown(judged(result, toy(tmp_path)), Limits(), 60.0)
    assert "drop the column" not in told
    for kept in ("first words", end.rpartition("\n")[2], "somewhere", "KeyError", "absent"):
        assert kept in told
