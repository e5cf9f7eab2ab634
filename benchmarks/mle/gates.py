"""Checks that an agent's runs must pass before its numbers are worth reading."""

from collections.abc import Sequence
from typing import Final, Literal

from langgraft.benchmarks.comparison import verdicts
from langgraft.benchmarks.comparison.measures import MeasureContrast
from langgraft.benchmarks.comparison.verdicts import NAMED, SIGNIFICANCE, Gate
from langgraft.benchmarks.mle.searches import RUNS, TREE, Searches
from langgraft.benchmarks.reporting.words import measured_change

WATCHED: Final = ("bug_rate", "first_valid", "best_metric", "any_medal")
"""Measures by which a control must not look like a memory."""

RATES: Final = ("bug_rate", "any_medal")
"""Those of them of which equivalence is asked: rates, whose margin is the plan's."""


def gates(searches: Searches, found: Sequence[MeasureContrast]) -> tuple[Gate, ...]:
    """Make all checks of one agent.

    Whether lengths are equal is a question for trees: other agents end their runs themselves, and
    how long these were is one of their findings.
    """
    roles = searches.roles
    return (
        completeness(searches),
        *((equal_lengths(searches),) if searches.kind == TREE else ()),
        *(
            _control(f"{name} does not help", name, searches, found, wrong="better")
            for name in roles.placebos
        ),
        *(_control(f"A/A: {name}", name, searches, found, wrong="either") for name in roles.reruns),
    )


def completeness(searches: Searches) -> Gate:
    """Check that every planned search ended, and every bank is made."""
    done = {search.spec.name for search in searches.done}
    missing = [spec.name for spec in searches.planned if spec.name not in done]
    detail = (
        f"{len(searches.done)} of {len(searches.planned)} {RUNS[searches.kind][1]} ended;"
        f" {searches.builds_done} of {len(searches.builds)} banks are made."
    )
    return verdicts.completeness(detail, missing)


def equal_lengths(searches: Searches) -> Gate:
    """Check that paired searches have equally many steps, without which totals do not compare."""
    name = "Equal lengths"
    steps: dict[tuple[str, int], set[int]] = {}
    for each in searches.done:
        steps.setdefault(each.pair, set()).add(each.behavior.steps)
    if not steps:
        return Gate(name, "open", "No search ended yet.")
    unequal = [f"{task}, seed {seed}" for (task, seed), found in steps.items() if len(found) > 1]
    if not unequal:
        return Gate(name, "passed", f"Equally many steps within each of {len(steps)} pairings.")
    named = "; ".join(unequal[:NAMED])
    return Gate(name, "failed", f"Steps differ in {len(unequal)} of {len(steps)}: {named}.")


def _control(
    name: str,
    condition: str,
    searches: Searches,
    found: Sequence[MeasureContrast],
    *,
    wrong: Literal["better", "either"],
) -> Gate:
    """Check that a control is equivalent to no memory, or at least does not help.

    Each measure is tested on these competitions with other seeds where that is possible, which
    is the sharper test. A difference fails the gate, by Bonferroni, as one false alarm in the gate is one
    too many; it is passed where rates are equivalent within the plan's margin (two one-sided tests),
    or the same in every pair.
    """
    own = [each for each in found if each.condition == condition and each.measure.name in WATCHED]
    known = [(each, each.sharpest) for each in own if each.sharpest is not None]
    if not known:
        return Gate(
            name, "open", "The plan has no such condition, or nothing to pair it with ended yet."
        )
    told = "; ".join(
        f"{each.measure.label} {measured_change(estimate, each.measure, runs='seeds')}, n = {each.pairs}"
        for each, estimate in known
    )
    if not all(each.complete for each in own):
        return Gate(name, "open", f"{told}. Incomplete.")
    bad = [
        each.measure.label
        for each, estimate in known
        if estimate.p * len(known) < SIGNIFICANCE
        and (wrong == "either" or each.measure.improves(estimate))
    ]
    if bad:
        return Gate(name, "failed", f"{told}. Beyond chance: {', '.join(bad)}.")
    margin = searches.roles.margin
    loose = [
        each.measure.label
        for each, estimate in known
        if each.measure.name in RATES
        and not (estimate.method == "exact" and not estimate.value)
        and estimate.p_beyond(margin) >= SIGNIFICANCE
    ]
    if loose:
        words = f"Not shown to be equivalent within ±{100 * margin:.0f} points: {', '.join(loose)}."
        return Gate(name, "open", f"{told}. {words}")
    return Gate(name, "passed", f"{told}. Equivalent within ±{100 * margin:.0f} points.")
