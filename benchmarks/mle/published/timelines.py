"""Appendix C: the error timelines that are printed, and what they say of Tables 7 and 9."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.mle.behaviour.errors import EARLY
from langgraft.benchmarks.mle.published.forms import Finding, prints
from langgraft.benchmarks.mle.published.printed import LATE, RECURRENCE
from langgraft.benchmarks.mle.wording import number

_SIIM: Final = "siim-isic-melanoma-classification"
_CELLS: Final = "histopathologic-cancer-detection"


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is printed of a run."""

    task: str
    condition: str
    run: int
    steps: int
    late: int
    """Its printed `late_err`."""
    errors: tuple[tuple[int, str, str], ...]
    """Step, class and what the message names, of each error that is listed."""
    more: int = 0
    """Errors that are said to be there, and are not listed."""

    @property
    def name(self) -> str:
        """Task, condition and number."""
        return f"{self.task}, {self.condition.lower()} run {self.run}"

    @property
    def late_listed(self) -> int:
        """Listed errors from step 10 on."""
        return sum(step >= EARLY for step, _, _ in self.errors)

    def recurs(self, *, with_message: bool) -> bool:
        """Say whether an error type is met both early and late."""
        kinds: tuple[set[tuple[str, str]], ...] = (set(), set())
        for step, kind, about in self.errors:
            kinds[step >= EARLY].add((kind, about if with_message else ""))
        return bool(kinds[0] & kinds[1])


_SHARE: Final = 32
"""Percent of the steps of a run that a loop of KeyErrors is said to take."""

_MARKDOWN: Final = (0, "NameError", "parse_markdown")
_CONDA: Final = (0, "PackageNotFoundError", "")

TIMELINES: Final = (
    Timeline(
        *(_SIIM, "Baseline", 1, 35, 2),
        (
            _CONDA,
            (18, "ModuleNotFoundError", "sklearn"),
            (21, "NameError", "train_data_encoded"),
        ),
    ),
    Timeline(
        *(_SIIM, "Baseline", 2, 263, 84),
        (_MARKDOWN, *((step, "KeyError", "sex") for step in (13, 15, 18))),
        more=245,
    ),
    Timeline(
        *(_SIIM, "Baseline", 3, 22, 5),
        (
            _MARKDOWN,
            *((step, "ModuleNotFoundError", "tensorflow") for step in (13, 16, 18, 20)),
            (21, "UnicodeDecodeError", ""),
        ),
    ),
    Timeline(_SIIM, "Memory", 1, 14, 0, (_MARKDOWN,)),
    Timeline(_SIIM, "Memory", 2, 500, 0, ()),
    Timeline(
        *(_SIIM, "Memory", 3, 25, 1),
        (
            _MARKDOWN,
            (9, "ModuleNotFoundError", "sklearn"),
            (12, "TypeError", "OneHotEncoder.__init__()"),
        ),
    ),
    Timeline(_CELLS, "Baseline", 1, 346, 0, (_CONDA,)),
    Timeline(
        *(_CELLS, "Baseline", 2, 23, 3),
        (
            _MARKDOWN,
            (4, "ImportError", "pandas or numpy"),
            (6, "ImportError", "PIL"),
            (12, "ModuleNotFoundError", "sklearn"),
            (18, "ModuleNotFoundError", "tensorflow"),
            (22, "UnicodeDecodeError", ""),
        ),
    ),
    Timeline(
        *(_CELLS, "Baseline", 3, 22, 2),
        (
            _CONDA,
            (9, "ModuleNotFoundError", "sklearn"),
            (15, "ModuleNotFoundError", "tensorflow"),
            (21, "UnicodeDecodeError", ""),
        ),
    ),
    Timeline(_CELLS, "Memory", 1, 500, 0, ()),
    Timeline(_CELLS, "Memory", 2, 5, 0, (_MARKDOWN, (4, "UnicodeDecodeError", ""))),
    Timeline(_CELLS, "Memory", 3, 11, 1, (_MARKDOWN, (10, "UnicodeDecodeError", ""))),
)
"""All twelve runs that are printed."""


def appendix_c() -> Iterator[Finding]:
    """Yield what comes of the printed timelines."""
    yield from map(_counted, TIMELINES)
    yield from _more()
    yield from _means()
    yield from _recurring()
    yield from _first_errors()
    yield from _lengths()


def _counted(run: Timeline) -> Finding:
    what, printed = f"late errors, {run.name}", str(run.late)
    found = f"{run.late_listed} listed from step {EARLY} on"
    if run.more:
        return Finding("Appendix C", what, printed, f"{found}, then the list breaks off", None)
    return Finding("Appendix C", what, printed, found, run.late_listed == run.late)


def _more() -> Iterator[Finding]:
    """Yield whether a run has room for the errors that are said to follow its list."""
    for run in TIMELINES:
        if run.more:
            steps = [step for step, kind, _ in run.errors if kind == "KeyError"]
            between = steps[-1] - steps[0] + 1 - len(steps)
            room = run.steps - steps[0] - between
            yield Finding(
                "Appendix C",
                f"KeyErrors, {run.name}",
                f"{len(steps)} and {run.more} more; {_SHARE} % of {run.steps} steps",
                f"{len(steps) + run.more} errors in at most {room} steps that can have one:"
                f" not one a step; {_SHARE} % are {round(_SHARE * run.steps / 100)} steps",
                len(steps) + run.more <= room,
            )


def _of(task: str, condition: str) -> list[Timeline]:
    return [run for run in TIMELINES if (run.task, run.condition) == (task, condition)]


def _means() -> Iterator[Finding]:
    for task in (_SIIM, _CELLS):
        for condition, printed in zip(("Baseline", "Memory"), LATE[task][:2], strict=True):
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
        printed = RECURRENCE.get(task, (0.0, 0.0))
        for condition, share in zip(("Baseline", "Memory"), printed, strict=True):
            runs = _of(task, condition)
            by_class, by_message = (
                sum(run.recurs(with_message=full) for run in runs) for full in (False, True)
            )
            yield Finding(
                "Appendix C",
                f"recurrence of Table 7, {task}, {condition.lower()}",
                number(share) if task in RECURRENCE else f"{number(share)} (not listed)",
                f"by the class of the exception {by_class} of {len(runs)} runs, by class and"
                f" message {by_message}",
                prints(by_class / len(runs), share),
            )


def _first_errors() -> Iterator[Finding]:
    failing = [run for run in TIMELINES if run.errors]
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
