"""Which errors a run of a step agent met, and whether it met them again (App. B, Table 7)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.mle.behaviour.errors import EARLY, EXHAUSTED, TIMEOUT
from langgraft.benchmarks.mle.behaviour.step_bugs import TRACEBACK, is_buggy
from langgraft.benchmarks.reporting.words import visible
from langgraft.nodes.workbench.projection import StepRecord

LONGEST: Final = 120
"""Characters that are kept of a class or of a message."""

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
    raised = _RAISED.search(step.output.rpartition(TRACEBACK)[2]) if _traced(step) else None
    if raised is not None:
        return _error(raised[1], raised[2] or "")
    code = "" if step.exit_code is None else f" {step.exit_code}"
    return StepError(f"exit code{code}" if code else "failed", "", is_class=False)


def _traced(step: StepRecord) -> bool:
    return TRACEBACK in step.output


def _error(name: str, message: str) -> StepError:
    plain = name.rpartition(".")[2] or name
    return StepError(_line(plain) or "?", _line(message), is_class=True)


def _line(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    shown = visible(lines[0]).replace("\t", " ")
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 2]} …"


def step_error_type(step: StepRecord) -> str | None:
    """Return the class of what a step failed with; `None` where there is none."""
    error = step_error(step)
    return error.name if error is not None and error.is_class else None


def step_error_types(steps: Sequence[StepRecord]) -> Counter[str]:
    """Count the buggy steps by class; those without one are left out."""
    return Counter(name for step in steps if (name := step_error_type(step)))


def step_errors_recur(steps: Sequence[StepRecord], *, split: int = EARLY) -> bool | None:
    """Say whether a class is met both before step `split` and from it on (Table 7).

    `None` for a run that has no late steps.
    """
    if len(steps) <= split:
        return None
    early, late = (set(step_error_types(part)) for part in (steps[:split], steps[split:]))
    return bool(early & late)
