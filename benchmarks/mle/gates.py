"""Checks that a tree study must pass before its numbers are worth reading."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langgraft.benchmarks.mle.contrasts import Contrast
from langgraft.benchmarks.mle.searches import OFF, PLACEBO, RERUN, Searches
from langgraft.benchmarks.mle.wording import change

State: TypeAlias = Literal["passed", "failed", "open"]

WATCHED: Final = ("bug_rate", "first_valid", "best_metric", "any_medal")
"""Measures by which a control must not look like a memory."""

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Gate:
    """One check and how it came out; `open` says that it could not be made."""

    name: str
    state: State
    detail: str


def gates(searches: Searches, found: Sequence[Contrast]) -> tuple[Gate, ...]:
    """Make all checks."""
    return (
        completeness(searches),
        equal_lengths(searches),
        _control("Placebo does not help", PLACEBO, found, wrong="better"),
        _control("A/A: without memory again", RERUN, found, wrong="either"),
    )


def completeness(searches: Searches) -> Gate:
    """Check that every planned search ended, and every bank is made."""
    done = {search.spec.name for search in searches.done}
    missing = [spec.name for spec in searches.planned if spec.name not in done]
    detail = (
        f"{len(searches.done)} of {len(searches.planned)} searches ended;"
        f" {searches.builds_done} of {len(searches.builds)} banks are made."
    )
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        detail += f" Missing: {'; '.join(missing[:_NAMED])}{more}."
    return Gate("Completeness", "passed" if searches.complete else "failed", detail)


def equal_lengths(searches: Searches) -> Gate:
    """Check that paired searches have equally many steps, without which totals do not compare."""
    name = "Equal lengths"
    steps: dict[tuple[str, int], set[int]] = {}
    for each in searches.done:
        steps.setdefault((each.competition, each.seed), set()).add(each.behavior.steps)
    if not steps:
        return Gate(name, "open", "No search ended yet.")
    unequal = [f"{task}, seed {seed}" for (task, seed), found in steps.items() if len(found) > 1]
    if not unequal:
        return Gate(name, "passed", f"Equally many steps within each of {len(steps)} pairings.")
    named = "; ".join(unequal[:_NAMED])
    return Gate(name, "failed", f"Steps differ in {len(unequal)} of {len(steps)}: {named}.")


def _control(
    name: str, condition: str, found: Sequence[Contrast], *, wrong: Literal["better", "either"]
) -> Gate:
    """Check that a control's intervals hold 0, or lie on the worse side where that is no wonder."""
    own = [each for each in found if each.condition == condition and each.measure.name in WATCHED]
    if not own or all(each.estimate is None for each in own):
        return Gate(
            name, "open", f"There is no {condition!r} beside {OFF!r}, or it has no results."
        )
    told = "; ".join(
        f"{each.measure.label} {change(each.estimate, each.measure)}, n = {each.pairs}"
        for each in own
        if each.estimate is not None
    )
    if not all(each.complete for each in own):
        return Gate(name, "open", f"{told}. Incomplete.")
    bad = [each for each in own if each.excludes_zero and (wrong == "either" or _improves(each))]
    if bad:
        return Gate(
            name, "failed", f"{told}. Excludes 0: {', '.join(e.measure.label for e in bad)}."
        )
    if any(each.estimate is not None and each.estimate.method == "unknown" for each in own):
        return Gate(name, "open", f"{told}. One competition tells nothing of others.")
    return Gate(name, "passed", f"{told}.")


def _improves(contrast: Contrast) -> bool:
    assert contrast.estimate is not None
    return (contrast.estimate.value > 0) == (contrast.measure.better == "higher")
