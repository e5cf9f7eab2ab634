"""How a run of an agent that works step by step behaved, from its steps alone (Tables 3, 7 and 9).

The paper gives OpenHands a bug rate and does not say what a buggy step is. Here it is a step whose
observation has a traceback or an exit code other than 0. Calls that could not be done (an unknown
tool, a text to replace that is not there) ran nothing: they are failed steps, and no bugs.

The errors of a run can be read step by step, as the paper prints them (App. C):

[step 0] NameError: name 'parse_markdown' is not defined
[step 13] KeyError: 'sex' … +245 more
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from langgraft.benchmarks.mle.behaviour.runs import (
    EARLY,
    EXHAUSTED,
    RESOURCE,
    TIMEOUT,
    RunBehavior,
    Share,
    Trial,
    effective_number,
    first_where,
    measure_trials,
    operators,
    package_imports,
    plain_class,
)
from langgraft.benchmarks.reporting.words import visible
from langgraft.nodes.workbench.log import INVALID, StepRecord

TRACEBACK: Final = "Traceback (most recent call last)"

COMMAND_TOOLS: Final = frozenset({"run_bash", "run_python"})
"""The family of tools whose command strings are counted: those that take code as it is to run."""

LONGEST: Final = 120
"""Characters that are kept of a class or of a message."""

MOST_LINES: Final = 40
"""Lines of a timeline that are written of one run; the tables have all."""

_COMMENT: Final = re.compile(r"(?m)^[ \t]*#.*$")
_NUMBER: Final = re.compile(r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
_RAISED: Final = re.compile(r"^([A-Za-z_][\w.]{0,79})(?::[ \t]+(.*))?$", re.MULTILINE)
"""The line that ends a traceback; what is above it is indented."""


@dataclass(frozen=True, slots=True)
class StepError:
    """What a buggy step failed with, in text that can be shown anywhere."""

    name: str
    """Class of the exception, of what ran out, or `exit code <n>`."""
    message: str
    """The first line of its message."""
    is_class: bool
    """Whether it is a class; an exit code is none."""


@dataclass(frozen=True, slots=True)
class ErrorSpell:
    """Equal errors one after another, whatever worked in between."""

    first: int
    """Step of the first of them."""
    last: int
    count: int
    error: StepError


@dataclass(frozen=True)
class StepBehavior(RunBehavior):
    """How one run of a step agent behaved."""

    executions: int
    execution_bug_rate: float | None
    """Share of executions that are buggy; `None` for a run that executed nothing."""
    failed_step_rate: float | None
    """Share of steps that are buggy or could not be done."""
    late_error_rate: float | None
    """Share of late steps that are buggy; `None` for a run without late steps. Runs end where their
    agent ends them, and one that goes on for longer fails more often."""
    tools: Counter[str]
    """Steps by action; a reply that is no action has no kind of action."""
    tools_number: float
    """Effective number of `tools`."""
    commands: int
    """Commands of the family whose strings are counted."""
    commands_number: float
    """Effective number of those, each tool's apart, as they were issued. The paper has 115 and 181
    in runs of at most 500 steps: its strings must be raw, where hardly any comes twice."""
    normalized_commands_number: float
    """The same of commands in their `normalized` form."""
    spells: tuple[ErrorSpell, ...]
    """The errors of the run in order."""
    attempts_with_memory: Share
    """Attempts that began with recalled memory (§3.3), of those that have a step."""
    resource_attempts: Share
    """Those recalls with at least one resource entry among what they found."""
    buggy_with_memory: Share
    """Buggy steps that were taken with recalled memory in view."""
    taught: int
    """Failures that memory was taught of: those that have a diagnosis."""


def measure_steps(
    steps: Sequence[StepRecord], *, lower_is_better: bool, split: int = EARLY, longest: int = 0
) -> StepBehavior:
    """Measure one run.

    Args:
        steps: The run.
        lower_is_better: The metric's direction, from the competition's board.
        split: The first late step.
        longest: Steps of the longest run that it is compared with. A run without a valid metric is
            censored at that: runs end where their agent ends them, and by its own length one that
            gave up at once would look quick.
    """
    trials = [_trial(step) for step in steps]
    first = first_where(
        (trial.valid_metric is not None for trial in trials), censored_at=max(len(steps), longest)
    )
    # Each program is read once: cells are repeated, and each number looks at all of them.
    common = measure_trials(
        trials,
        first,
        cache(package_imports),
        cache(operators),
        lower_is_better=lower_is_better,
        split=split,
    )
    buggy = [step for step, trial in zip(steps, trials, strict=True) if trial.buggy]
    executions = sum(step.executed for step in steps)
    tools = Counter(step.action for step in steps if step.action != INVALID)
    issued = [step for step in steps if step.action in COMMAND_TOOLS]
    told = {step.attempt: bool(step.recalled) for step in steps}
    kinds = {step.attempt: step.recalled_kinds for step in steps if step.recalled}
    return StepBehavior(
        **vars(common),
        executions=executions,
        execution_bug_rate=_rate(len(buggy), executions),
        failed_step_rate=_rate(sum(step.failed or is_buggy(step) for step in steps), len(steps)),
        late_error_rate=_rate(common.late_errors or 0, len(steps[split:])),
        tools=tools,
        tools_number=effective_number(tools),
        commands=len(issued),
        commands_number=effective_number(Counter((s.action, s.command) for s in issued)),
        normalized_commands_number=effective_number(
            Counter((step.action, normalized(step.command)) for step in issued)
        ),
        spells=error_spells(steps),
        attempts_with_memory=Share(sum(told.values()), len(told)),
        resource_attempts=Share(sum(RESOURCE in each for each in kinds.values()), len(kinds)),
        buggy_with_memory=Share(sum(bool(step.recalled) for step in buggy), len(buggy)),
        taught=sum(step.error is not None for step in steps),
    )


def _trial(step: StepRecord) -> Trial:
    buggy, error = is_buggy(step), step_error(step)
    return Trial(
        buggy=buggy,
        worked=step.executed and not buggy,
        program=step.program,
        metric=step.metric,
        error=error.name if error is not None and error.is_class else None,
    )


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def is_buggy(step: StepRecord) -> bool:
    """Say whether something ran and failed, or showed a traceback.

    A shell hides exit codes: of `python train.py | tail` that of Python is lost, and the traceback
    is there to see. One that the program caught and printed counts, too: text does not tell.
    """
    return step.executed and (step.failed or TRACEBACK in step.output)


def step_error(step: StepRecord) -> StepError | None:
    """Return what a step failed with; `None` for one that is not buggy.

    Where the log has no exception, that of the last traceback in the output is taken: a shell
    command's own exit code says little.
    """
    if not is_buggy(step):
        return None
    if step.exc_type:
        return _error(step.exc_type, step.exc_value or "")
    if step.timed_out or step.oom:
        return StepError(TIMEOUT if step.timed_out else EXHAUSTED, "", is_class=True)
    _, traced, shown = step.output.rpartition(TRACEBACK)
    raised = _RAISED.search(shown) if traced else None
    if raised is not None:
        return _error(raised[1], raised[2] or "")
    code = "" if step.exit_code is None else f" {step.exit_code}"
    return StepError(f"exit code{code}" if code else "failed", "", is_class=False)


def _error(name: str, message: str) -> StepError:
    return StepError(_line(plain_class(name)) or "?", _line(message), is_class=True)


def _line(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    shown = visible(lines[0]).replace("\t", " ")
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 2]} …"


def normalized(command: str) -> str:
    """Return a command without lines of comment, with any number as 0 and any blanks as one."""
    bare = _NUMBER.sub("0", _COMMENT.sub("", command))
    return " ".join(bare.split())


def error_spells(steps: Sequence[StepRecord]) -> tuple[ErrorSpell, ...]:
    """Return the errors of a run, equal ones in a row folded into one."""
    found: list[ErrorSpell] = []
    for place, step in enumerate(steps):
        if (error := step_error(step)) is None:
            continue
        if found and found[-1].error == error:
            found[-1] = replace(found[-1], last=place, count=found[-1].count + 1)
        else:
            found.append(ErrorSpell(place, place, 1, error))
    return tuple(found)


def timeline_text(spells: Sequence[ErrorSpell], most: int = MOST_LINES) -> str:
    """Write the errors of a run, a line for each spell."""
    if not spells:
        return "(no errors)"
    lines = [_told(each) for each in spells[:most]]
    if left := spells[most:]:
        lines.append(f"… and {sum(each.count for each in left):,} later errors")
    return "\n".join(lines)


def _told(spell: ErrorSpell) -> str:
    error = spell.error
    told = f"{error.name}: {error.message}" if error.message else error.name
    more = f" … +{spell.count - 1:,} more" if spell.count > 1 else ""
    return f"[step {spell.first}] {told}{more}"
