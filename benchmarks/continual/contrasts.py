"""Did memory help? Each condition against no memory, and what no difference looks like.

The confirmatory family is declared by the plan: one contrast per memory condition, pooled
over all sequences and both tasks, corrected by Holm. What it is compared with is the mean of *all*
runs without memory, those of the re-run included. Controls and the re-run stand beside the family:
of them equivalence is asked.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from langgraft.benchmarks.continual.cells import (
    RERUN,
    UNTRAINED,
    Cell,
    CellKey,
    Scores,
    StudyLog,
    differences_of,
    in_common,
    matrices,
    mean_of,
    pooled,
)
from langgraft.benchmarks.continual.metrics import Metric, metric_of
from langgraft.benchmarks.harness.statistics import (
    FEWEST_RUNS,
    SIGNIFICANCE,
    Estimate,
    Matrix,
    OrderEffects,
    detectable_difference,
    holm,
    mean_estimate,
    order_effects,
)
from langgraft.benchmarks.harness.study import MARGIN

TEACHING = frozenset({"random-own"})
"""Controls that recall what may well help: random or not, it is of the task at hand. They tell
where a difference comes from; there is nothing that they would have to be equivalent to."""

Verdict: TypeAlias = Literal[
    "helped", "hurt", "no detectable difference", "unclear", "too few runs", "incomplete"
]
"""`unclear`: it would be another one without one of the runs without memory; `too few runs`: fewer
than `FEWEST_RUNS`, which say next to nothing of how training orders differ."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One condition against no memory."""

    condition: str
    accuracies: tuple[tuple[str, Metric], ...]
    """Accuracy on each task, over all sequences in which it is tested."""
    success: Metric
    """Success rate pooled over tasks and sequences, on what the difference rests on."""
    baseline: Metric
    """That of all runs without memory on the same items; of the re-run, that of the baseline."""
    difference: Metric
    """`success` minus `baseline`; paired by item."""
    p_adjusted: float | None
    """By Holm; `None` outside the family."""
    detectable: float | None
    """True difference that would have been found with a probability of 80 % at the first step of
    Holm's procedure; infinite where none would have been."""
    verdict: Verdict
    verdict_of_others: Verdict | None = None
    """What the verdict would be with the order effects of the other memories alone; `None` with
    fewer than three memories. Another verdict puts in doubt that training orders act alike."""
    order_sd: float | None = None
    """Standard deviation of its own order effects; `None` with fewer than two runs."""

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
    """How nearly nothing has to be nothing: equivalence of the re-run and of inert controls."""

    rerun: Contrast | None
    """The baseline once more with other samples, against the baseline (the A/A comparison)."""
    margin: float = MARGIN
    """Differences within plus or minus this count as none; the plan's `margin`."""

    @property
    def quiet(self) -> bool | None:
        """Whether the re-run is equivalent to the baseline; `None` if that cannot be told."""
        return None if self.rerun is None else self.holds(self.rerun)

    def holds(self, control: Contrast) -> bool | None:
        """Return whether a control is equivalent to no memory; `None` if that cannot be told.

        It is where two one-sided tests place the difference inside the margin (each at 5 %), and is
        not where its interval excludes 0. That an interval holds 0 shows nothing by itself.
        """
        estimate = control.estimate
        if estimate is None or control.verdict == "incomplete":
            return None
        if estimate.p_beyond(self.margin) < SIGNIFICANCE:
            return True
        return False if estimate.low > 0 or estimate.high < 0 else None


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
    sides = [_Side(study, name) for name in study.memories]
    estimates = _estimates(sides)
    verdicts = _verdicts(sides, estimates)
    adjusted = _adjusted(sides, estimates)
    runs = list(_without_memory(study))
    others = [
        _verdicts(left, _estimates(left))
        for run in (runs if len(runs) > 1 else [])
        for left in [[_Side(study, name, run) for name in study.memories]]
    ]
    found = []
    for place, (side, estimate) in enumerate(zip(sides, estimates, strict=True)):
        sure = all(each[place] == verdicts[place] for each in others)
        own = None if side.values is None else order_effects([side.values])
        contrast = replace(
            side.contrast(estimate, len(sides)),
            p_adjusted=adjusted[place] if side.complete else None,
            verdict=verdicts[place] if sure else "unclear",
            order_sd=None if own is None else math.sqrt(own.variance),
        )
        values = [each.values for each in sides if each is not side and each.values is not None]
        if own is not None and len(values) > 1:
            alone = [*estimates]
            alone[place] = side.estimate(order_effects(values))
            contrast = replace(contrast, verdict_of_others=_verdicts(sides, alone)[place])
        found.append(contrast)
    return tuple(found)


def _estimates(sides: Sequence["_Side"]) -> list[Estimate | None]:
    """Estimate differences as one family: what orders do is pooled over those with training."""
    orders = order_effects(
        side.values for side in sides if side.trained and side.values is not None
    )
    return [side.estimate(orders) for side in sides]


def _adjusted(sides: Sequence["_Side"], estimates: Sequence[Estimate | None]) -> tuple[float, ...]:
    pairs = zip(sides, estimates, strict=True)
    return holm([found.p if found and side.complete else 1.0 for side, found in pairs])


def _verdicts(sides: Sequence["_Side"], estimates: Sequence[Estimate | None]) -> list[Verdict]:
    """Judge contrasts as one family, by their corrected p values."""
    adjusted = _adjusted(sides, estimates)
    return [
        side.verdict(found, p) for side, found, p in zip(sides, estimates, adjusted, strict=True)
    ]


def beside(study: StudyLog, conditions: Iterable[str]) -> tuple[Contrast, ...]:
    """Return contrasts outside the family: controls and the re-run."""
    sides = [_Side(study, condition) for condition in conditions]
    return tuple(
        replace(
            side.contrast(estimate, 1),
            verdict=side.verdict(estimate, 1.0 if estimate is None else estimate.p),
        )
        for side, estimate in zip(sides, _estimates(sides), strict=True)
    )


def noise(study: StudyLog, margin: float = MARGIN) -> Noise:
    """Compare the baseline with its re-run."""
    found = beside(study, [RERUN] if RERUN in study.conditions else [])
    return Noise(found[0] if found else None, margin)


def content_contrasts(study: StudyLog) -> tuple[ContentContrast, ...]:
    """Compare each controlled condition with its controls, on the cells both have."""
    sides = []
    for control in study.controls:
        condition = control.partition("+")[0]
        theirs = study.final_cells(control)
        keys = [CellKey(condition, cell.key.sequence, cell.key.task) for cell in theirs]
        ours = [study.cells[key] for key in keys if key in study.cells]
        sides.append((condition, control, ours, theirs))
    found = differences_of((pooled(ours), pooled(theirs)) for _, _, ours, theirs in sides)
    return tuple(
        ContentContrast(condition, control, metric_of(estimate, [*ours, *theirs]))
        for (condition, control, ours, theirs), estimate in zip(sides, found, strict=True)
    )


def _without_memory(study: StudyLog) -> Mapping[tuple[str, int], Mapping[str, float]]:
    """Return the outcomes of every run without memory: of the baseline and of its re-run."""
    return {
        (name, replicate): outcomes
        for name in sorted(UNTRAINED)
        for replicate, outcomes in pooled(study.final_cells(name)).items()
        if outcomes
    }


class _Side:
    """A condition beside no memory: its outcomes less the mean of all runs without memory.

    Args:
        study: The log.
        condition: Its name; the re-run is compared with the baseline alone.
        left_out: A run without memory that does not count.
    """

    def __init__(
        self, study: StudyLog, condition: str, left_out: tuple[str, int] | None = None
    ) -> None:
        self.condition, self.trained = condition, condition not in UNTRAINED
        self._study, self._cells = study, study.final_cells(condition)
        self._base = [
            cell for name in sorted(UNTRAINED - {condition}) for cell in study.final_cells(name)
        ]
        runs = [
            outcomes
            for run, outcomes in _without_memory(study).items()
            if run != left_out and run[0] != condition
        ]
        untreated = dict(enumerate(runs))
        shared = frozenset.intersection(*map(frozenset, runs)) if runs else frozenset()
        self._treated = in_common([pooled(self._cells)], shared)[0]
        tested = frozenset(next(iter(self._treated.values()), {}))
        found = matrices([self._treated]), matrices([untreated], tested)
        self._untreated: Scores = in_common([untreated], tested)[0]
        self.values: Matrix | None = None
        if found[0] is not None and found[1] is not None:
            self.values = found[0][0] - found[1][0].mean(axis=1, keepdims=True)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing, on either side."""
        cells = [*self._cells, *self._base]
        return all(cell.done == cell.planned for cell in cells)

    def estimate(self, orders: OrderEffects | None) -> Estimate | None:
        """Estimate the difference with these order effects."""
        if self.values is None:
            return None
        return mean_estimate(
            self.values, bounds=(-1.0, 1.0), shared_effects=self.trained, orders=orders
        )

    def verdict(self, estimate: Estimate | None, p: float) -> Verdict:
        """Return the verdict by this p value."""
        if estimate is None or not self.complete:
            return "incomplete"
        if estimate.n_replicates < FEWEST_RUNS:
            return "too few runs"
        if p >= SIGNIFICANCE:
            return "no detectable difference"
        return "helped" if estimate.value > 0 else "hurt"

    def contrast(self, estimate: Estimate | None, size: int) -> Contrast:
        """Return the contrast, in a family of `size`; not judged yet."""
        orders = None if estimate is None else estimate.orders
        success = metric_of(
            mean_of(self._treated, trained=self.trained, orders=orders), self._cells
        )
        baseline = metric_of(mean_of(self._untreated, trained=False), self._base)
        detectable = None
        if estimate is not None:
            assert success.estimate is not None
            assert baseline.estimate is not None
            rates = baseline.estimate.value, success.estimate.value
            detectable = detectable_difference(estimate, contrasts=size, rates=rates)
        difference = Metric(
            estimate,
            success.done + baseline.done,
            success.planned + baseline.planned,
            success.n_items,
        )
        accuracies = (
            (task, _accuracy(self._study, self._cells, task)) for task in _tasks(self._cells)
        )
        return Contrast(
            self.condition,
            tuple(accuracies),
            success,
            baseline,
            difference,
            p_adjusted=None,
            detectable=detectable,
            verdict="incomplete",
        )


def baseline_accuracies(study: StudyLog) -> tuple[tuple[str, Metric], ...]:
    """Return the accuracy on each task over all runs without memory.

    The mean of its tasks is what a condition's difference is taken from.
    """
    cells = [cell for name in sorted(UNTRAINED) for cell in study.final_cells(name)]
    return tuple((task, _untrained(cells, task)) for task in _tasks(cells))


def _untrained(cells: Sequence[Cell], task: str) -> Metric:
    chosen = [cell for cell in cells if cell.key.task == task]
    runs = [outcomes for cell in chosen for outcomes in cell.scores.values() if outcomes]
    return metric_of(mean_of(dict(enumerate(runs)), trained=False) if runs else None, chosen)


def _tasks(cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(sorted({cell.key.task for cell in cells}))


def _accuracy(study: StudyLog, cells: Sequence[Cell], task: str) -> Metric:
    chosen = [cell for cell in cells if cell.key.task == task]
    trained = not UNTRAINED.intersection(cell.key.condition for cell in chosen)
    found = mean_of(pooled(chosen), trained=trained, orders=study.accuracy_orders)
    return metric_of(found, chosen)
