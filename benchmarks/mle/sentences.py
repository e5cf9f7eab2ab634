"""The findings of a study in words, and its numbers short enough for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from langgraft.benchmarks.comparison.measures import MeasureContrast
from langgraft.benchmarks.mle.analysis import Analysis
from langgraft.benchmarks.mle.outcomes import earned
from langgraft.benchmarks.mle.searches import RUNS, TREE, Kind
from langgraft.benchmarks.reporting.words import (
    DASH,
    TIMES,
    listing,
    mean_error,
    measured_change,
    number,
    several,
)

_TOLD: Final[Mapping[Kind, tuple[str, ...]]] = {
    "tree": ("bug_rate", "first_valid", "operators", "packages"),
    "chain": ("bug_rate", "first_valid", "late_errors", "tools", "commands"),
    "mlab": ("bug_rate", "first_valid", "late_errors", "tools"),
}
_EARNED: Final = {"valid_submission": "valid", "any_medal": "medal"}
_UNITS: Final = {"%": " points", "% of runs": " points"}
_OTHER_SEEDS: Final = "other seeds of these competitions"
_OTHER_TASKS: Final = "other competitions and seeds"


def sentences(analysis: Analysis) -> tuple[str, ...]:
    """Return the findings on one agent, a sentence each."""
    return (_extent(analysis), *_differences(analysis), *_gates(analysis))


def named_sentences(analyses: Sequence[Analysis]) -> tuple[str, ...]:
    """Return the findings on all agents; each names its agent, unless there is the tree alone."""
    if is_tree_alone(analyses):
        return sentences(analyses[0])
    return tuple(f"{each.agent}: {said}" for each in analyses for said in sentences(each))


def is_tree_alone(analyses: Sequence[Analysis]) -> bool:
    """Say whether a study has no agent but the tree."""
    return [each.searches.kind for each in analyses] == [TREE]


def _extent(analysis: Analysis) -> str:
    searches = analysis.searches
    medals = sum(earned(run, "any_medal") for run in searches.done)
    graded = sum(earned(run, "valid_submission") for run in searches.done)
    extent = f"{several(len(searches.competitions), 'competition')} {TIMES} "
    extent += several(len(searches.conditions), "condition")
    return (
        f"{len(searches.done)} of {several(len(searches.planned), *RUNS[searches.kind])} ended"
        f" ({extent}): {graded:.0f} with a valid submission, {medals:.0f} with a medal."
    )


def _differences(analysis: Analysis) -> Iterator[str]:
    """Say what each memory changed, for these competitions where seeds tell, else for all."""
    told_of = _TOLD[analysis.searches.kind]
    for condition in analysis.searches.memories:
        found = [analysis.contrast(condition, name) for name in told_of]
        for same in (True, False):
            of_kind = [each for each in found if (each.same_items is not None) == same]
            told = [_told(each, analysis) for each in of_kind if each.sharpest is not None]
            if told:
                of = _OTHER_SEEDS if same else _OTHER_TASKS
                part = "" if all(each.complete for each in of_kind) else ", incomplete"
                yield (
                    f"{condition} against {analysis.searches.baseline}, {of}{part}:"
                    f" {'; '.join(told)}."
                )


def _told(contrast: MeasureContrast, analysis: Analysis) -> str:
    estimate, measure = contrast.sharpest, contrast.measure
    assert estimate is not None
    notes = [f"n = {contrast.pairs}"]
    if not estimate.excludes_zero:
        notes.append("holds 0")
    elif contrast.sharpest_verdict == "unclear":
        notes.append("not after correction")
    if measure.name == "first_valid" and (censored := _censored(analysis, contrast.condition)):
        notes.append(f"none valid in {several(censored, *RUNS[analysis.searches.kind])}")
    unit = _UNITS.get(measure.unit, "")
    return f"{measure.label} {measured_change(estimate, measure, runs='seeds')}{unit} ({', '.join(notes)})"


def _censored(analysis: Analysis, condition: str) -> int:
    """Count the runs without a valid program, of a condition and of what it is compared with."""
    return sum(map(analysis.searches.censored, {condition, analysis.searches.baseline}))


def _gates(analysis: Analysis) -> Iterator[str]:
    """Name gates that did not pass, in quotes: what one checks is no finding while it is open."""
    failed = [f"“{gate.name}”" for gate in analysis.gates if gate.state == "failed"]
    unmade = [f"“{gate.name}”" for gate in analysis.gates if gate.state == "open"]
    if failed:
        yield f"Gates that failed: {listing(failed)}."
    if unmade:
        yield f"Gates that are open: {listing(unmade)}."


INTERVALS: Final = f"Intervals of 95 %: (these) {_OTHER_SEEDS}, (all) {_OTHER_TASKS}."
"""What the marks in the terminal's table mean."""


def summary_rows(
    analyses: Sequence[Analysis],
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return columns and rows of the terminal's table; of a tree alone without its name."""
    alone = is_tree_alone(analyses)
    columns = (
        *(() if alone else ("agent",)),
        *("condition", "searches" if alone else "runs"),
        *("bugs, %", f"against {analyses[0].searches.baseline}"),
        *("first valid", *(f"{name}, %" for name in _EARNED.values())),
    )
    rows = tuple(
        (*(() if alone else (each.agent,)), *_row(each, name))
        for each in analyses
        for name in each.searches.conditions
    )
    return columns, rows


def _row(analysis: Analysis, condition: str) -> tuple[str, ...]:
    searches = analysis.searches
    bugs, first = (
        next(level for level in analysis.measured[name].levels if level.condition == condition)
        for name in ("bug_rate", "first_valid")
    )
    compared = condition != searches.baseline
    shares = dict(next(o for o in analysis.outcomes if o.condition == condition).shares)
    return (
        condition,
        f"{len(searches.of(condition))}/{len(searches.planned_pairs(condition))}",
        number(bugs.estimate.value if bugs.estimate else None, 1, scale=100),
        _against(analysis.contrast(condition, "bug_rate")) if compared else DASH,
        # A run without a valid program counts as its length: the mean is a lower bound.
        f"{'≥ ' * bool(searches.censored(condition))}{number(first.estimate.value if first.estimate else None)}",
        *(mean_error(shares[name], 1, scale=100) for name in _EARNED),
    )


def _against(contrast: MeasureContrast) -> str:
    """Write a difference, and which of the two questions its interval answers."""
    if contrast.sharpest is None:
        return DASH
    which = "all" if contrast.same_items is None else "these"
    return f"{measured_change(contrast.sharpest, contrast.measure, runs='seeds')} ({which})"
