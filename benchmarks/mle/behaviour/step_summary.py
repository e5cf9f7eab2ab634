"""All numbers of one run of a step agent, from its steps."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from langgraft.benchmarks.mle.behaviour import step_bugs
from langgraft.benchmarks.mle.behaviour.diversity import (
    effective_number,
    operators,
    package_imports,
)
from langgraft.benchmarks.mle.behaviour.errors import EARLY
from langgraft.benchmarks.mle.behaviour.retrievals import Share
from langgraft.benchmarks.mle.behaviour.run import RunBehavior
from langgraft.benchmarks.mle.behaviour.step_bugs import is_successful
from langgraft.benchmarks.mle.behaviour.step_diversity import (
    command_counts,
    normalized_command_counts,
    successful_number,
    successful_uses,
    tool_counts,
)
from langgraft.benchmarks.mle.behaviour.step_errors import step_error_types, step_errors_recur
from langgraft.benchmarks.mle.behaviour.step_progress import best_metric_so_far, first_valid_step
from langgraft.benchmarks.mle.behaviour.step_recalls import (
    attempts_with_memory,
    buggy_with_memory,
    resource_attempts,
    taught,
)
from langgraft.benchmarks.mle.behaviour.timelines import ErrorSpell, error_spells
from langgraft.nodes.workbench.projection import StepRecord


@dataclass(frozen=True)
class StepBehavior(RunBehavior):
    """How one run of a step agent behaved; each field is defined by the function of its name."""

    executions: int
    execution_bug_rate: float | None
    failed_step_rate: float | None
    late_error_rate: float | None
    tools: Counter[str]
    """Steps by action."""
    tools_number: float
    commands: int
    """Commands of the family whose strings are counted."""
    commands_number: float
    normalized_commands_number: float
    spells: tuple[ErrorSpell, ...]
    attempts_with_memory: Share
    resource_attempts: Share
    buggy_with_memory: Share
    taught: int


def measure_steps(
    steps: Sequence[StepRecord], *, lower_is_better: bool, split: int = EARLY, longest: int = 0
) -> StepBehavior:
    """Measure one run.

    Args:
        steps: The run.
        lower_is_better: The metric's direction, from the competition's board.
        split: The first late step.
        longest: Steps of the longest run that it is compared with.
    """
    # Each program is read once: cells are repeated, and two numbers look at all of them.
    ran = {step.program for step in steps if step.program and is_successful(step)}
    imports = {program: package_imports(program) for program in ran}
    once = {program: Counter(dict.fromkeys(found, 1)) for program, found in imports.items()}
    used = {program: operators(program) for program in ran}
    return StepBehavior(
        steps=len(steps),
        valid=sum(map(is_successful, steps)),
        buggy=sum(map(step_bugs.is_buggy, steps)),
        bug_rate=step_bugs.bug_rate(steps),
        cumulative_bugs=step_bugs.cumulative_bugs(steps),
        best_so_far=best_metric_so_far(steps, lower_is_better=lower_is_better),
        first_valid=first_valid_step(steps, longest=longest),
        package_imports_pooled=successful_number(steps, imports.__getitem__),
        operators_pooled=successful_number(steps, used.__getitem__),
        late_errors=step_bugs.late_errors(steps, split=split),
        errors_recur=step_errors_recur(steps, split=split),
        error_types=step_error_types(steps),
        package_steps=successful_uses(steps, once.__getitem__),
        executions=sum(step.executed for step in steps),
        execution_bug_rate=step_bugs.execution_bug_rate(steps),
        failed_step_rate=step_bugs.failed_step_rate(steps),
        late_error_rate=step_bugs.late_error_rate(steps, split=split),
        tools=tool_counts(steps),
        tools_number=effective_number(tool_counts(steps)),
        commands=command_counts(steps).total(),
        commands_number=effective_number(command_counts(steps)),
        normalized_commands_number=effective_number(normalized_command_counts(steps)),
        spells=error_spells(steps),
        attempts_with_memory=attempts_with_memory(steps),
        resource_attempts=resource_attempts(steps),
        buggy_with_memory=buggy_with_memory(steps),
        taught=taught(steps),
    )
