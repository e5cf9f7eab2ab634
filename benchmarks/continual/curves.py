"""How things go along training: success, accuracy at milestones, and dilution (§4.3).

Nothing is deleted when a later task fills the bank; the paper's explanation of forgetting is
that the earlier task's items are no longer retrieved. Two views of that *dilution*, both against the
number of episodes of the later task:

* tested on the *earlier* task (eval-only probes, at milestones where the plan has them): its
  success, its share of what is retrieved for it, its share of the bank;
* training on the *later* task, by windows of episodes: the earlier task's share of what is
  retrieved, and of the bank.

Where the training instances are played without memory, too, success in training has something to be
compared with: the baseline of the same instance, run and samples.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import (
    Metric,
    Spread,
    differences_of,
    in_common,
    mean_of,
    spread_of,
)
from langgraft.benchmarks.continual.cells import (
    BASELINE,
    Banks,
    Cell,
    CellKey,
    RunResults,
    StudyLog,
    beginnings,
    domains,
)
from langgraft.benchmarks.continual.metrics import (
    Partition,
    Retention,
    accuracy,
    learned,
    retentions_of,
)
from langgraft.benchmarks.continual.plan import phases
from langgraft.benchmarks.continual.retrieval import CellRetrieval, queries_in

WINDOWS = 5
"""Windows a training stream is cut into: wide enough that a share in one means something."""


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Cumulative success rate over the training items (continual-memory Appendix E)."""

    condition: str
    sequence: str
    task: str
    replicates: tuple[int, ...]
    curves: tuple[tuple[float, ...], ...]
    """Per replicate: the share of successes among the first 1, 2, … items."""
    planned: int
    """Items of each stream."""

    @property
    def length(self) -> int:
        """Items that every replicate has come to."""
        return min((len(curve) for curve in self.curves), default=0)

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean over replicates."""
        return self._over_replicates("mean")

    @property
    def low(self) -> tuple[float, ...]:
        """Least of the replicates."""
        return self._over_replicates("min")

    @property
    def high(self) -> tuple[float, ...]:
        """Greatest of the replicates."""
        return self._over_replicates("max")

    def _over_replicates(self, reduction: str) -> tuple[float, ...]:
        if not self.length:
            return ()
        table = np.array([curve[: self.length] for curve in self.curves])
        return tuple(float(value) for value in getattr(table, reduction)(axis=0))


@dataclass(frozen=True, slots=True)
class Milestone(Retention):
    """Accuracy on a frozen bank after some of the training items of the last phase."""

    at: int


def learning_curves(study: StudyLog) -> tuple[LearningCurve, ...]:
    """Return a curve per condition and sequence."""
    return tuple(
        LearningCurve(
            *key,
            task=str(runs[0].spec.factors["task"]),
            replicates=tuple(run.replicate for run in runs),
            curves=tuple(_cumulative(run) for run in runs),
            planned=max(run.planned for run in runs),
        )
        for key, runs in study.streams.items()
    )


def _cumulative(run: RunResults) -> tuple[float, ...]:
    outcomes = np.array([float(bool(result["success"])) for result in run.results])
    if not outcomes.size:
        return ()
    rates = np.cumsum(outcomes) / np.arange(1, outcomes.size + 1)
    return tuple(float(rate) for rate in rates)


@dataclass(frozen=True, slots=True)
class Online:
    """Success in a training phase, beside that without memory on the same instances."""

    condition: str
    sequence: str
    task: str
    """The task of the phase."""
    success: Metric
    without: Metric
    difference: Metric
    """`success` less `without`, paired by instance and run."""


class Regret(LearningCurve):
    """Cumulative regret over all phases of a sequence: episodes that no memory solves, less those solved.

    Below 0 memory has gained. Of each replicate with the baseline of its own number and samples.
    """


def online(study: StudyLog) -> tuple[Online, ...]:
    """Hold each training phase to no memory, where a plan plays its instances without memory."""
    sides = [
        (key, runs, without)
        for key, runs in study.streams.items()
        if key[0] != BASELINE
        and (
            without := [
                run
                for task in phases(key[1].rpartition(">")[2])
                for run in study.streams.get((BASELINE, task), ())
            ]
        )
    ]
    scores = [in_common([_outcomes(runs), _outcomes(without)]) for _, runs, without in sides]
    found = differences_of((ours, theirs) for ours, theirs in scores)
    return tuple(
        Online(
            *key,
            task=str(runs[0].spec.factors["task"]),
            success=_in_training(mean_of(ours), runs),
            without=_in_training(mean_of(theirs, shared_effects=False), without),
            difference=_in_training(estimate, [*runs, *without]),
        )
        for (key, runs, without), (ours, theirs), estimate in zip(sides, scores, found, strict=True)
    )


def _outcomes(runs: Iterable[RunResults]) -> dict[int, dict[str, float]]:
    """Return outcomes by replicate and item, of runs on different items."""
    found: dict[int, dict[str, float]] = {}
    for run in runs:
        found.setdefault(run.replicate, {}).update(run.outcomes)
    return found


def _in_training(estimate: Estimate | None, runs: Sequence[RunResults]) -> Metric:
    items = {item for run in runs for item in run.spec.item_ids}
    done, planned = sum(run.done for run in runs), sum(run.planned for run in runs)
    return Metric(estimate, done, planned, len(items))


def regrets(study: StudyLog) -> tuple[Regret, ...]:
    """Return the cumulative regret of each memory in each sequence and mixture."""
    without = _outcomes(run for run in study.training if run.stream[0] == BASELINE)
    wanted = (*study.whole_sequences, *study.mixtures) if without else ()
    return tuple(
        Regret(
            condition,
            sequence,
            "",
            replicates=tuple(tracks),
            curves=tuple(_regret(runs, without.get(r, {})) for r, runs in tracks.items()),
            planned=max(sum(run.planned for run in runs) for runs in tracks.values()),
        )
        for sequence in wanted
        for condition in study.memories
        if (tracks := _tracks(study, condition, sequence))
    )


def _tracks(study: StudyLog, condition: str, sequence: str) -> dict[int, list[RunResults]]:
    """Return the phases of a sequence by replicate, in order."""
    found: dict[int, list[RunResults]] = {}
    for begun in beginnings(sequence):
        for run in study.streams.get((condition, begun), ()):
            found.setdefault(run.replicate, []).append(run)
    return found


def _regret(runs: Iterable[RunResults], without: Mapping[str, float]) -> tuple[float, ...]:
    """Add up what is lost, as far as both have come."""
    lost: list[float] = []
    for run in runs:
        for item in run.spec.item_ids:
            if item not in run.outcomes or item not in without:
                return tuple(accumulate(lost))
            lost.append(without[item] - run.outcomes[item])
    return tuple(accumulate(lost))


def milestones(study: StudyLog, partitions: Mapping[str, Partition]) -> tuple[Milestone, ...]:
    """Return accuracies along training, ends included, where a plan has milestones at all."""
    along = {_track(cell) for cell in study.cells.values() if cell.key.at is not None}
    cells = [cell for cell in study.cells.values() if _track(cell) in along]
    return tuple(
        Milestone(key, each.accuracy, each.rr, each.nl, length if key.at is None else key.at)
        for each in retentions_of(cells, study, partitions)
        for key in (each.key,)
        for length in (study.stream_length(key.condition, key.sequence),)
    )


def _track(cell: Cell) -> tuple[str, str, str]:
    return cell.key.condition, cell.key.sequence, cell.key.task


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
    """The earlier tasks' share of what is retrieved."""
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
    for sequence, task in study.backward:
        for condition in study.memories:
            start = CellKey(condition, learned(sequence, task), task)
            end = study.stream_length(condition, sequence)
            wanted = (condition, sequence, task)
            along = [cell.key for cell in study.cells.values() if _track(cell) == wanted]
            places = [(end if key.at is None else key.at, key) for key in along]
            for at, key in sorted([(0, start), *places]):
                if key in by_key:
                    success = accuracy(study.cells[key], orders=orders)
                    yield _test(key, success, sequence, at, by_key[key])


def _test(
    key: CellKey, success: Metric, sequence: str, at: int, retrieval: CellRetrieval
) -> Tested:
    own = Metric(mean_of(retrieval.own), success.done, success.planned, success.n_items)
    return Tested(key.condition, sequence, key.task, at, success, own, retrieval.spread("bank_own"))


def _windows(study: StudyLog, banks: Banks) -> Iterator[Window]:
    families = domains(study)
    for sequence in study.sequences:
        earlier = {families[task] for task in phases(sequence)[:-1]}
        for condition in study.memories:
            runs = study.streams.get((condition, sequence), ())
            tracks = [list(_episodes(run, banks, earlier)) for run in runs]
            length = study.stream_length(condition, sequence)
            yield from _cut(condition, sequence, tracks, length)


@dataclass(frozen=True, slots=True)
class _Episode:
    success: float
    retrieved: tuple[float, ...]
    """1 for each retrieved item of an earlier task, 0 for each other one."""
    bank: float | None
    """The earlier tasks' share of the bank."""


def _episodes(run: RunResults, banks: Banks, earlier: Collection[str]) -> Iterator[_Episode]:
    for result, (_, bank) in zip(run.results, banks.along(run.spec.name), strict=False):
        items = [item for query in queries_in(result) for item in bank.known(query.items)]
        found = tuple(float(item.source_domain in earlier) for item in items)
        shares = [bank.share(domain) for domain in earlier]
        share = None if None in shares else sum(each for each in shares if each is not None)
        yield _Episode(float(bool(result["success"])), found, share)


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
