"""The errors of a run step by step, as the paper prints them (App. C), in a few lines of text.

[step 0] NameError: name 'parse_markdown' is not defined
[step 13] KeyError: 'sex' … +245 more
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from langgraft.benchmarks.mle.behaviour.step_errors import StepError, step_error
from langgraft.nodes.workbench.projection import StepRecord

MOST_LINES: Final = 40
"""Lines that are written of one run; the tables have all."""


@dataclass(frozen=True, slots=True)
class ErrorSpell:
    """Equal errors one after another, whatever worked in between."""

    first: int
    """Step of the first of them."""
    last: int
    count: int
    error: StepError


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
    lines = [_line(each) for each in spells[:most]]
    if left := spells[most:]:
        lines.append(f"… and {sum(each.count for each in left):,} later errors")
    return "\n".join(lines)


def _line(spell: ErrorSpell) -> str:
    error = spell.error
    told = f"{error.name}: {error.message}" if error.message else error.name
    more = f" … +{spell.count - 1:,} more" if spell.count > 1 else ""
    return f"[step {spell.first}] {told}{more}"
