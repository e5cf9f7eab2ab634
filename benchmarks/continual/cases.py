"""Which episodes are shown in full: chosen by rule, never by hand."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from langgraft.benchmarks.continual.cells import (
    BASELINE,
    Cell,
    CellKey,
    RunResults,
    StudyLog,
    in_common,
)
from langgraft.benchmarks.continual.retrieval import CellRetrieval, queries_in
from langgraft.benchmarks.continual.wording import signed

Rule: TypeAlias = Literal["loss", "gain", "concentration", "dilution"]

RULES: Final[Mapping[Rule, str]] = {
    "loss": (
        "For each memory and sequence: of all test items of both tasks, the one whose success"
        " falls furthest below that of the baseline (mean over paired repetitions, equals by id);"
        " the first repetition in which memory fails and the baseline does not."
    ),
    "gain": (
        "For each memory and sequence: of all test items of both tasks, the one whose success"
        " rises furthest above that of the baseline (mean over paired repetitions, equals by id);"
        " the first repetition in which memory succeeds and the baseline does not."
    ),
    "concentration": (
        "Of all evaluations at the end of a sequence, the one in which one item is the best for"
        " the largest share of queries; of its test items with that item at the top, one that"
        " memory fails and the baseline does not, else one that memory fails, else any (by id)."
    ),
    "dilution": (
        "Of all tests of the earlier task after the later one, the one with the smallest"
        " own-task share of what is retrieved; of its test items for which only items of other"
        " task families are retrieved, one chosen as above."
    ),
}
"""What decides which episodes are shown; stated in the report."""


@dataclass(frozen=True, slots=True)
class Case:
    """One episode with memory, and the same instance without."""

    name: str
    """Name of its page, without ending."""
    rule: Rule
    key: CellKey
    item: str
    run: RunResults
    baseline: RunResults
    """The baseline run of the same number."""
    reason: str
    """The number it was chosen by."""

    @property
    def succeeded(self) -> tuple[bool, bool]:
        """Whether the episode succeeded: with memory, and without."""
        return bool(self.run.outcomes[self.item]), bool(self.baseline.outcomes[self.item])


def choose_cases(study: StudyLog, found: Sequence[CellRetrieval]) -> tuple[Case, ...]:
    """Choose the episodes to show, by `RULES`."""
    chosen = [*_extremes(study), *_concentration(study, found), *_dilution(study, found)]
    return tuple(
        Case(f"case-{number:02}", rule, pair.key, item, pair.run, pair.base, reason)
        for number, (rule, pair, item, reason) in enumerate(chosen, start=1)
    )


_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class _Pair:
    """A run of a cell, and the baseline run of the same number; both have all results."""

    key: CellKey
    run: RunResults
    base: RunResults


_Choice: TypeAlias = tuple[Rule, _Pair, str, str]


def _extremes(study: StudyLog) -> Iterator[_Choice]:
    for condition in study.memories:
        for sequence in study.sequences:
            cells = [cell for cell in study.final_cells(condition) if cell.key.sequence == sequence]
            effects = [effect for cell in cells for effect in _effects(study, cell)]
            losses = sorted((value, item, cell) for value, item, cell in effects if value < 0)
            gains = sorted((-value, item, cell) for value, item, cell in effects if value > 0)
            yield from _extreme(study, "loss", losses)
            yield from _extreme(study, "gain", gains)


def _effects(study: StudyLog, cell: Cell) -> Iterator[tuple[float, str, CellKey]]:
    """Return how each item's success differs from the baseline's."""
    base = study.cells[CellKey(BASELINE, "", cell.key.task)]
    ours, theirs = in_common([cell.scores, base.scores])
    items = next(iter(ours.values()), {})
    for item in items:
        differences = [ours[run][item] - theirs[run][item] for run in ours]
        yield sum(differences) / len(differences), item, cell.key


def _extreme(
    study: StudyLog, rule: Rule, ranked: Sequence[tuple[float, str, CellKey]]
) -> Iterator[_Choice]:
    for value, item, key in ranked[:1]:
        change = abs(value) if rule == "gain" else -abs(value)
        reason = f"{signed(change)} pp against the baseline"
        for pair in _pairs(study, key):
            ours, theirs = pair.run.outcomes[item], pair.base.outcomes[item]
            if (ours > theirs) if rule == "gain" else (ours < theirs):
                yield rule, pair, item, reason
                return


def _pairs(study: StudyLog, key: CellKey) -> Iterator[_Pair]:
    """Pair the runs of a cell with the baseline runs of the same number."""
    base = {run.replicate: run for run in study.cells[CellKey(BASELINE, "", key.task)].runs}
    for run in study.cells[key].runs:
        other = base.get(run.replicate)
        if other is not None and run.done == run.planned and other.done == other.planned:
            yield _Pair(key, run, other)


def _concentration(study: StudyLog, found: Sequence[CellRetrieval]) -> Iterator[_Choice]:
    known = [
        (-run.measures.top1_share, cell.key, run.replicate, run.top1)
        for cell in found
        if cell.key.at is None
        for run in cell.runs
        if run.measures.top1_share is not None and run.top1 is not None
    ]
    for share, key, replicate, top1 in _least(known):
        reason = f"one item is the best for {-100 * share:.0f} % of the queries of this run"
        for pair in _pairs(study, key):
            if pair.run.replicate == replicate:
                served = [
                    task
                    for task, result in pair.run.by_item.items()
                    if any(query.items[:1] == (top1,) for query in queries_in(result))
                ]
                yield from _telling("concentration", pair, served, reason)


def _dilution(study: StudyLog, found: Sequence[CellRetrieval]) -> Iterator[_Choice]:
    known = [
        (run.measures.own_share, cell.key, run.replicate, run.own)
        for cell in found
        if ">" in cell.key.sequence
        and cell.key.task == cell.key.sequence[0]
        and cell.key.at is None
        and cell.key.condition in study.memories
        for run in cell.runs
        if run.measures.own_share is not None and 0.0 in run.own.values()
    ]
    for share, key, replicate, own in _least(known):
        reason = f"{100 * share:.0f} % of what this run retrieved is of the task tested"
        foreign = [item for item, each in own.items() if each == 0]
        for pair in _pairs(study, key):
            if pair.run.replicate == replicate:
                yield from _telling("dilution", pair, foreign, reason)


def _least(
    known: Sequence[tuple[float, CellKey, int, _Found]],
) -> list[tuple[float, CellKey, int, _Found]]:
    """Return the entry with the least value; the first in plan order among equals."""
    return [min(known, key=lambda each: each[0])] if known else []


def _telling(rule: Rule, pair: _Pair, items: Iterable[str], reason: str) -> Iterator[_Choice]:
    """Choose the item that memory fails and the baseline does not, if there is one."""
    ours, theirs = pair.run.outcomes, pair.base.outcomes
    for item in sorted(items, key=lambda i: (ours[i], -theirs[i], i))[:1]:
        yield rule, pair, item, reason
