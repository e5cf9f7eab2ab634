"""Did memory help? Each condition against no memory, and what no difference looks like.

The confirmatory family is declared by the plan: one contrast per memory condition, pooled
over all sequences and both tasks, corrected by Holm. Controls and the re-run of the baseline
stand beside it and are not part of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from langgraft.benchmarks.continual.cells import (
    BASELINE,
    RERUN,
    UNTRAINED,
    Cell,
    CellKey,
    Scores,
    StudyLog,
    difference_of,
    mean_of,
    pooled,
)
from langgraft.benchmarks.continual.metrics import Metric
from langgraft.benchmarks.harness.statistics import Estimate, holm, minimum_detectable_effect

SIGNIFICANCE = 0.05

Verdict: TypeAlias = Literal["helped", "hurt", "no detectable difference", "incomplete"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One condition against no memory."""

    condition: str
    accuracies: tuple[tuple[str, Metric], ...]
    """Accuracy on each task, over all sequences in which it is tested."""
    difference: Metric
    """Pooled over tasks and sequences; paired by item and replicate."""
    p_adjusted: float | None
    """By Holm; `None` outside the family."""
    detectable: float | None
    """True difference that would have been found with a probability of 80 %."""
    verdict: Verdict

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
        """Whether the re-run's own interval holds zero; `None` without a re-run."""
        if self.rerun is None or self.rerun.estimate is None:
            return None
        return self.rerun.estimate.low <= 0 <= self.rerun.estimate.high

    def holds(self, control: Contrast) -> bool | None:
        """Return whether a control's difference is within the band; `None` if unknown."""
        if self.band is None or control.estimate is None:
            return None
        return abs(control.estimate.value) <= self.band


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
        metric = _metric(estimate, [*ours, *theirs])
        found.append(ContentContrast(condition, control, metric))
    return tuple(found)


def _contrast(study: StudyLog, condition: str) -> Contrast:
    cells, base = study.final_cells(condition), study.final_cells(BASELINE)
    trained = condition not in UNTRAINED
    replicates = {run.replicate for cell in cells for run in cell.runs}
    used = [run for cell in base for run in cell.runs if run.replicate in replicates]
    estimate = difference_of(pooled(cells), pooled(base), trained=trained)
    own = _metric(estimate, cells)
    paired = Metric(
        own.estimate,
        own.done + sum(run.done for run in used),
        own.planned + sum(run.planned for run in used),
        own.n_items,
    )
    return Contrast(
        condition=condition,
        accuracies=tuple((task, _accuracy(cells, task)) for task in _tasks(cells)),
        difference=paired,
        p_adjusted=None,
        detectable=None if estimate is None else minimum_detectable_effect(estimate),
        verdict="incomplete",
    )


def baseline_accuracies(study: StudyLog) -> tuple[tuple[str, Metric], ...]:
    """Return the accuracy without memory on each task, over all baseline runs."""
    cells = study.final_cells(BASELINE)
    return tuple((task, _accuracy(cells, task)) for task in _tasks(cells))


def _tasks(cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(sorted({cell.key.task for cell in cells}))


def _accuracy(cells: Sequence[Cell], task: str) -> Metric:
    chosen = [cell for cell in cells if cell.key.task == task]
    trained = not UNTRAINED.intersection(cell.key.condition for cell in chosen)
    scores: Scores = pooled(chosen)
    return _metric(mean_of(scores, trained=trained), chosen)


def _metric(estimate: Estimate | None, cells: Sequence[Cell]) -> Metric:
    items = {item for cell in cells for run in cell.runs for item in run.spec.item_ids}
    return Metric(
        estimate=estimate,
        done=sum(cell.done for cell in cells),
        planned=sum(cell.planned for cell in cells),
        n_items=len(items),
    )


def _judged(contrast: Contrast, p_adjusted: float | None) -> Contrast:
    estimate = contrast.estimate
    verdict: Verdict = "no detectable difference"
    if estimate is None or not contrast.difference.complete:
        verdict, p_adjusted = "incomplete", None
    elif (estimate.p if p_adjusted is None else p_adjusted) < SIGNIFICANCE:
        verdict = "helped" if estimate.value > 0 else "hurt"
    return Contrast(
        contrast.condition,
        contrast.accuracies,
        contrast.difference,
        p_adjusted,
        contrast.detectable,
        verdict,
    )
