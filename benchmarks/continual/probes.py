"""The crossed probe: how memory is retrieved, apart from which bank it is retrieved from.

Conditions that train with their own retrieval also fill banks of their own, so comparing them
confounds the two (continual-memory Appendix C names it for Cond-Ind and Cond-Step). A probe
`a@b` retrieves as `a` does from the banks that `b` filled. With the two conditions themselves
that makes a table of retrieval by pool, in which each effect is read with the other held
fixed. Outside the family: nothing here is corrected or takes part in a verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from langgraft.benchmarks.comparison.outcomes import Metric, differences_of, mean_of
from langgraft.benchmarks.continual.cells import Cell, StudyLog, pooled
from langgraft.benchmarks.continual.metrics import metric_of

Factor: TypeAlias = Literal["retrieval", "pool"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What changing one of the two does while the other is held fixed."""

    factor: Factor
    """What is changed."""
    fixed: str
    """The condition that the other one is held at."""
    treated: str
    baseline: str
    difference: Metric
    """Success with `treated` minus success with `baseline`, paired by item and replicate."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two conditions crossed: a table of retrieval by pool."""

    conditions: tuple[str, str]
    task: str
    """The task tested; empty: both together."""
    success: Mapping[tuple[str, str], Metric]
    """(retrieval, pool) → success on the cells that all entries have."""
    effects: tuple[Effect, ...]


def crossings(study: StudyLog) -> tuple[Crossing, ...]:
    """Cross each two conditions that a probe connects, over both tasks and for each."""
    tasks = sorted({key.task for key in study.cells})
    return tuple(
        crossing
        for pair in _pairs(study)
        for task in ("", *tasks)
        if (crossing := _crossing(study, pair, task)) is not None
    )


def _pairs(study: StudyLog) -> list[tuple[str, str]]:
    pairs = []
    for probe in study.probes:
        retrieval, _, pool = probe.partition("@")
        if (retrieval, pool) not in pairs:
            pairs.append((pool, retrieval))
    return pairs


def _crossing(study: StudyLog, pair: tuple[str, str], task: str) -> Crossing | None:
    table = {(r, p): study.final_cells(_name(r, p)) for p in pair for r in pair}
    filled = {entry: cells for entry, cells in table.items() if cells}
    shared = set.intersection(*({_place(cell) for cell in cells} for cells in filled.values()))
    wanted = {place for place in shared if task in {"", place[1]}}
    if not wanted:
        return None
    chosen = {
        entry: [cell for cell in cells if _place(cell) in wanted] for entry, cells in filled.items()
    }
    success = {entry: metric_of(mean_of(pooled(cells)), cells) for entry, cells in chosen.items()}
    return Crossing(pair, task, success, tuple(_effects(pair, chosen)))


def _name(retrieval: str, pool: str) -> str:
    return pool if retrieval == pool else f"{retrieval}@{pool}"


def _place(cell: Cell) -> tuple[str, str]:
    return cell.key.sequence, cell.key.task


def _effects(
    pair: tuple[str, str], table: Mapping[tuple[str, str], Sequence[Cell]]
) -> Iterator[Effect]:
    base, other = pair
    asked: list[tuple[Factor, str, Sequence[Cell] | None, Sequence[Cell] | None]] = [
        *(
            ("retrieval", fixed, table.get((other, fixed)), table.get((base, fixed)))
            for fixed in pair
        ),
        *(("pool", fixed, table.get((fixed, other)), table.get((fixed, base))) for fixed in pair),
    ]
    known = [
        (factor, fixed, ours, theirs) for factor, fixed, ours, theirs in asked if ours and theirs
    ]
    found = differences_of((pooled(ours), pooled(theirs)) for *_, ours, theirs in known)
    for (factor, fixed, ours, theirs), difference in zip(known, found, strict=True):
        yield Effect(factor, fixed, other, base, metric_of(difference, [*ours, *theirs]))
