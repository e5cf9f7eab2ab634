"""Metrics of agents that work step by step: what each means, and what holds of any run."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraft.benchmarks.mle.behaviour.steps import (
    TRACEBACK,
    StepBehavior,
    error_spells,
    measure_steps,
    normalized,
    step_error,
    timeline_text,
)
from langgraft.nodes.workbench.log import StepRecord


def step(action: str = "run_python", **fields: Any) -> StepRecord:
    """Return a step that ran something and worked, unless told otherwise."""
    executed = action in {"run_python", "run_bash", "Execute Script"}
    return StepRecord.model_validate(
        {"step": 0, "action": action, "executed": executed, "program": "import numpy"} | fields
    )


def bug(name: str | None = "KeyError", message: str = "'sex'", **fields: Any) -> StepRecord:
    """Return a step whose program failed."""
    return step(failed=True, exc_type=name, exc_value=message, **fields)


def measured(steps: Sequence[StepRecord], split: int = 10) -> StepBehavior:
    """Return what is measured of a run."""
    return measure_steps(steps, lower_is_better=False, split=split)


INVALID = step("invalid", failed=True, program="")


def test_bug_rate_when_calls_could_not_be_done_counts_only_what_ran_and_failed() -> None:
    """Three readings: of all steps, of executions, and with calls that could not be done."""
    found = measured([bug(), step(), INVALID, step("think", program="")])
    assert found.bug_rate == 0.25
    assert found.execution_bug_rate == 0.5
    assert found.failed_step_rate == 0.5
    assert measured([INVALID]).execution_bug_rate is None
    assert measured([]).bug_rate is None


def test_step_when_a_shell_hides_the_exit_code_is_buggy_by_its_traceback() -> None:
    """And what it shows last of a traceback is the error."""
    shown = f'{TRACEBACK}:\n  File "a.py", line 1\n    x\nsklearn.NotFittedError: no\nend'
    hidden = step("run_bash", exit_code=0, output=f"{TRACEBACK}:\n  x\nOSError\n{shown}")
    error = step_error(hidden)
    assert error is not None
    assert (error.name, error.message) == ("NotFittedError", "no")
    assert step_error(step(output="fine")) is None
    assert step_error(step("edit_file", failed=True, output=shown)) is None


def test_error_when_nothing_was_raised_is_what_ran_out_or_the_exit_code() -> None:
    """Classes are without their module; an exit code is no class, and so never recurs."""
    steps = [bug("a.b.C", ""), bug(None, timed_out=True), bug(None, oom=True), bug(None)]
    assert measured(steps).error_types == {"C": 1, "TimeoutError": 1, "MemoryError": 1}
    ended = step_error(bug(None, exit_code=2))
    assert ended is not None
    assert (ended.name, ended.is_class) == ("exit code 2", False)
    assert measured([bug(None), bug(None)], split=1).errors_recur is False


def test_late_errors_when_a_run_ended_before_are_none() -> None:
    """The paper prints 0 for a run of 5 steps; a rate over no steps there is not."""
    steps = [bug(), step(), bug()]
    late, before = measured(steps, split=2), measured(steps)
    assert (late.late_errors, late.late_error_rate) == (1, 1.0)
    assert (before.late_errors, before.late_error_rate) == (0, None)
    assert before.errors_recur is None
    assert late.errors_recur is True


def test_first_valid_step_when_a_run_has_none_counts_as_the_longest() -> None:
    """A metric counts from a step that worked; a run that gave up at once was not quick."""
    found = measure_steps(
        [bug(metric=0.9), step(metric=math.inf), step(metric=0.5)], lower_is_better=True
    )
    assert (found.first_valid.step, found.first_valid.censored) == (2, False)
    assert found.final == 1 / 1.5
    none = measure_steps([step()], lower_is_better=True, longest=30)
    assert (none.first_valid.step, none.first_valid.censored) == (30, True)


def test_diversity_when_counted_is_of_actions_commands_and_what_worked() -> None:
    """Invalid replies are no actions; commands are raw or normalized; failures use nothing."""
    steps = [
        step("run_bash", command="ls  -n 1"),
        step("run_bash", command="ls -n 22"),
        step("run_python", command="ls -n 22"),
        bug(program="import torch"),
        INVALID,
        step("edit_file", command="view a", program=""),
    ]
    found = measure_steps(steps, lower_is_better=False)
    assert found.tools == {"run_bash": 2, "run_python": 2, "edit_file": 1}
    assert found.commands == 4
    assert found.commands_number == pytest.approx(4)
    assert found.normalized_commands_number == pytest.approx(
        math.exp(0.5 * math.log(2) + 0.5 * math.log(4))
    )
    assert found.package_steps == {"numpy": 3}
    assert found.operators_pooled == 0.0


def test_command_when_normalized_keeps_what_is_done() -> None:
    """Comments, numbers and blanks go; names with digits stay."""
    told = "# first\npython  train.py --lr 1e-3 \t--k5\n  # last"
    assert normalized(told) == "python train.py --lr 0 --k5"


def test_run_when_it_has_no_steps_is_measured() -> None:
    """Its model may never have answered: nothing is divided by zero."""
    found = measure_steps([], lower_is_better=False, longest=7)
    assert (found.bug_rate, found.final, found.first_valid.step) == (None, None, 7)
    assert (found.tools_number, found.late_errors, found.attempts_with_memory.of) == (0.0, 0, 0)
    assert timeline_text(found.spells) == "(no errors)"


def test_timeline_when_errors_repeat_folds_them() -> None:
    """In the paper's form; steps that worked in between do not end a row of equal errors."""
    steps = [bug("NameError", "x"), step(), *[bug(), step()] * 3, bug("NameError", "x")]
    assert timeline_text(error_spells(steps)) == (
        "[step 0] NameError: x\n[step 2] KeyError: 'sex' … +2 more\n[step 8] NameError: x"
    )
    many = error_spells([bug(f"E{n}") for n in range(9)])
    assert timeline_text(many, 2).splitlines()[-1] == "… and 7 later errors"


def test_timeline_when_text_is_hostile_stays_a_line_that_can_be_shown() -> None:
    """Line ends, marks of direction, lone surrogates and endless messages."""
    steps = [bug("\u202eE\ud800", "a\u2066b\nc"), bug("E", "x" * 10_000), bug("  \n", "\n")]
    text = timeline_text(error_spells(steps))
    assert text.encode()
    first, second, third = text.splitlines()
    assert first == "[step 0] \\u202eE\\ud800: a\\u2066b"
    assert len(second) < 150
    assert third == "[step 2] ?"


STEPS = st.lists(
    st.builds(
        StepRecord,
        step=st.just(0),
        action=st.sampled_from(["run_bash", "run_python", "think", "invalid", "message"]),
        command=st.sampled_from(["a", "a 1", "b", ""]),
        executed=st.booleans(),
        program=st.sampled_from(["", "import numpy", "x = 1 +", "y = 2 * 3"]),
        failed=st.booleans(),
        exit_code=st.none() | st.integers(-9, 255),
        exc_type=st.none() | st.text(max_size=5),
        exc_value=st.none() | st.text(max_size=9),
        timed_out=st.booleans(),
        metric=st.none() | st.floats(),
        output=st.sampled_from(["", f"{TRACEBACK}:\n  x\nA.B: c", TRACEBACK]),
        attempt=st.integers(0, 2),
        recalled=st.sampled_from(["", "- a"]),
    ),
    max_size=30,
)


@given(steps=STEPS, lower=st.booleans(), split=st.integers(1, 15))
@settings(max_examples=60, deadline=None)
def test_measures_of_any_run_stay_within_their_bounds(
    steps: list[StepRecord], lower: bool, split: int
) -> None:
    """What the analysis takes for the least and the greatest value is."""
    found = measure_steps(steps, lower_is_better=lower, split=split)
    for rate in (found.bug_rate, found.execution_bug_rate, found.failed_step_rate):
        assert rate is None or 0 <= rate <= 1
    assert found.late_errors is not None
    assert 0 <= found.late_errors <= max(len(steps) - split, 0)
    assert found.tools_number <= len(found.tools) + 1e-9
    assert found.normalized_commands_number <= found.commands_number + 1e-9
    assert found.commands_number <= found.commands + 1e-9
    assert found.commands_number == 0 or found.commands_number >= 1 - 1e-9
    assert sum(each.count for each in found.spells) == found.buggy
    assert found.buggy == (found.cumulative_bugs[-1] if steps else 0)
    assert found.valid + found.buggy == found.executions
    best = [value for value in found.best_so_far if not math.isnan(value)]
    assert all(one <= other for one, other in pairwise(best))
    assert found.first_valid.censored == (not best)
