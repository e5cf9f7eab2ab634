"""Did memory help? Each condition against no memory, and what no difference looks like.

The confirmatory family is declared by the plan: one contrast per memory condition, pooled
over all sequences and all tasks. Controls and the re-run stand beside it. What a plan of its size
will be able to see is said before anything is paid.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from langgraft._core.errors import MissingExtraError
from langgraft.benchmarks.comparison.contrasts import (
    Comparison,
    Difference,
    compare_outcomes,
    difference_of,
)
from langgraft.benchmarks.comparison.outcomes import (
    Metric,
    Outcomes,
    averaged,
    differences_of,
    joined,
    mean_of,
)
from langgraft.benchmarks.comparison.power import planned_difference
from langgraft.benchmarks.comparison.verdicts import (
    FEWEST_RUNS,
    MARGIN,
    Hypothesis,
    HypothesisSide,
    matches,
    sides_of,
)
from langgraft.benchmarks.continual.cells import (
    BASELINE,
    RERUN,
    UNTRAINED,
    Cell,
    CellKey,
    StudyLog,
    cell_key,
    pooled,
)
from langgraft.benchmarks.continual.metrics import metric_of, outcomes_of
from langgraft.benchmarks.continual.plan import PAIR, ContinualPlan, tested_cell
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.reporting.words import detectable, sample_of, several

TEACHING = frozenset({"random-own"})
"""Controls that recall what may well help: random or not, it is of the task at hand. They tell
where a difference comes from; there is nothing that they would have to be equivalent to."""


@dataclass(frozen=True, slots=True)
class ContentContrast:
    """A condition against its control: what the recalled words themselves are worth."""

    condition: str
    control: str
    difference: Metric


def compare_with_no_memory(study: StudyLog, margin: float = MARGIN) -> Comparison:
    """Compare memories and controls with all runs without memory.

    Args:
        study: The log.
        margin: Difference up to which a control counts as equivalent to no memory.
    """
    rerun = RERUN if RERUN in study.conditions else None
    names = [name for name in study.conditions if name not in study.probes]
    return compare_outcomes(
        {name: outcomes_of(study.final_cells(name)) for name in names},
        baseline=BASELINE,
        controls=study.controls,
        rerun=rerun,
        margin=margin,
        active=[name for name in study.controls if name.partition("+")[2] in TEACHING],
    )


def hypothesis_difference(hypothesis: Hypothesis, studies: Mapping[str, StudyLog]) -> Difference:
    """Return what a registered hypothesis is judged by: the outcomes that `compare_with_no_memory` has.

    A baseline without memory is the mean of all runs without, those of the re-run included; another one
    trained in the same orders, and is paired run by run.

    Args:
        hypothesis: The hypothesis.
        studies: The log of each pair of task families; of a plan of one pair by an empty name.
    """
    ours, theirs = _parts(hypothesis.treated, studies), _parts(hypothesis.baseline, studies)
    treated, names = _conditions(ours), _conditions(theirs)
    if not names <= UNTRAINED:
        return difference_of(_outcomes(ours), [_outcomes(theirs)], paired=True)
    base = [_outcomes(theirs)]
    again = _parts({"condition": RERUN}, studies)
    if names == {BASELINE} and RERUN not in treated and _conditions(again):
        base.append(_outcomes(again))
    return difference_of(
        _outcomes(ours), base, paired=False, shared_effects=not treated <= UNTRAINED
    )


_Part: TypeAlias = Mapping[str, Sequence[Cell]]
"""The cells of a part of a side, by pair of task families."""


def _parts(sides: HypothesisSide, studies: Mapping[str, StudyLog]) -> list[_Part]:
    return [
        {
            pair: [cell for cell in study.cells.values() if _is_of(part, pair, cell)]
            for pair, study in studies.items()
        }
        for part in sides_of(sides)
    ]


def _is_of(part: Mapping[str, tuple[str, ...]], pair: str, cell: Cell) -> bool:
    levels = tested_cell(cell.runs[0].spec.factors)
    return levels is not None and matches(part, {PAIR: pair, **levels})


def _conditions(parts: Sequence[_Part]) -> set[str]:
    return {cell.key.condition for part in parts for cells in part.values() for cell in cells}


def _outcomes(parts: Sequence[_Part]) -> Outcomes:
    return averaged(
        [
            joined({pair: outcomes_of(cells) for pair, cells in part.items() if cells})
            for part in parts
        ]
    )


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


def accuracies(study: StudyLog, condition: str) -> tuple[tuple[str, Metric], ...]:
    """Return the accuracy of a condition on each task, over all sequences in which it is tested."""
    cells = study.final_cells(condition)
    return tuple((task, _accuracy(study, cells, task)) for task in _tasks(cells))


def baseline_accuracies(study: StudyLog) -> tuple[tuple[str, Metric], ...]:
    """Return the accuracy on each task over all runs without memory.

    The mean of its tasks is what a condition's difference is taken from.
    """
    cells = [cell for name in sorted(UNTRAINED) for cell in study.final_cells(name)]
    return tuple((task, _untrained(cells, task)) for task in _tasks(cells))


def _untrained(cells: Sequence[Cell], task: str) -> Metric:
    chosen = [cell for cell in cells if cell.key.task == task]
    runs = [outcomes for cell in chosen for outcomes in cell.scores.values() if outcomes]
    return metric_of(mean_of(dict(enumerate(runs)), shared_effects=False) if runs else None, chosen)


def _tasks(cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(sorted({cell.key.task for cell in cells}))


def _accuracy(study: StudyLog, cells: Sequence[Cell], task: str) -> Metric:
    chosen = [cell for cell in cells if cell.key.task == task]
    trained = not UNTRAINED.intersection(cell.key.condition for cell in chosen)
    found = mean_of(pooled(chosen), shared_effects=trained, orders=study.accuracy_orders)
    return metric_of(found, chosen)


def fewer_tasks(plan: ContinualPlan, runs: Sequence[RunSpec]) -> tuple[str, ...]:
    """Say which task families have fewer tasks than the plan asks for: runs hold those there are."""
    most: dict[tuple[str, str], int] = {}
    for run in runs:
        split = "training" if run.factors["kind"] == "train" else "test"
        key = (str(run.factors["domain"]), split)
        most[key] = max(most.get(key, 0), run.length)
    asked = {"training": plan.train_items, "test": plan.test_items}
    return tuple(
        f"{domain} has {count} {split} tasks, where the plan asks for {asked[split]}"
        for (domain, split), count in sorted(most.items())
        if count < asked[split]
    )


def detectable_line(runs: Sequence[RunSpec]) -> str:
    """Say which difference of a memory against none would be found four times in five.

    It is a plan's figure: the noise of an item is the one the papers' tables imply (evaluation
    §2.3), and that orders of training shift success by 5 points is an assumption. The report says
    what the study could detect in the end.
    """
    tests = [run for run in runs if run.factors["kind"] != "train"]
    learned = [run for run in tests if cell_key(run).condition not in UNTRAINED]
    trained = {str(run.factors["condition"]) for run in runs if run.factors["kind"] == "train"}
    memories = trained - UNTRAINED
    items = {item for run in learned for item in run.item_ids}
    replicates = {run.factors["replicate"] for run in learned}
    untrained = {
        (key.condition, run.factors["replicate"])
        for run in tests
        if (key := cell_key(run)).condition in UNTRAINED
    }
    name = "detectable difference at 80 % power"
    sizes = sample_of(len(items), len(replicates), "test item")
    if len(replicates) < FEWEST_RUNS:
        return f"{name}: none, no verdict below {FEWEST_RUNS} runs ({sizes})"
    try:
        effect = planned_difference(
            len(items),
            len(replicates),
            baseline_runs=len(untrained),
            contrasts=len(memories),
        )
    except MissingExtraError as error:
        return f"{name}: {error}"
    reach = f"about {detectable(effect)}" if effect <= 1 else "none, the plan is too small"
    compared = several(len(memories), "memory", "memories")
    return f"{name}: {reach} ({sizes}, {compared} compared, an order effect of 5 pp assumed)"
