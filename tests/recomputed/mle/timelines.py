"""Appendix C: the error timelines that are printed, and what they say of Tables 7 and 9."""

import math
from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.mle.behaviour.runs import EARLY
from langgraft.benchmarks.published import Finding, Run
from langgraft.benchmarks.reporting.words import number
from recomputed.mle.forms import PAPER, prints

_SIIM: Final = "siim-isic-melanoma-classification"
_CELLS: Final = "histopathologic-cancer-detection"


_SHARE: Final = PAPER.appendix_c.loop_share

_MARKDOWN: Final = (0, "NameError", "parse_markdown")

RUNS: Final = PAPER.appendix_c.runs
"""All twelve runs that are printed."""


def name(run: Run) -> str:
    """Return task, condition and number."""
    return f"{run.task}, {run.condition.lower()} run {run.run}"


def late_listed(run: Run) -> int:
    """Return how many listed errors are from step 10 on."""
    return sum(step >= EARLY for step, _, _ in run.errors)


def recurs(run: Run, *, with_message: bool) -> bool:
    """Say whether an error type is met both early and late."""
    kinds: tuple[set[tuple[str, str]], ...] = (set(), set())
    for step, kind, about in run.errors:
        kinds[step >= EARLY].add((kind, about if with_message else ""))
    return bool(kinds[0] & kinds[1])


def appendix_c() -> Iterator[Finding]:
    """Yield what comes of the printed timelines."""
    yield from map(_counted, RUNS)
    yield from _more()
    yield from _means()
    yield from _recurring()
    yield from _first_errors()
    yield from _lengths()


def _counted(run: Run) -> Finding:
    what, printed = f"late errors, {name(run)}", str(run.late)
    found = f"{late_listed(run)} listed from step {EARLY} on"
    if run.more:
        return Finding("Appendix C", what, printed, f"{found}, then the list breaks off", None)
    return Finding("Appendix C", what, printed, found, late_listed(run) == run.late)


def _more() -> Iterator[Finding]:
    """Yield whether a run has room for the errors that are said to follow its list."""
    for run in RUNS:
        if run.more:
            steps = [step for step, kind, _ in run.errors if kind == "KeyError"]
            between = steps[-1] - steps[0] + 1 - len(steps)
            room = run.steps - steps[0] - between
            yield Finding(
                "Appendix C",
                f"KeyErrors, {name(run)}",
                f"{len(steps)} and {run.more} more; {_SHARE} % of {run.steps} steps",
                f"{len(steps) + run.more} errors in at most {room} steps that can have one:"
                f" not one a step; {_SHARE} % are {round(_SHARE * run.steps / 100)} steps",
                len(steps) + run.more <= room,
            )


def _of(task: str, condition: str) -> list[Run]:
    return [run for run in RUNS if (run.task, run.condition) == (task, condition)]


def _means() -> Iterator[Finding]:
    for task in (_SIIM, _CELLS):
        for condition, printed in zip(("Baseline", "Memory"), PAPER.table_9[task][:2], strict=True):
            counts = [run.late for run in _of(task, condition)]
            mean = math.fsum(counts) / len(counts)
            yield Finding(
                "Appendix C",
                f"late errors of Table 9, {task}, {condition.lower()}",
                number(printed, 1),
                f"mean of {', '.join(map(str, counts))}: {number(mean)}",
                prints(mean, printed, digits=1),
            )


def _recurring() -> Iterator[Finding]:
    for task in (_SIIM, _CELLS):
        printed = PAPER.table_7.get(task, (0.0, 0.0))
        for condition, share in zip(("Baseline", "Memory"), printed, strict=True):
            runs = _of(task, condition)
            by_class, by_message = (
                sum(recurs(run, with_message=full) for run in runs) for full in (False, True)
            )
            yield Finding(
                "Appendix C",
                f"recurrence of Table 7, {task}, {condition.lower()}",
                number(share) if task in PAPER.table_7 else f"{number(share)} (not listed)",
                f"by the class of the exception {by_class} of {len(runs)} runs, by class and"
                f" message {by_message}",
                prints(by_class / len(runs), share),
            )


def _first_errors() -> Iterator[Finding]:
    failing = [run for run in RUNS if run.errors]
    same = [run for run in failing if run.errors[0] == _MARKDOWN]
    remembering = [run for run in same if run.condition == "Memory"]
    of = [run for run in failing if run.condition == "Memory"]
    yield Finding(
        "Appendix C",
        "runs that begin with NameError: 'parse_markdown'",
        "",
        f"{len(same)} of the {len(failing)} runs that have errors, among them {len(remembering)} of"
        f" {len(of)} with memory",
        holds=None,
    )


def _lengths() -> Iterator[Finding]:
    for task in (_SIIM, _CELLS):
        told = []
        for condition in ("Baseline", "Memory"):
            runs = _of(task, condition)
            late = sum(max(0, run.steps - EARLY) for run in runs)
            errors = sum(run.late for run in runs)
            steps = ", ".join(str(run.steps) for run in runs)
            told.append(f"{errors} in {late} late steps ({condition.lower()}: {steps} in all)")
        yield Finding(
            "Appendix C", f"late errors beside late steps, {task}", "", "; ".join(told), holds=None
        )
