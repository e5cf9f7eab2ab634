"""Do remedies mend? Each against the condition it is to improve on.

A remedy is a condition that says which one it `mends`. It is compared with that one twice
where the plan has a crossed probe for it: with the banks each filled for itself, and (the
probe) with the mended condition's banks, where only retrieval differs. Outside the family.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from langgraft.benchmarks.comparison.estimates import Estimate, mean_estimate
from langgraft.benchmarks.comparison.outcomes import (
    Metric,
    Scores,
    Spread,
    differences_of,
    in_common,
    spread_of,
)
from langgraft.benchmarks.continual.cells import Cell, CellKey, StudyLog, pooled
from langgraft.benchmarks.continual.metrics import metric_of
from langgraft.benchmarks.continual.retrieval import CellRetrieval


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
    """Empty: over both tasks."""
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
