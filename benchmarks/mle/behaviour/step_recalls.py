"""What memory put into the attempts of a run of a step agent (§3.3: the initial message of each)."""

from collections.abc import Sequence

from langgraft.benchmarks.mle.behaviour.retrievals import RESOURCE, Share
from langgraft.benchmarks.mle.behaviour.step_bugs import is_buggy
from langgraft.nodes.workbench.projection import StepRecord


def attempts_with_memory(steps: Sequence[StepRecord]) -> Share:
    """Return the share of attempts that began with recalled memory, of those that have a step."""
    told = {step.attempt: bool(step.recalled) for step in steps}
    return Share(sum(told.values()), len(told))


def resource_attempts(steps: Sequence[StepRecord]) -> Share:
    """Return the share of those recalls with at least one resource entry among what they found."""
    kinds = {step.attempt: step.recalled_kinds for step in steps if step.recalled}
    return Share(sum(RESOURCE in found for found in kinds.values()), len(kinds))


def buggy_with_memory(steps: Sequence[StepRecord]) -> Share:
    """Return the share of buggy steps that were taken with recalled memory in view."""
    buggy = [step for step in steps if is_buggy(step)]
    return Share(sum(bool(step.recalled) for step in buggy), len(buggy))


def taught(steps: Sequence[StepRecord]) -> int:
    """Count the failures that memory was taught of: those that have a diagnosis."""
    return sum(step.error is not None for step in steps)
