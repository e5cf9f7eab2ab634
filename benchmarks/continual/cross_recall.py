"""What came of retrieving from the own task and from the other one (continual-memory §3.1, §F.1).

After X→T a query of T may be answered by an experience of X. Each test episode belongs to one
origin, that of the best item of its first retrieval; its change is its outcome after X→T less
that of the same item and run after T alone. Changes weighted by their episodes add up to FWT,
so the table shows from which retrievals a transfer comes, on easy items and on hard ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from langgraft.benchmarks.comparison.outcomes import Spread, spread_of
from langgraft.benchmarks.continual.cells import Cell, CellKey, StudyLog
from langgraft.benchmarks.continual.metrics import Partition
from langgraft.benchmarks.continual.retrieval import CellRetrieval

Subset: TypeAlias = Literal["all", "easy", "hard"]

SUBSETS: Final[Mapping[Subset, str]] = {
    "all": "all items",
    "easy": "solved without memory",
    "hard": "failed without memory",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """The episodes whose first retrieval began with an item of one task family."""

    episodes: int
    """Over all runs."""
    success: Spread | None
    """After both tasks."""
    before: Spread | None
    """The same items in the same runs after their task alone."""
    change: Spread | None
    """The one less the other."""


@dataclass(frozen=True, slots=True)
class CrossRecall:
    """Forward transfer by where the retrieved experience was made."""

    condition: str
    sequence: str
    task: str
    subset: Subset
    other_first: Spread | None
    """Share of episodes that begin with an item of another task, of those that retrieve at all."""
    own: Origin
    other: Origin
    nothing: int
    """Episodes for which nothing was retrieved first."""


@dataclass(frozen=True, slots=True)
class _Episode:
    replicate: int
    own: bool | None
    success: float
    before: float


def cross_recalls(
    study: StudyLog, partitions: Mapping[str, Partition], found: Sequence[CellRetrieval]
) -> tuple[CrossRecall, ...]:
    """Split the tests of each sequence's later task by the origin of what was retrieved."""
    return tuple(
        row
        for cell in found
        if cell.key.condition in study.memories
        and cell.key.at is None
        and ">" in cell.key.sequence
        and cell.key.task == cell.key.sequence[-1]
        for row in _rows(study, partitions[cell.key.task], cell)
    )


def _rows(study: StudyLog, split: Partition, cell: CellRetrieval) -> Iterator[CrossRecall]:
    key = cell.key
    alone = study.cells.get(CellKey(key.condition, key.task, key.task))
    if alone is None:
        return
    subsets: dict[Subset, frozenset[str]] = {
        "all": split.solved | split.failed,
        "easy": split.solved,
        "hard": split.failed,
    }
    for name, items in subsets.items():
        episodes = list(_episodes(study.cells[key], alone, cell, items))
        by_origin = {own: [e for e in episodes if e.own is own] for own in (True, False, None)}
        known = [e for e in episodes if e.own is not None]
        yield CrossRecall(
            *(key.condition, key.sequence, key.task, name),
            other_first=_spread([(e.replicate, float(e.own is False)) for e in known]),
            own=_origin(by_origin[True]),
            other=_origin(by_origin[False]),
            nothing=len(by_origin[None]),
        )


def _episodes(
    after: Cell, alone: Cell, cell: CellRetrieval, items: frozenset[str]
) -> Iterator[_Episode]:
    for run in cell.runs:
        ours = after.scores[run.replicate]
        theirs = alone.scores.get(run.replicate, {})
        for item in sorted(items & ours.keys() & theirs.keys()):
            origin = run.first_own.get(item)
            yield _Episode(run.replicate, origin, ours[item], theirs[item])


def _origin(episodes: Sequence[_Episode]) -> Origin:
    return Origin(
        episodes=len(episodes),
        success=_spread([(e.replicate, e.success) for e in episodes]),
        before=_spread([(e.replicate, e.before) for e in episodes]),
        change=_spread([(e.replicate, e.success - e.before) for e in episodes]),
    )


def _spread(values: Sequence[tuple[int, float]]) -> Spread | None:
    """Return the mean over all episodes, with the range of the means of the runs."""
    by_run: dict[int, list[float]] = {}
    for replicate, value in values:
        by_run.setdefault(replicate, []).append(value)
    runs = spread_of(float(np.mean(each)) for each in by_run.values())
    if runs is None:
        return None
    return Spread(float(np.mean([value for _, value in values])), runs.low, runs.high, None, runs.n)
