"""The measures of continual learning (continual-memory §2.3, §A.1.2).

    FWT(X→Y) = Acc_Y(∅→X→Y) - Acc_Y(∅→Y)      what X did for the later task
    BWT(X→Y) = Acc_X(∅→X→Y) - Acc_X(∅→X)      what Y did to the earlier one
    RR, NL   = accuracy on the test items the agent solves, or fails, without memory
    ΔRR, ΔNL = the same difference on these subsets

FWT = (n_s / N)·ΔRR + (n_f / N)·ΔNL, and so BWT: the two weighted terms are in the units of the
transfer itself and can be stacked (Figure 3); ΔRR and ΔNL cannot.

Values are fractions; percentage points are made where numbers are shown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from langgraft.benchmarks.comparison.estimates import Estimate, OrderEffects
from langgraft.benchmarks.comparison.outcomes import (
    Metric,
    Outcomes,
    Scores,
    differences_of,
    matrices,
    mean_of,
)
from langgraft.benchmarks.continual.cells import (
    BASELINE,
    UNTRAINED,
    Cell,
    CellKey,
    StudyLog,
    pooled,
)
from langgraft.benchmarks.continual.plan import phases

SMALLEST_SUBSET = 10
"""Subsets with fewer items get no RR or NL (continual-memory Table 2)."""

IDENTITY_TOLERANCE = 1e-9

Direction: TypeAlias = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Partition:
    """The test items of a task, split by the no-memory baseline."""

    task: str
    solved: frozenset[str]
    """Items solved in more than half of the baseline runs."""
    failed: frozenset[str]
    runs: int
    """Baseline runs the partition rests on."""
    accuracy: Metric


@dataclass(frozen=True, slots=True)
class Transfer:
    """One row of the paper's Tables 3 to 6."""

    condition: str
    direction: Direction
    sequence: str
    task: str
    """The task tested: the later one forward, the earlier one backward."""
    before: Metric
    """Accuracy after the task alone; of one learned after others, when it had just been learned."""
    after: Metric
    """Accuracy after the whole sequence."""
    transfer: Metric
    """FWT or BWT."""
    delta_rr: Metric
    delta_nl: Metric
    identity_gap: float | None
    """`|FWT - (n_s·ΔRR + n_f·ΔNL) / N|`; `None` where nothing can be checked."""

    @property
    def start(self) -> str:
        """The sequence of `before`."""
        return self.task if self.direction == "forward" else learned(self.sequence, self.task)

    @property
    def identity_holds(self) -> bool:
        """Whether the subsets add up to the whole."""
        return self.identity_gap is not None and self.identity_gap <= IDENTITY_TOLERANCE


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Where a transfer comes from."""

    transfer: Transfer
    easy: Metric
    """`(n_s / N) · ΔRR`: what items solved without memory add."""
    hard: Metric
    """`(n_f / N) · ΔNL`: what items failed without memory add."""


@dataclass(frozen=True, slots=True)
class Retention:
    """RR and NL of one cell. Those of the re-run are what no memory at all gives."""

    key: CellKey
    accuracy: Metric
    rr: Metric
    nl: Metric


def partition(study: StudyLog, task: str) -> Partition:
    """Split the test items of a task by the majority of the baseline runs.

    A single baseline run would make RR and NL regress to the mean; see evaluation §2.2.
    """
    cell = study.cells[CellKey(BASELINE, "", task)]
    solved, failed = majority(cell.scores)
    return Partition(task, solved, failed, len(cell.runs), accuracy(cell))


def majority(scores: Scores) -> tuple[frozenset[str], frozenset[str]]:
    """Return the items solved in more than half of the runs, and the others."""
    outcomes: dict[str, list[float]] = {}
    for items in scores.values():
        for item, outcome in items.items():
            outcomes.setdefault(item, []).append(outcome)
    solved = {item for item, each in outcomes.items() if 2 * sum(each) > len(each)}
    return frozenset(solved), frozenset(outcomes.keys() - solved)


def outcomes_of(cells: Sequence[Cell]) -> Outcomes:
    """Return the outcomes of some cells as those of one condition: means of each item."""
    counts = metric_of(None, cells)
    return Outcomes(pooled(cells), counts.done, counts.planned, counts.n_items)


def metric_of(
    estimate: Estimate | None, cells: Iterable[Cell], n_items: int | None = None
) -> Metric:
    """Return an estimate with the episodes of the cells it rests on.

    Args:
        estimate: The estimate.
        cells: The cells.
        n_items: Test items it is about; `None` takes all of the cells.
    """
    known = list(cells)
    items = {item for cell in known for run in cell.runs for item in run.spec.item_ids}
    return Metric(
        estimate=estimate,
        done=sum(cell.done for cell in known),
        planned=sum(cell.planned for cell in known),
        n_items=len(items) if n_items is None else n_items,
    )


def accuracy(
    cell: Cell, items: frozenset[str] | None = None, orders: OrderEffects | None = None
) -> Metric:
    """Estimate the success rate of a cell, or of some of its items.

    `orders` is what training orders do to it, from `StudyLog.orders`; `None` takes what they do here.
    """
    trained = cell.key.condition not in UNTRAINED
    return metric_of(
        mean_of(cell.scores, items, shared_effects=trained, orders=orders),
        [cell],
        count(cell, items),
    )


def count(cell: Cell, items: frozenset[str] | None) -> int:
    """Return how many of `items` a cell tests; `None` counts all."""
    tested = {item for run in cell.runs for item in run.spec.item_ids}
    return len(tested if items is None else tested & items)


def unless_small(metric: Metric) -> Metric:
    """Take the estimate away from a metric of a subset under `SMALLEST_SUBSET` items."""
    if metric.n_items >= SMALLEST_SUBSET:
        return metric
    return Metric(None, metric.done, metric.planned, metric.n_items)


def transfers(study: StudyLog, partitions: Mapping[str, Partition]) -> tuple[Transfer, ...]:
    """Return forward and backward transfer of each condition tested after one task and after both.

    Those are the memories, then the controls whose transfer the plan asks for. What training orders
    do is pooled over all rows, for each of the three differences.
    """
    moves = list(_moves(study))
    splits = [partitions[after.key.task] for _, after, _ in moves]
    pairs = [(after.scores, before.scores) for _, after, before in moves]
    rows = zip(
        moves,
        splits,
        differences_of(pairs),
        differences_of(pairs, [split.solved for split in splits]),
        differences_of(pairs, [split.failed for split in splits]),
        strict=True,
    )
    orders = study.accuracy_orders
    return tuple(
        Transfer(
            condition=after.key.condition,
            direction=direction,
            sequence=after.key.sequence,
            task=after.key.task,
            before=accuracy(before, orders=orders),
            after=accuracy(after, orders=orders),
            transfer=metric_of(whole, [after, before], count(after, None)),
            delta_rr=unless_small(metric_of(rr, [after, before], count(after, split.solved))),
            delta_nl=unless_small(metric_of(nl, [after, before], count(after, split.failed))),
            identity_gap=identity_gap(before, after, split),
        )
        for (direction, after, before), split, whole, rr, nl in rows
    )


def _moves(study: StudyLog) -> Iterator[tuple[Direction, Cell, Cell]]:
    """List the cells after a sequence with those that they are held to.

    Of the last task that is the cell after it alone, of an earlier one that of when it was learned.
    """
    for sequence in study.sequences:
        *earlier, later = phases(sequence)
        tasks: list[tuple[Direction, str, str]] = [("forward", later, later)]
        tasks += [("backward", task, learned(sequence, task)) for task in earlier]
        for direction, task, start in tasks:
            for condition in (*study.memories, *study.controls):
                before = study.cells.get(CellKey(condition, start, task))
                after = study.cells.get(CellKey(condition, sequence, task))
                if before is not None and after is not None:
                    yield direction, after, before


def learned(sequence: str, task: str) -> str:
    """Return the beginning of a sequence that ends with a task: when that has just been learned."""
    tasks = phases(sequence)
    return ">".join(tasks[: tasks.index(task) + 1])


def decompositions(
    study: StudyLog, partitions: Mapping[str, Partition], transfers: tuple[Transfer, ...]
) -> tuple[Decomposition, ...]:
    """Decompose each transfer. Subsets too small for ΔRR or ΔNL have a share like any other."""
    splits = [partitions[row.task] for row in transfers]
    pairs = [
        (
            study.cells[CellKey(row.condition, row.sequence, row.task)].scores,
            study.cells[CellKey(row.condition, row.start, row.task)].scores,
        )
        for row in transfers
    ]
    subsets = [[each.solved for each in splits], [each.failed for each in splits]]
    shares = (
        [
            _share(row.transfer, part, items)
            for row, part, items in zip(
                transfers, differences_of(pairs, subset), subset, strict=True
            )
        ]
        for subset in subsets
    )
    return tuple(map(Decomposition, transfers, *shares))


def _share(transfer: Metric, part: Estimate | None, items: frozenset[str]) -> Metric:
    counts = (transfer.done, transfer.planned, len(items))
    if transfer.estimate is None or part is None:
        return Metric(None, *counts)
    return Metric(scaled(part, part.n_items / transfer.estimate.n_items), *counts)


def scaled(estimate: Estimate, weight: float) -> Estimate:
    """Return an estimate of `weight` times what it estimates."""
    return replace(
        estimate,
        value=weight * estimate.value,
        low=weight * estimate.low,
        high=weight * estimate.high,
        se=weight * estimate.se,
        these_orders=(weight * estimate.these_orders[0], weight * estimate.these_orders[1]),
    )


def identity_gap(before: Cell, after: Cell, split: Partition) -> float | None:
    """Check `FWT = (n_s·ΔRR + n_f·ΔNL) / N` on the items the baseline has been tested on."""

    def mean(items: frozenset[str]) -> tuple[float, int]:
        found = matrices([after.scores, before.scores], items)
        if found is None:
            return 0.0, 0
        return float((found[0] - found[1]).mean()), found[0].shape[0]

    whole, n = mean(split.solved | split.failed)
    if not n:
        return None
    (solved, n_solved), (failed, n_failed) = mean(split.solved), mean(split.failed)
    return abs(whole - (n_solved * solved + n_failed * failed) / n)


def subsets_of(
    partitions: Mapping[str, Partition],
) -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    """Return the items of each task that are solved without memory, and those that are failed."""
    return (
        {task: each.solved for task, each in partitions.items()},
        {task: each.failed for task, each in partitions.items()},
    )


def retentions(study: StudyLog, partitions: Mapping[str, Partition]) -> tuple[Retention, ...]:
    """Return RR and NL of every evaluation at the end of a sequence.

    The baseline itself is left out: it defines the subsets.
    """
    cells = (c for c in study.cells.values() if c.key.at is None and c.key.condition != BASELINE)
    return tuple(retentions_of(cells, study, partitions))


def retentions_of(
    cells: Iterable[Cell], study: StudyLog, partitions: Mapping[str, Partition]
) -> Iterator[Retention]:
    """Return RR and NL of some evaluations; what training orders do is pooled over the study."""
    easy, hard = subsets_of(partitions)
    rr_orders, nl_orders = study.orders(easy), study.orders(hard)
    for cell in cells:
        task = cell.key.task
        yield Retention(
            key=cell.key,
            accuracy=accuracy(cell, orders=study.accuracy_orders),
            rr=unless_small(accuracy(cell, easy[task], rr_orders)),
            nl=unless_small(accuracy(cell, hard[task], nl_orders)),
        )
