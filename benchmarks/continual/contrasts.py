"""Did memory help? Each condition against no memory, and what no difference looks like.

The confirmatory family is declared by the plan: one contrast per memory condition, pooled
over all sequences and both tasks, corrected by Holm. Controls and the re-run of the baseline
stand beside it and are not part of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from langgraft.benchmarks.continual.cells import (
    BASELINE,
    RERUN,
    UNTRAINED,
    Cell,
    CellKey,
    RunResults,
    Scores,
    StudyLog,
    difference_of,
    in_common,
    mean_of,
    pooled,
)
from langgraft.benchmarks.continual.metrics import Metric, metric_of
from langgraft.benchmarks.harness.statistics import Estimate, holm, minimum_detectable_effect

SIGNIFICANCE = 0.05

WIDEST = 0.20
"""Half-width beyond which an interval around zero says nothing about a control.

An interval of ±20 percentage points also holds differences as large as a good memory makes:
that none was found would then be absence of evidence. With it, of inert controls in 60
synthetic studies of the demo's size 92 % come out within the noise, 3 % outside and 5 % cannot
be told; of controls worth 15 points 2 % come out within.
"""

TEACHING = frozenset({"random-own"})
"""Controls that recall what may well help: random or not, it is of the task at hand. They tell
where a difference comes from; there is no noise that they would have to stay within."""

Verdict: TypeAlias = Literal["helped", "hurt", "no detectable difference", "incomplete"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One condition against no memory."""

    condition: str
    accuracies: tuple[tuple[str, Metric], ...]
    """Accuracy on each task, over all sequences in which it is tested."""
    success: Metric
    """Success rate pooled over tasks and sequences, on what the difference rests on."""
    baseline: Metric
    """That of the baseline on the same items and replicates: not on all baseline runs."""
    difference: Metric
    """`success` minus `baseline`; paired by item and replicate."""
    p_adjusted: float | None
    """By Holm; `None` outside the family."""
    detectable: float | None
    """True difference that would have been found with a probability of 80 %; infinite where
    none would have been."""
    verdict: Verdict

    @property
    def inert(self) -> bool:
        """Whether nothing it recalls should make a difference, if it is a control."""
        return self.condition.partition("+")[2] not in TEACHING

    @property
    def estimate(self) -> Estimate | None:
        """The pooled difference."""
        return self.difference.estimate


@dataclass(frozen=True, slots=True)
class Noise:
    """How far from zero a difference gets when nothing differs (the A/A comparison)."""

    rerun: Contrast | None
    """The baseline once more with other samples, against the baseline."""

    @property
    def band(self) -> float | None:
        """Half-width of the interval of the re-run's difference."""
        if self.rerun is None or self.rerun.estimate is None:
            return None
        return self.rerun.estimate.half_width

    @property
    def quiet(self) -> bool | None:
        """Whether the re-run's own interval holds zero; `None` if that cannot be told.

        It cannot without a re-run, and zero in an interval too wide to show anything is none.
        """
        if self.rerun is None or self.rerun.estimate is None:
            return None
        if not self.rerun.estimate.low <= 0 <= self.rerun.estimate.high:
            return False
        return True if self.sharp else None

    @property
    def sharp(self) -> bool:
        """Whether the re-run says how large chance is: its interval is no wider than it may be."""
        return self.band is not None and self.band <= WIDEST

    def holds(self, control: Contrast) -> bool | None:
        """Return whether a control stays within the noise; `None` if that cannot be told.

        Two questions have to be answered alike: does the control's own interval hold zero (no
        detectable difference), and is its difference within the band (no more than a re-run
        does)? Yes to both counts only where both intervals are narrow enough to have shown
        something, `WIDEST`; no to both is outside; anything else cannot be told.
        """
        estimate = control.estimate
        if self.band is None or estimate is None:
            return None
        answers = {estimate.low <= 0 <= estimate.high, abs(estimate.value) <= self.band}
        if answers == {False}:
            return False
        narrow = self.sharp and estimate.half_width <= WIDEST
        return True if answers == {True} and narrow else None


@dataclass(frozen=True, slots=True)
class ContentContrast:
    """A condition against its control: what the recalled words themselves are worth."""

    condition: str
    control: str
    difference: Metric


def family(study: StudyLog) -> tuple[Contrast, ...]:
    """Return the confirmatory contrasts, corrected as one family.

    A condition with missing results counts in the size of the family and is not tested.
    """
    bare = [_contrast(study, condition) for condition in study.memories]
    p_values = [c.estimate.p if c.estimate and c.difference.complete else 1.0 for c in bare]
    return tuple(_judged(c, p) for c, p in zip(bare, holm(p_values), strict=True))


def beside(study: StudyLog, conditions: Iterable[str]) -> tuple[Contrast, ...]:
    """Return contrasts outside the family: controls and the re-run."""
    return tuple(_judged(_contrast(study, condition), None) for condition in conditions)


def noise(study: StudyLog) -> Noise:
    """Measure what a re-run of the baseline looks like."""
    found = beside(study, [RERUN] if RERUN in study.conditions else [])
    return Noise(found[0] if found else None)


def content_contrasts(study: StudyLog) -> tuple[ContentContrast, ...]:
    """Compare each controlled condition with its controls, on the cells both have."""
    found = []
    for control in study.controls:
        condition = control.partition("+")[0]
        theirs = study.final_cells(control)
        keys = [CellKey(condition, cell.key.sequence, cell.key.task) for cell in theirs]
        ours = [study.cells[key] for key in keys if key in study.cells]
        estimate = difference_of(pooled(ours), pooled(theirs))
        metric = metric_of(estimate, [*ours, *theirs])
        found.append(ContentContrast(condition, control, metric))
    return tuple(found)


def _contrast(study: StudyLog, condition: str) -> Contrast:
    cells, base = study.final_cells(condition), study.final_cells(BASELINE)
    trained = condition not in UNTRAINED
    replicates = {run.replicate for cell in cells for run in cell.runs}
    paired = [replace(cell, runs=_of(cell, replicates)) for cell in base]
    treated, untreated = in_common([pooled(cells), pooled(paired)])
    success = metric_of(mean_of(treated, trained=trained), cells)
    baseline = metric_of(mean_of(untreated, trained=False), paired)
    estimate = difference_of(treated, untreated, trained=trained)
    return Contrast(
        condition=condition,
        accuracies=tuple((task, _accuracy(cells, task)) for task in _tasks(cells)),
        success=success,
        baseline=baseline,
        difference=Metric(
            estimate,
            success.done + baseline.done,
            success.planned + baseline.planned,
            success.n_items,
        ),
        p_adjusted=None,
        detectable=None if estimate is None else minimum_detectable_effect(estimate),
        verdict="incomplete",
    )


def _of(cell: Cell, replicates: set[int]) -> tuple[RunResults, ...]:
    return tuple(run for run in cell.runs if run.replicate in replicates)


def baseline_accuracies(study: StudyLog) -> tuple[tuple[str, Metric], ...]:
    """Return the accuracy without memory on each task, over all baseline runs."""
    cells = study.final_cells(BASELINE)
    return tuple((task, _accuracy(cells, task)) for task in _tasks(cells))


def paired_accuracies(study: StudyLog) -> tuple[tuple[str, Metric], ...]:
    """Return the accuracy on each task of the baseline runs that conditions are paired with.

    The mean of its tasks is what a condition's difference is taken from; empty where every
    baseline run is paired.
    """
    others = [cell for c in study.conditions if c != BASELINE for cell in study.final_cells(c)]
    replicates = {run.replicate for cell in others for run in cell.runs}
    base = study.final_cells(BASELINE)
    paired = [replace(cell, runs=_of(cell, replicates)) for cell in base]
    if all(
        len(cell.runs) in {0, len(whole.runs)} for cell, whole in zip(paired, base, strict=True)
    ):
        return ()
    return tuple((task, _accuracy(paired, task)) for task in _tasks(paired))


def _tasks(cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(sorted({cell.key.task for cell in cells}))


def _accuracy(cells: Sequence[Cell], task: str) -> Metric:
    chosen = [cell for cell in cells if cell.key.task == task]
    trained = not UNTRAINED.intersection(cell.key.condition for cell in chosen)
    scores: Scores = pooled(chosen)
    return metric_of(mean_of(scores, trained=trained), chosen)


def _judged(contrast: Contrast, p_adjusted: float | None) -> Contrast:
    estimate = contrast.estimate
    verdict: Verdict = "no detectable difference"
    if estimate is None or not contrast.difference.complete:
        verdict, p_adjusted = "incomplete", None
    elif (estimate.p if p_adjusted is None else p_adjusted) < SIGNIFICANCE:
        verdict = "helped" if estimate.value > 0 else "hurt"
    return replace(contrast, p_adjusted=p_adjusted, verdict=verdict)
