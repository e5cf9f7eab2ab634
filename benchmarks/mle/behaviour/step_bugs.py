"""Which steps of a step agent failed, how many and when (mle-agent-memory §4.4, Tables 3 and 9).

The paper gives OpenHands a bug rate and does not say what a buggy step is. Here it is a step whose
observation has a traceback or an exit code other than 0. Calls that could not be done (an unknown
tool, a text to replace that is not there) ran nothing: they are failed steps, and no bugs.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from langgraft.nodes.workbench.projection import StepRecord

TRACEBACK: Final = "Traceback (most recent call last)"


def is_buggy(step: StepRecord) -> bool:
    """Say whether something ran and failed, or showed a traceback.

    A shell hides exit codes: of `python train.py | tail` that of Python is lost, and the traceback
    is there to see. One that the program caught and printed counts, too: text does not tell.
    """
    return step.executed and (step.failed or TRACEBACK in step.output)


def is_successful(step: StepRecord) -> bool:
    """Say whether something ran and did not fail."""
    return step.executed and not is_buggy(step)


def bug_rate(steps: Sequence[StepRecord]) -> float | None:
    """Return the share of all steps that are buggy; `None` for a run without steps."""
    return sum(map(is_buggy, steps)) / len(steps) if steps else None


def execution_bug_rate(steps: Sequence[StepRecord]) -> float | None:
    """Return the share of executions that are buggy; `None` for a run that executed nothing."""
    executions = sum(step.executed for step in steps)
    return sum(map(is_buggy, steps)) / executions if executions else None


def failed_step_rate(steps: Sequence[StepRecord]) -> float | None:
    """Return the share of steps that are buggy or could not be done."""
    failed = sum(step.failed or is_buggy(step) for step in steps)
    return failed / len(steps) if steps else None


def cumulative_bugs(steps: Sequence[StepRecord]) -> tuple[int, ...]:
    """Count the buggy steps up to each step."""
    return tuple(accumulate(int(is_buggy(step)) for step in steps))


def late_errors(steps: Sequence[StepRecord], *, split: int = 10) -> int:
    """Count the buggy steps from step `split` on (Table 9: from 10).

    A run that ended before has none: the paper's traces print 0 for a run of 5 steps.
    """
    return sum(map(is_buggy, steps[split:]))


def late_error_rate(steps: Sequence[StepRecord], *, split: int = 10) -> float | None:
    """Return the share of late steps that are buggy; `None` for a run without late steps.

    Runs end where their agent ends them, and one that goes on for longer fails more often.
    """
    late = steps[split:]
    return sum(map(is_buggy, late)) / len(late) if late else None
