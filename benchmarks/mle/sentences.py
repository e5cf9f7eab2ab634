"""The findings of a tree study in words, and its numbers short enough for a terminal."""

from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.continual.wording import DASH, TIMES, listing, several
from langgraft.benchmarks.mle.analysis import Analysis
from langgraft.benchmarks.mle.contrasts import Contrast, excludes_zero
from langgraft.benchmarks.mle.outcomes import earned
from langgraft.benchmarks.mle.wording import change, mean, number

_TOLD: Final = ("bug_rate", "first_valid", "operators", "packages")
_EARNED: Final = {"valid_submission": "valid", "any_medal": "medal"}
_UNITS: Final = {"%": " points", "% of runs": " points"}


def sentences(analysis: Analysis) -> tuple[str, ...]:
    """Return the findings, a sentence each."""
    return (_extent(analysis), *_differences(analysis), *_gates(analysis))


def _extent(analysis: Analysis) -> str:
    searches = analysis.searches
    medals = sum(earned(run, "any_medal") for run in searches.done)
    graded = sum(earned(run, "valid_submission") for run in searches.done)
    extent = f"{several(len(searches.competitions), 'competition')} {TIMES} "
    extent += several(len(searches.conditions), "condition")
    return (
        f"{len(searches.done)} of {several(len(searches.planned), 'search', 'searches')} ended"
        f" ({extent}): {graded:.0f} with a valid submission, {medals:.0f} with a medal."
    )


def _differences(analysis: Analysis) -> Iterator[str]:
    """Say what each memory changed, for these competitions where seeds tell, else for all."""
    for condition in analysis.searches.memories:
        found = [analysis.contrast(condition, name) for name in _TOLD]
        for same in (True, False):
            told = [_told(each) for each in found if (each.same_tasks is not None) == same]
            if any(told):
                of = "other seeds of these competitions" if same else "all competitions"
                yield (
                    f"{condition} against {analysis.searches.baseline} ({of}):"
                    f" {'; '.join(filter(None, told))}."
                )


def _told(contrast: Contrast) -> str:
    estimate, measure = contrast.sharpest, contrast.measure
    if estimate is None:
        return ""
    unit = _UNITS.get(measure.unit, "")
    zero = "" if excludes_zero(estimate) else ", which holds 0"
    part = "" if contrast.complete else ", incomplete"
    return f"{measure.label} {change(estimate, measure)}{unit}, n = {contrast.pairs}{zero}{part}"


def _gates(analysis: Analysis) -> Iterator[str]:
    failed = [gate.name for gate in analysis.gates if gate.state == "failed"]
    unmade = [gate.name for gate in analysis.gates if gate.state == "open"]
    if failed:
        yield f"Gates that failed: {listing(failed)}."
    if unmade:
        yield f"Gates that are open: {listing(unmade)}."


def summary_rows(analysis: Analysis) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return columns and rows of the terminal's table."""
    columns = (
        *("condition", "searches", "bugs, %", f"against {analysis.searches.baseline}"),
        *("first valid", *(f"{name}, %" for name in _EARNED.values())),
    )
    return columns, tuple(_row(analysis, name) for name in analysis.searches.conditions)


def _row(analysis: Analysis, condition: str) -> tuple[str, ...]:
    searches = analysis.searches
    bugs, first = (
        next(level for level in analysis.level(name) if level.condition == condition)
        for name in ("bug_rate", "first_valid")
    )
    against = DASH
    if condition != searches.baseline:
        contrast = analysis.contrast(condition, "bug_rate")
        against = change(contrast.sharpest, contrast.measure)
    shares = dict(next(o for o in analysis.outcomes if o.condition == condition).shares)
    return (
        condition,
        f"{len(searches.of(condition))}/{searches.n_planned(condition)}",
        number(bugs.estimate.value if bugs.estimate else None, 1, scale=100),
        against,
        number(first.estimate.value if first.estimate else None, 2),
        *(mean(shares[name], 1, scale=100) for name in _EARNED),
    )
