"""Sequences of several tasks: the accuracy matrix, and what is read off it.

In a sequence T1>…>Tn, R[i][j] is the accuracy on Tj after i phases, R[0][j] that without
memory (the accuracy matrix of GEM, Lopez-Paz & Ranzato 2017). For the task at position j:

    FWT        = R[j][j] - Acc_Tj(∅→Tj)               the paper's: what all before it did for it
    zero-shot  = R[j-1][j] - R[0][j]                  GEM's FWT: what they do before it is learned
    BWT        = R[n][j] - R[j][j]                    GEM's and the paper's
    forgetting = max over i < n of R[i][j] - R[n][j]  Chaudhry et al. 2018
    average accuracy = mean over j of R[n][j]

With two tasks FWT is of the second and BWT of the first, the paper's. Forgetting then is -BWT; with more it
is held to the best of several noisy accuracies, so that it is above 0 by chance where nothing is
forgotten, and no verdict rests on it: they rest on BWT.

A mixture has no phases, so that nothing of this is defined: of each task there is its accuracy after the
whole stream, and the difference from that after the task alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from langgraft.benchmarks.comparison.contrasts import (
    Contrast,
    compare_outcomes,
    corrected,
    judge,
)
from langgraft.benchmarks.comparison.outcomes import Metric, differences_of, mean_of
from langgraft.benchmarks.comparison.verdicts import Verdict
from langgraft.benchmarks.continual.cells import (
    BASELINE,
    RERUN,
    Cell,
    CellKey,
    StudyLog,
    beginnings,
    pooled,
)
from langgraft.benchmarks.continual.metrics import (
    Direction,
    Transfer,
    accuracy,
    metric_of,
    outcomes_of,
)
from langgraft.benchmarks.continual.plan import phases


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the accuracy matrix."""

    phases: int
    """Phases so far; 0 without memory."""
    after: str
    """The beginning of the sequence that was learned; empty without memory."""
    task: str
    met: bool
    """Whether the task was learned by then."""
    accuracy: Metric


@dataclass(frozen=True, slots=True)
class Judged:
    """A transfer with a verdict of its own: corrected over all like it, of all memories and sequences."""

    transfer: Transfer
    p_adjusted: float | None
    """By Holm; `None` while incomplete."""
    verdict: Verdict
    """Backward, `hurt` means forgotten."""


@dataclass(frozen=True, slots=True)
class Position:
    """One task of a sequence: what those before it did for it, and those after it to it."""

    number: int
    """Its place in the sequence, from 1."""
    task: str
    forward: Judged | None
    """FWT; `None` of the first."""
    zero_shot: Contrast | None
    """GEM's FWT, against all runs without memory; `None` of the first, and where it was not tested."""
    backward: Judged | None
    """BWT; `None` of the last."""
    forgetting: Metric | None
    """Chaudhry's; `None` of the last."""
    peak: str
    """After which beginning of the sequence accuracy was best, the end apart."""


@dataclass(frozen=True, slots=True)
class SequenceResult:
    """What a memory, or a control, came to in a sequence."""

    condition: str
    sequence: str
    matrix: tuple[Entry, ...]
    """By phases, then by the order of the tasks; without what was not tested."""
    positions: tuple[Position, ...]
    average: Metric
    """Average accuracy: of all tasks after all phases."""
    forward: Metric
    """Mean FWT of the positions that have one."""
    zero_shot: Metric
    backward: Metric
    forgetting: Metric


_Kind: TypeAlias = Literal["forward", "backward", "forgetting"]


@dataclass(frozen=True, slots=True)
class _Track:
    """The cells of one condition along one sequence."""

    condition: str
    sequence: str
    cells: Mapping[tuple[int, str], Cell]
    """(phases, task) → cell; those without memory are not here."""
    alone: Mapping[str, Cell]
    """Task → the cell after it alone."""

    @property
    def tasks(self) -> tuple[str, ...]:
        return phases(self.sequence)

    def peak(self, task: str) -> int:
        """Return after how many phases accuracy on a task was best, the end apart; 0: none is known."""
        known = [
            (-estimate.value, number)
            for number in range(1, len(self.tasks))
            if (cell := self.cells.get((number, task))) is not None
            and (estimate := mean_of(cell.scores)) is not None
        ]
        return min(known)[1] if known else 0

    def pairs(self, kind: _Kind) -> list[tuple[Cell, Cell]]:
        """List the cells that a transfer of each position is the difference of."""
        n, found = len(self.tasks), []
        for place, task in enumerate(self.tasks, start=1):
            here, last = self.cells.get((place, task)), self.cells.get((n, task))
            if kind == "forward" and place > 1:
                found.append((here, self.alone.get(task)))
            elif kind == "backward" and place < n:
                found.append((last, here))
            elif kind == "forgetting" and place < n:
                found.append((self.cells.get((self.peak(task), task)), last))
        return [(one, other) for one, other in found if one is not None and other is not None]

    def zero_shot(self, task: str) -> Cell | None:
        return self.cells.get((self.tasks.index(task), task))


def sequence_results(study: StudyLog, transfers: Sequence[Transfer]) -> tuple[SequenceResult, ...]:
    """Return the accuracy matrix of each long sequence, and what is read off it, by condition.

    FWT and BWT are those of `transfers`.
    """
    tracks = [
        track
        for sequence in study.long_sequences
        for condition in (*study.memories, *study.controls)
        for track in (_track(study, condition, sequence),)
        if track.cells
    ]
    judged = {
        **_judged(transfers, study, "forward"),
        **_judged(transfers, study, "backward"),
    }
    early = _zero_shots(study, tracks)
    lost = _forgetting(tracks)
    means = {kind: _means(tracks, kind) for kind in ("forward", "backward", "forgetting")}
    return tuple(
        SequenceResult(
            track.condition,
            track.sequence,
            matrix=tuple(_entries(study, track)),
            positions=tuple(
                Position(
                    number,
                    task,
                    forward=judged.get((track.condition, "forward", begun, task)),
                    zero_shot=early.get((place, task)),
                    backward=judged.get((track.condition, "backward", track.sequence, task)),
                    forgetting=lost.get((place, task)),
                    peak=">".join(track.tasks[: track.peak(task)]),
                )
                for number, (task, begun) in enumerate(
                    zip(track.tasks, beginnings(track.sequence), strict=True), start=1
                )
            ),
            average=_average(study, track),
            forward=means["forward"][place],
            zero_shot=early[place, ""].difference
            if (place, "") in early
            else Metric(None, 0, 0, 0),
            backward=means["backward"][place],
            forgetting=means["forgetting"][place],
        )
        for place, track in enumerate(tracks)
    )


def _track(study: StudyLog, condition: str, sequence: str) -> _Track:
    tasks = phases(sequence)
    keys = {
        (number, task): CellKey(condition, begun, task)
        for number, begun in enumerate(beginnings(sequence), start=1)
        for task in tasks
    }
    found = {place: study.cells[key] for place, key in keys.items() if key in study.cells}
    alone = {task: study.cells.get(CellKey(condition, task, task)) for task in tasks}
    return _Track(condition, sequence, found, {t: cell for t, cell in alone.items() if cell})


def _entries(study: StudyLog, track: _Track) -> Iterator[Entry]:
    for task in track.tasks:
        without = study.cells[CellKey(BASELINE, "", task)]
        yield Entry(0, "", task, met=False, accuracy=accuracy(without))
    begun = beginnings(track.sequence)
    for (number, task), cell in track.cells.items():
        found = accuracy(cell, orders=study.accuracy_orders)
        yield Entry(number, begun[number - 1], task, met=cell.key.met, accuracy=found)


def _average(study: StudyLog, track: _Track) -> Metric:
    last = [cell for (number, _), cell in track.cells.items() if number == len(track.tasks)]
    return metric_of(mean_of(pooled(last), orders=study.accuracy_orders), last)


def _judged(
    transfers: Sequence[Transfer], study: StudyLog, direction: Direction
) -> dict[tuple[str, Direction, str, str], Judged]:
    """Judge the transfers of memories in long sequences as one family; those of controls are not."""
    wanted = {begun for whole in study.long_sequences for begun in beginnings(whole)}
    if direction == "backward":
        wanted &= {*study.long_sequences}
    rows = [row for row in transfers if row.direction == direction and row.sequence in wanted]
    family = [row for row in rows if row.condition in study.memories]
    known = [(row.transfer.estimate, row.transfer.complete) for row in family]
    adjusted = dict(zip(map(id, family), corrected(known), strict=True))
    found = {}
    for row in rows:
        estimate, complete = row.transfer.estimate, row.transfer.complete
        p = adjusted.get(id(row), estimate.p if estimate else 1.0)
        verdict = judge(estimate, p, complete=complete)
        told = p if id(row) in adjusted and complete else None
        found[row.condition, direction, row.sequence, row.task] = Judged(row, told, verdict)
    return found


def _zero_shots(study: StudyLog, tracks: Sequence[_Track]) -> dict[tuple[int, str], Contrast]:
    """Compare what is not learned yet with no memory: each position, and by `""` all of a sequence."""
    single = {
        (place, task): [cell]
        for place, track in enumerate(tracks)
        for task in track.tasks[1:]
        if (cell := track.zero_shot(task)) is not None
    }
    whole: dict[tuple[int, str], list[Cell]] = {}
    for (place, _), cells in single.items():
        whole.setdefault((place, ""), []).extend(cells)
    untreated = {name: study.final_cells(name) for name in (BASELINE, RERUN)}
    bare = {name: outcomes_of(cells) for name, cells in untreated.items() if cells}
    rerun = RERUN if RERUN in bare else None
    found: dict[tuple[int, str], Contrast] = {}
    for family in (single, whole):
        treated = {f"{place} {task}": outcomes_of(family[place, task]) for place, task in family}
        compared = compare_outcomes({**bare, **treated}, baseline=BASELINE, rerun=rerun)
        found |= dict(zip(family, compared.family, strict=True))
    return found


def _forgetting(tracks: Sequence[_Track]) -> dict[tuple[int, str], Metric]:
    pairs = {
        (place, before.key.task): (peak, before)
        for place, track in enumerate(tracks)
        for peak, before in track.pairs("forgetting")
    }
    found = differences_of((peak.scores, last.scores) for peak, last in pairs.values())
    return {
        key: metric_of(estimate, pair)
        for (key, pair), estimate in zip(pairs.items(), found, strict=True)
    }


def _means(tracks: Sequence[_Track], kind: _Kind) -> list[Metric]:
    """Return the mean of a transfer over the positions of each sequence."""
    sides = [tuple(zip(*track.pairs(kind), strict=True)) or ((), ()) for track in tracks]
    found = differences_of((pooled(after), pooled(before)) for after, before in sides)
    return [
        metric_of(estimate, [*after, *before])
        for (after, before), estimate in zip(sides, found, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Mixed:
    """A task of a stream in which several are mixed."""

    condition: str
    sequence: str
    """The mixture, such as `A+B`."""
    task: str
    before: Metric
    """Accuracy after the task alone."""
    after: Metric
    """Accuracy after the whole stream."""
    difference: Metric


def mixtures(study: StudyLog) -> tuple[Mixed, ...]:
    """Hold each task of each mixture to the task alone, by condition."""
    pairs = [
        (after, before)
        for sequence in study.mixtures
        for condition in (*study.memories, *study.controls)
        for task in phases(sequence)
        if (after := study.cells.get(CellKey(condition, sequence, task))) is not None
        and (before := study.cells.get(CellKey(condition, task, task))) is not None
    ]
    found = differences_of((after.scores, before.scores) for after, before in pairs)
    orders = study.accuracy_orders
    return tuple(
        Mixed(
            *(after.key.condition, after.key.sequence, after.key.task),
            before=accuracy(before, orders=orders),
            after=accuracy(after, orders=orders),
            difference=metric_of(estimate, [after, before]),
        )
        for (after, before), estimate in zip(pairs, found, strict=True)
    )
