"""The log of a continual study as cells (condition, sequence, task, moment), and the banks folded from it.

A cell holds one evaluation per replicate. Outcomes are found by item, never by position: the
order of items differs between replicates. A bank is what it was before an item of a stream.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np

from langgraft._core.canonical import JSON
from langgraft._core.errors import StudyError
from langgraft.benchmarks.comparison.estimates import OrderEffects, order_effects
from langgraft.benchmarks.comparison.outcomes import Scores, matrices
from langgraft.benchmarks.continual.plan import PAIR, alone, phases
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.memory.model import Add, BankContent, MemoryDelta, MemoryItem, Remove

BASELINE = "none"
RERUN = "rerun"
UNTRAINED = frozenset({BASELINE, RERUN})
"""Conditions without memory: nothing is learned, so replicates differ by sampling alone."""


@dataclass(frozen=True, slots=True, order=True)
class CellKey:
    """Which evaluation: the paper's `Acc_task(∅→sequence)` under one condition."""

    condition: str
    sequence: str
    """`A`, `B`, `A>B`, `A>B>C` …, or a mixture `A+B`; empty without memory."""
    task: str
    """The task family tested."""
    at: int | None = None
    """After how many training items of the last phase; `None` at its end."""

    @property
    def met(self) -> bool:
        """Whether the task tested is one of those learned; without memory there are none to meet."""
        return not self.sequence or self.task in phases(self.sequence)


def beginnings(sequence: str) -> tuple[str, ...]:
    """Return what a sequence comes to, phase by phase: `A`, `A>B`, `A>B>C`; a mixture is one phase."""
    parts = sequence.split(">")
    return tuple(">".join(parts[:number]) for number in range(1, len(parts) + 1))


@dataclass(frozen=True)
class RunResults:
    """What a run of the plan has come to."""

    spec: RunSpec
    results: tuple[Mapping[str, JSON], ...]
    """In the order of the stream."""

    @property
    def replicate(self) -> int:
        """Which repetition it is."""
        value = self.spec.factors["replicate"]
        assert isinstance(value, int)
        return value

    @property
    def stream(self) -> tuple[str, str]:
        """Condition and sequence of a training run."""
        return str(self.spec.factors["condition"]), str(self.spec.factors["sequence"])

    @property
    def planned(self) -> int:
        """Items of the run."""
        return self.spec.length

    @property
    def done(self) -> int:
        """Items with a result."""
        return len(self.results)

    @cached_property
    def by_item(self) -> Mapping[str, Mapping[str, JSON]]:
        """Result of each item.

        Raises:
            StudyError: A result is of an item the run does not have, or has already.
        """
        found: dict[str, Mapping[str, JSON]] = {}
        expected = set(self.spec.item_ids)
        for result in self.results:
            item = str(result["task_id"])
            if item not in expected or item in found:
                msg = "there is a result for an item that is not of this run, or is there twice"
                raise StudyError(msg, run=self.spec.name, item=item)
            found[item] = result
        return found

    @cached_property
    def outcomes(self) -> Mapping[str, float]:
        """1 for each item that succeeded, 0 for each that did not."""
        return {item: float(bool(result["success"])) for item, result in self.by_item.items()}


@dataclass(frozen=True)
class Cell:
    """All replicates of one evaluation."""

    key: CellKey
    runs: tuple[RunResults, ...]

    @cached_property
    def scores(self) -> Scores:
        """Outcomes by replicate and item."""
        return {run.replicate: run.outcomes for run in self.runs}

    @property
    def done(self) -> int:
        """Episodes with a result."""
        return sum(run.done for run in self.runs)

    @property
    def planned(self) -> int:
        """Episodes planned."""
        return sum(run.planned for run in self.runs)


@dataclass(frozen=True)
class StudyLog:
    """Everything the analysis looks at, read once."""

    cells: Mapping[CellKey, Cell]
    """Evaluations, in plan order."""
    training: tuple[RunResults, ...]
    """Training streams, in plan order."""

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """All conditions in plan order."""
        return tuple(dict.fromkeys(key.condition for key in self.cells))

    @property
    def memories(self) -> tuple[str, ...]:
        """Conditions that learn: the family of hypotheses."""
        beside = {*UNTRAINED, *self.controls, *self.probes}
        return tuple(c for c in self.conditions if c not in beside)

    @property
    def controls(self) -> tuple[str, ...]:
        """Negative controls, named `condition+control`."""
        return tuple(c for c in self.conditions if "+" in c)

    @property
    def probes(self) -> tuple[str, ...]:
        """Crossed probes, named `retrieval@pool`."""
        return tuple(c for c in self.conditions if "@" in c)

    @cached_property
    def sequences(self) -> tuple[str, ...]:
        """The cross-task sequences, the beginnings of longer ones among them."""
        found = (key.sequence for key in self.cells if ">" in key.sequence)
        return tuple(dict.fromkeys(found))

    @property
    def whole_sequences(self) -> tuple[str, ...]:
        """Those that are no beginning of another."""
        begun = {sequence.rpartition(">")[0] for sequence in self.sequences}
        return tuple(sequence for sequence in self.sequences if sequence not in begun)

    @property
    def long_sequences(self) -> tuple[str, ...]:
        """Those that need a matrix: of more than two tasks, or tested on tasks still to come."""
        come = {key.sequence for key in self.cells if not key.met}
        return tuple(
            sequence
            for sequence in self.whole_sequences
            if len(phases(sequence)) > 2 or come & {*beginnings(sequence)}  # noqa: PLR2004
        )

    @cached_property
    def mixtures(self) -> tuple[str, ...]:
        """The streams in which tasks are mixed, `A+B`."""
        return tuple(dict.fromkeys(key.sequence for key in self.cells if "+" in key.sequence))

    @property
    def backward(self) -> tuple[tuple[str, str], ...]:
        """Each cross-task sequence with each of its earlier tasks."""
        return tuple((each, task) for each in self.sequences for task in phases(each)[:-1])

    @cached_property
    def streams(self) -> Mapping[tuple[str, str], Sequence[RunResults]]:
        """Training streams by condition and sequence."""
        found: dict[tuple[str, str], list[RunResults]] = {}
        for run in self.training:
            found.setdefault(run.stream, []).append(run)
        return found

    def stream_length(self, condition: str, sequence: str) -> int:
        """Return the items of the last phase of a sequence; 0 where nothing is trained."""
        return max((run.planned for run in self.streams.get((condition, sequence), ())), default=0)

    @property
    def runs(self) -> Iterator[RunResults]:
        """All runs: evaluations, then training."""
        for cell in self.cells.values():
            yield from cell.runs
        yield from self.training

    @cached_property
    def accuracy_orders(self) -> OrderEffects | None:
        """What training orders do to the accuracies of memories, pooled over all of them."""
        return self.orders(dict.fromkeys({key.task for key in self.cells}))

    def orders(self, subsets: Mapping[str, frozenset[str] | None]) -> OrderEffects | None:
        """Pool what training orders do to the accuracies of memories on some items of each task."""
        cells = (cell for name in self.memories for cell in self.final_cells(name))
        found = (matrices([cell.scores], subsets[cell.key.task]) for cell in cells)
        return order_effects(each[0] for each in found if each is not None)

    def final_cells(self, condition: str) -> tuple[Cell, ...]:
        """Return the evaluations of a condition at the end of each sequence, of tasks met in it."""
        return tuple(
            cell
            for key, cell in self.cells.items()
            if key.condition == condition and key.at is None and key.met
        )


def read_study_log(log: PlanLogReader) -> StudyLog:
    """Read all results of a continual study."""
    training = []
    cells: dict[CellKey, list[RunResults]] = {}
    for spec in log.runs:
        run = RunResults(spec, tuple(_light(result) for result in log.results(spec.name)))
        if spec.factors["kind"] == "train":
            training.append(run)
        else:
            cells.setdefault(cell_key(spec), []).append(run)
    return StudyLog({key: Cell(key, tuple(runs)) for key, runs in cells.items()}, tuple(training))


_TEXTS = frozenset({"steps", "reflection", "lessons", "compared_with", "validation", "dropped"})
_QUESTIONS = frozenset({"query", "searched"})


def _light(result: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return a result without its long texts: only case pages show them, and read them again."""
    light = {name: value for name, value in result.items() if name not in _TEXTS}
    recalls = cast("Sequence[Mapping[str, JSON]]", light.get("recalls") or ())
    light["recalls"] = [
        {name: value for name, value in recall.items() if name not in _QUESTIONS}
        for recall in recalls
    ]
    return light


def cell_key(spec: RunSpec) -> CellKey:
    """Return the cell an evaluation belongs to."""
    factors = spec.factors
    at = factors.get("at")
    assert at is None or isinstance(at, int)
    return CellKey(str(factors["condition"]), str(factors["sequence"]), str(factors["task"]), at)


def pooled(cells: Iterable[Cell]) -> Scores:
    """Average outcomes per replicate and item over the cells in which the item is tested.

    An item counts where all of these cells have a result for it.
    """
    found: dict[int, dict[str, list[float]]] = {}
    wanted: dict[int, dict[str, int]] = {}
    for cell in cells:
        for run in cell.runs:
            counts = wanted.setdefault(run.replicate, {})
            for item in run.spec.item_ids:
                counts[item] = counts.get(item, 0) + 1
            outcomes = found.setdefault(run.replicate, {})
            for item, outcome in run.outcomes.items():
                outcomes.setdefault(item, []).append(outcome)
    return {
        replicate: {
            item: float(np.mean(values))
            for item, values in outcomes.items()
            if len(values) == wanted[replicate][item]
        }
        for replicate, outcomes in found.items()
    }


class PairLog:
    """One pair of a study with several, as if it were the whole study.

    Its runs have the names they have in a plan of that pair alone.

    Args:
        log: The log of a plan with several pairs.
        pair: Name of the pair.
    """

    def __init__(self, log: PlanLogReader, pair: str) -> None:
        self.whole = log
        self._pair = pair

    @cached_property
    def runs(self) -> tuple[RunSpec, ...]:
        """The runs of the pair."""
        return tuple(alone(run) for run in self.whole.runs if run.factors[PAIR] == self._pair)

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the committed results of a run, in order."""
        return self.whole.results(self._whole(name))

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return the deltas each committed item of a run caused, in order."""
        return self.whole.deltas(self._whole(name))

    @property
    def manifest(self) -> Mapping[str, JSON]:
        """The manifest of the whole plan."""
        return self.whole.manifest

    def _whole(self, name: str) -> str:
        return f"{self._pair}/{name}"


@dataclass
class Bank:
    """A bank while it grows."""

    content: BankContent = field(default_factory=BankContent)
    insights: dict[str, int] = field(default_factory=dict)
    """Item → lessons it holds: distinct ones of its episode that its text contains."""
    domains: Counter[str] = field(default_factory=Counter)
    """Task family → items in the bank."""

    @property
    def items(self) -> Mapping[str, MemoryItem]:
        """Items by id."""
        return self.content.items

    def known(self, ids: Iterable[str]) -> list[MemoryItem]:
        """Return the items with these ids; what memory made up on the way is in no bank."""
        return [self.items[identity] for identity in ids if identity in self.items]

    def share(self, domain: str) -> float | None:
        """Return the share of the items that are of a task family; `None` for an empty bank."""
        return self.domains[domain] / len(self.items) if self.items else None

    def take(self, deltas: Sequence[MemoryDelta], lessons: Collection[str]) -> None:
        """Apply what one episode changed.

        Args:
            deltas: Its deltas, in order.
            lessons: The lessons that were distilled from it.

        Raises:
            InputError: A change does not fit the bank.
        """
        changes = [change for delta in deltas for change in delta]
        for change in changes:
            match change:
                case Add(item):
                    self.domains[item.source_domain] += 1
                    self.insights[item.id] = sum(text in item.text for text in set(lessons))
                case Remove(identity, _) if identity in self.items:
                    self.domains[self.items[identity].source_domain] -= 1
            self.content.apply(change)


class Banks:
    """Folds the banks of a study, one stream at a time: nothing is kept in between.

    Args:
        study: The study.
        log: Its log.
    """

    def __init__(self, study: StudyLog, log: PlanLogReader) -> None:
        self._streams = {run.spec.name: run for run in study.training}
        self._log = log

    def along(self, name: str) -> Iterator[tuple[int, Bank]]:
        """Yield the bank of a stream before each of its items, and after the last.

        It is the same bank each time, which goes on growing: look at it before going on.

        Raises:
            InputError: The deltas do not fold.
        """
        spec = self._streams[name].spec
        bank = self._start(spec)
        yield 0, bank
        for number, (deltas, lessons) in enumerate(self._growth(name), start=1):
            bank.take(deltas, lessons)
            yield number, bank

    def at(self, spec: RunSpec) -> Bank | None:
        """Return the bank a run starts from; `None` where it is not there yet."""
        if spec.source is None:
            return Bank()
        run = self._streams[spec.source.run]
        wanted = run.planned if spec.source.items is None else spec.source.items
        if run.done < wanted:
            return None
        return next(bank for number, bank in self.along(run.spec.name) if number == wanted)

    def _start(self, spec: RunSpec) -> Bank:
        found = self.at(spec)
        return Bank() if found is None else found

    def _growth(self, name: str) -> Iterator[tuple[Sequence[MemoryDelta], list[str]]]:
        results, deltas = self._log.results(name), self._log.deltas(name)
        for result, delta in zip(results, deltas, strict=True):
            lessons = cast("Sequence[Mapping[str, str]]", result.get("lessons") or ())
            yield delta, [lesson["text"] for lesson in lessons]


def domain_of(run: RunResults) -> str:
    """Return the task family of a run: by its own word, or by the ids of its items."""
    spec = run.spec
    guess = spec.item_ids[0].rpartition("/")[0] if spec.item_ids else str(spec.factors["task"])
    return str(spec.factors.get("domain", guess))


def domains(study: StudyLog) -> dict[str, str]:
    """Return the task family of each task that is tested."""
    found: dict[str, str] = {}
    for key, cell in study.cells.items():
        found.setdefault(key.task, domain_of(cell.runs[0]))
    return dict(sorted(found.items()))
