"""Memory dilution: does what an earlier task taught stay within reach (continual-memory §4.3)?

Nothing is deleted when a later task fills the bank; the paper's explanation of forgetting is
that the earlier task's items are no longer retrieved. Two views, both against the number of
episodes of the later task:

* tested on the *earlier* task (eval-only probes, at milestones where the plan has them): its
  success, its share of what is retrieved for it, its share of the bank;
* training on the *later* task, by windows of episodes: the earlier task's share of what is
  retrieved, and of the bank.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from langgraft.benchmarks.comparison.outcomes import Metric, Spread, mean_of, spread_of
from langgraft.benchmarks.continual.banks import Banks, domains
from langgraft.benchmarks.continual.cells import CellKey, RunResults, StudyLog
from langgraft.benchmarks.continual.metrics import accuracy
from langgraft.benchmarks.continual.retrieval import CellRetrieval, own_slots, queries_in

WINDOWS = 5
"""Windows a training stream is cut into: wide enough that a share in one means something."""


@dataclass(frozen=True, slots=True)
class Tested:
    """The earlier task, tested after some episodes of the later one."""

    condition: str
    sequence: str
    task: str
    at: int
    """Episodes of the later task so far; 0 before the first."""
    success: Metric
    own_share: Metric
    """Its share of what is retrieved for it, by episode."""
    bank_share: Spread | None
    """Its share of the bank."""


@dataclass(frozen=True, slots=True)
class Window:
    """Some episodes of the later task, in training."""

    condition: str
    sequence: str
    first: int
    """First episode of the window, from 1."""
    last: int
    earlier_retrieved: Spread | None
    """The earlier task's share of what is retrieved."""
    earlier_in_bank: Spread | None
    """Its share of the bank, on average over the window."""
    success: Spread | None
    """Success of these episodes."""


@dataclass(frozen=True, slots=True)
class Dilution:
    """Both views."""

    tested: tuple[Tested, ...]
    windows: tuple[Window, ...]


def dilution(study: StudyLog, banks: Banks, found: Sequence[CellRetrieval]) -> Dilution:
    """Return how the earlier task fares while the later one is learned."""
    return Dilution(tuple(_tested(study, found)), tuple(_windows(study, banks)))


def _tested(study: StudyLog, found: Sequence[CellRetrieval]) -> Iterator[Tested]:
    by_key = {cell.key: cell for cell in found}
    orders = study.accuracy_orders
    for sequence in study.sequences:
        task = sequence[0]
        for condition in study.memories:
            start = CellKey(condition, task, task)
            end = _length(study, condition, sequence)
            along = [key for key in study.cells if _track(key) == (condition, sequence, task)]
            places = [(end if key.at is None else key.at, key) for key in along]
            for at, key in sorted([(0, start), *places]):
                if key in by_key:
                    success = accuracy(study.cells[key], orders=orders)
                    yield _test(key, success, sequence, at, by_key[key])


def _track(key: CellKey) -> tuple[str, str, str]:
    return key.condition, key.sequence, key.task


def _length(study: StudyLog, condition: str, sequence: str) -> int:
    return max((run.planned for run in _streams(study, condition, sequence)), default=0)


def _streams(study: StudyLog, condition: str, sequence: str) -> list[RunResults]:
    wanted = (condition, sequence)
    return [
        run
        for run in study.training
        if (run.spec.factors["condition"], run.spec.factors["sequence"]) == wanted
    ]


def _test(
    key: CellKey, success: Metric, sequence: str, at: int, retrieval: CellRetrieval
) -> Tested:
    own = Metric(mean_of(retrieval.own), success.done, success.planned, success.n_items)
    return Tested(key.condition, sequence, key.task, at, success, own, retrieval.spread("bank_own"))


def _windows(study: StudyLog, banks: Banks) -> Iterator[Window]:
    families = domains(study)
    for sequence in study.sequences:
        earlier = families[sequence[0]]
        for condition in study.memories:
            runs = _streams(study, condition, sequence)
            tracks = [list(_episodes(run, banks, earlier)) for run in runs]
            yield from _cut(condition, sequence, tracks, _length(study, condition, sequence))


@dataclass(frozen=True, slots=True)
class _Episode:
    success: float
    retrieved: tuple[float, ...]
    """1 for each retrieved item of the earlier task, 0 for each other one."""
    bank: float | None
    """The earlier task's share of the bank."""


def _episodes(run: RunResults, banks: Banks, earlier: str) -> Iterator[_Episode]:
    for result, (_, bank) in zip(run.results, banks.along(run.spec.name), strict=False):
        slots = own_slots(queries_in(result), bank, earlier).values()
        found = tuple(slot for each in slots for slot in each)
        yield _Episode(float(bool(result["success"])), found, bank.share(earlier))


def _cut(
    condition: str, sequence: str, tracks: Sequence[Sequence[_Episode]], length: int
) -> Iterator[Window]:
    """Cut streams into windows; one that a stream has not come to the end of is left out."""
    edges = [number * length // WINDOWS for number in range(WINDOWS + 1)]
    for first, last in pairwise(edges):
        parts = [track[first:last] for track in tracks if len(track) >= last]
        if last > first and parts:
            yield Window(
                condition=condition,
                sequence=sequence,
                first=first + 1,
                last=last,
                earlier_retrieved=_spread([s for e in part for s in e.retrieved] for part in parts),
                earlier_in_bank=_spread(
                    [e.bank for e in part if e.bank is not None] for part in parts
                ),
                success=_spread([e.success for e in part] for part in parts),
            )


def _spread(parts: Iterable[Sequence[float]]) -> Spread | None:
    """Return the mean over streams of their means, with its range."""
    return spread_of(float(np.mean(part)) for part in parts if part)
