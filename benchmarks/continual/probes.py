"""Crossed probes and remedies: retrieval apart from the bank, and what was to be mended.

Conditions that train with their own retrieval also fill banks of their own, so comparing them
confounds the two (continual-memory Appendix C names it for Cond-Ind and Cond-Step). A probe
`a@b` retrieves as `a` does from the banks that `b` filled. With the two conditions themselves
that makes a table of retrieval by pool, in which each effect is read with the other held
fixed.

A remedy is a condition that says which one it `mends`. It is compared with that one twice where the
plan has a crossed probe for it: with the banks each filled for itself, and (the probe) with the
mended condition's banks, where only retrieval differs.

All of this is outside the family: nothing here is corrected or takes part in a verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from langgraft.benchmarks.comparison.estimates import Estimate, mean_estimate
from langgraft.benchmarks.comparison.outcomes import (
    Metric,
    Scores,
    Spread,
    differences_of,
    in_common,
    mean_of,
    spread_of,
)
from langgraft.benchmarks.continual.cells import Cell, CellKey, StudyLog, pooled
from langgraft.benchmarks.continual.metrics import metric_of
from langgraft.benchmarks.continual.retrieval import CellRetrieval

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
    """Cross each two conditions that a probe connects, over all tasks and for each."""
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


# Remedies --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunDifference:
    """How a measure of whole runs differs, paired by run."""

    before: Spread | None
    after: Spread | None
    estimate: Estimate | None
    """Its items are the runs: a t interval over them; `None` without a pair of runs."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy against what it mends, in one cell or over all of them."""

    condition: str
    """The remedy, or its probe `remedy@mended` on the same banks."""
    mends: str
    sequence: str
    """Empty: over all sequences."""
    task: str
    """Empty: over all tasks."""
    success: Metric
    """Difference in success, paired by item and replicate."""
    own_share: Metric
    """Difference in own-task share of what is retrieved, paired by item and replicate."""
    own_levels: tuple[Spread | None, Spread | None]
    """What `own_share` is the difference of: the mended condition's, the remedy's."""
    context_diversity: RunDifference
    top1_share: RunDifference


def remedies(study: StudyLog, found: Sequence[CellRetrieval]) -> tuple[Remedy, ...]:
    """Compare each remedy with what it mends: over all cells both have, then in each."""
    by_key = {cell.key: cell for cell in found}
    rows = []
    for remedy, mended in _mends(study).items():
        for name in (remedy, f"{remedy}@{mended}"):
            pairs = [
                (cell, study.cells[key])
                for cell in study.final_cells(name)
                if (key := CellKey(mended, cell.key.sequence, cell.key.task)) in study.cells
            ]
            if pairs:
                rows.append(_remedy(name, mended, pairs, by_key))
                rows += [_remedy(name, mended, [pair], by_key) for pair in pairs if len(pairs) > 1]
    return tuple(rows)


def _mends(study: StudyLog) -> Mapping[str, str]:
    told = {run.spec.factors["condition"]: run.spec.factors.get("mends") for run in study.training}
    return {str(name): str(mended) for name, mended in told.items() if mended is not None}


def _remedy(
    name: str,
    mended: str,
    pairs: Sequence[tuple[Cell, Cell]],
    by_key: Mapping[CellKey, CellRetrieval],
) -> Remedy:
    after, before = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    looked = [
        (by_key[a.key], by_key[b.key]) for a, b in pairs if a.key in by_key and b.key in by_key
    ]
    ours, theirs = in_common(_shared([(a.own, b.own) for a, b in looked]))
    single = after[0].key if len(pairs) == 1 else CellKey(name, "", "")
    both = [*after, *before]
    return Remedy(
        condition=name,
        mends=mended,
        sequence=single.sequence,
        task=single.task,
        success=metric_of(differences_of([(pooled(after), pooled(before))])[0], both),
        own_share=metric_of(differences_of([(ours, theirs)])[0], both),
        own_levels=(_level(theirs), _level(ours)),
        context_diversity=_run_difference(looked, "context_diversity"),
        top1_share=_run_difference(looked, "top1_share"),
    )


def _level(scores: Scores) -> Spread | None:
    """Return the mean over items, run by run."""
    return spread_of(float(np.mean(list(items.values()))) for items in scores.values() if items)


def _shared(pairs: Sequence[tuple[Scores, Scores]]) -> tuple[Scores, Scores]:
    """Average two kinds of scores per replicate and item, over the cells in which both have one."""
    found: tuple[dict[int, dict[str, list[float]]], ...] = ({}, {})
    for pair in pairs:
        for replicate in sorted(pair[0].keys() & pair[1].keys()):
            for item in sorted(pair[0][replicate].keys() & pair[1][replicate].keys()):
                for scores, into in zip(pair, found, strict=True):
                    values = into.setdefault(replicate, {}).setdefault(item, [])
                    values.append(scores[replicate][item])
    first, second = (
        {r: {item: float(np.mean(v)) for item, v in items.items()} for r, items in each.items()}
        for each in found
    )
    return first, second


def _run_difference(
    looked: Sequence[tuple[CellRetrieval, CellRetrieval]], measure: str
) -> RunDifference:
    """Compare a measure run by run, as the mean over cells."""
    after = _by_run([pair[0] for pair in looked], measure)
    before = _by_run([pair[1] for pair in looked], measure)
    paired = [after[run] - before[run] for run in sorted(after.keys() & before.keys())]
    estimate = None
    if paired:
        estimate = mean_estimate(np.array(paired)[:, None], bounds=(-1.0, 1.0))
    return RunDifference(spread_of(before.values()), spread_of(after.values()), estimate)


def _by_run(cells: Sequence[CellRetrieval], measure: str) -> Mapping[int, float]:
    found: dict[int, list[float]] = {}
    for cell in cells:
        for run in cell.runs:
            value = getattr(run.measures, measure)
            if value is not None:
                found.setdefault(run.replicate, []).append(value)
    return {
        run: float(np.mean(values)) for run, values in found.items() if len(values) == len(cells)
    }
