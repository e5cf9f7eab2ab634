"""How many different things a step agent does: actions, commands, packages, operators (§4.4)."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from langgraft.benchmarks.mle.behaviour.diversity import CountUses, effective_number
from langgraft.benchmarks.mle.behaviour.step_bugs import is_successful
from langgraft.nodes.workbench.log import INVALID
from langgraft.nodes.workbench.projection import StepRecord

COMMAND_TOOLS: Final = frozenset({"run_bash", "run_python"})
"""The family of tools whose command strings are counted: those that take code as it is to run."""

_COMMENT: Final = re.compile(r"(?m)^[ \t]*#.*$")
_NUMBER: Final = re.compile(r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")


def tool_counts(steps: Sequence[StepRecord]) -> Counter[str]:
    """Count the steps by action; a reply that is no action has no kind of action."""
    return Counter(step.action for step in steps if step.action != INVALID)


def command_counts(steps: Sequence[StepRecord]) -> Counter[tuple[str, str]]:
    """Count the commands of the family as they were issued, those of each tool apart.

    The paper has 115 and 181 kinds of commands in runs of at most 500 steps: its strings must be
    raw, where hardly any comes twice.
    """
    return Counter((step.action, step.command) for step in steps if step.action in COMMAND_TOOLS)


def normalized_command_counts(steps: Sequence[StepRecord]) -> Counter[tuple[str, str]]:
    """Count the same commands in their `normalized` form."""
    return Counter(
        (step.action, normalized(step.command)) for step in steps if step.action in COMMAND_TOOLS
    )


def normalized(command: str) -> str:
    """Return a command without lines of comment, with any number as 0 and any blanks as one."""
    bare = _NUMBER.sub("0", _COMMENT.sub("", command))
    return " ".join(bare.split())


def successful_uses(steps: Sequence[StepRecord], count: CountUses) -> Counter[str]:
    """Count over the programs of successful steps, such as packages once a step (§4.6)."""
    total: Counter[str] = Counter()
    for step in steps:
        if is_successful(step) and step.program:
            total.update(count(step.program))
    return total


def successful_number(steps: Sequence[StepRecord], count: CountUses) -> float:
    """Return the effective number over the programs of successful steps together; 0 without any."""
    return effective_number(successful_uses(steps, count))
