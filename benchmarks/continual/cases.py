"""Episodes shown in full, chosen by rule, never by hand: asked, retrieved, injected, done, and without.

What is on a page comes from the log alone. The injected text is not in it: it is put together
again from the items retrieved and the bank as it stood, as `render_block` did. All of it is cut to a
bounded length, for much of it a model wrote.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.outcomes import in_common
from langgraft.benchmarks.continual.cells import (
    BASELINE,
    Bank,
    Banks,
    Cell,
    CellKey,
    RunResults,
    StudyLog,
    domain_of,
)
from langgraft.benchmarks.continual.metrics import Partition, Transfer
from langgraft.benchmarks.continual.plan import phases
from langgraft.benchmarks.continual.retrieval import CellRetrieval, queries_in
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.reporting.words import shortened, signed
from langgraft.memory.recall import render_block

LONGEST_KEY = 300
MOST_STEPS = 60
MOST_RECALLS = 12
MOST_ENTRIES = 20

Rule: TypeAlias = Literal[
    "loss", "gain", "transfer loss", "transfer gain", "concentration", "dilution"
]

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
    "transfer loss": (
        "For each memory and sequence whose forward transfer, or whose ΔNL, is below zero: of the"
        " test items of the later task, the one whose success falls furthest below that after this"
        " task alone (mean over repetitions; among equals, items failed without memory first, then"
        " by id); the first repetition in which it fails after both tasks and succeeds after one."
    ),
    "transfer gain": (
        "The same of memories and sequences whose forward transfer, or whose ΔNL, is above zero:"
        " the item whose success rises furthest above that after the later task alone; the first"
        " repetition in which it succeeds after both tasks and fails after one."
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
    """One episode with memory, and the same instance without, or after its task alone."""

    name: str
    """Name of its page, without ending."""
    rule: Rule
    key: CellKey
    item: str
    run: RunResults
    baseline: RunResults
    """The run of the same number that it is held to: the baseline, or that after one task."""
    reason: str
    """The number it was chosen by."""

    @property
    def about_transfer(self) -> bool:
        """Whether it is held to the same memory after the task alone, and not to none."""
        return self.rule.startswith("transfer")

    @property
    def titles(self) -> tuple[str, str]:
        """What the two episodes are called."""
        if self.about_transfer:
            return f"After {self.key.sequence.replace('>', '→')}", f"After {self.key.task} alone"
        return "With memory", "Without"

    @property
    def succeeded(self) -> tuple[bool, bool]:
        """Whether each of the two episodes succeeded."""
        return bool(self.run.outcomes[self.item]), bool(self.baseline.outcomes[self.item])


def choose_cases(
    study: StudyLog,
    found: Sequence[CellRetrieval],
    transfers: Sequence[Transfer] = (),
    partitions: Mapping[str, Partition] | None = None,
) -> tuple[Case, ...]:
    """Choose the episodes to show, by `RULES`."""
    chosen = [
        *_extremes(study),
        *_transfers(study, transfers, partitions or {}),
        *_concentration(study, found),
        *_dilution(study, found),
    ]
    return tuple(
        Case(f"case-{number:02}", rule, pair.key, item, pair.run, pair.base, reason)
        for number, (rule, pair, item, reason) in enumerate(chosen, start=1)
    )


_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class _Pair:
    """A run of a cell, and the run of the same number it is held to; both have all results."""

    key: CellKey
    run: RunResults
    base: RunResults


_Choice: TypeAlias = tuple[Rule, _Pair, str, str]


def _extremes(study: StudyLog) -> Iterator[_Choice]:
    for condition in study.memories:
        for sequence in study.whole_sequences:
            cells = [cell for cell in study.final_cells(condition) if cell.key.sequence == sequence]
            effects = [effect for cell in cells for effect in _effects(study, cell)]
            losses = sorted((value, item, cell) for value, item, cell in effects if value < 0)
            gains = sorted((-value, item, cell) for value, item, cell in effects if value > 0)
            yield from _extreme(study, "loss", losses)
            yield from _extreme(study, "gain", gains)


def _transfers(
    study: StudyLog, transfers: Sequence[Transfer], partitions: Mapping[str, Partition]
) -> Iterator[_Choice]:
    """Choose items that are solved after their own task alone and failed after both, and back."""
    for row in transfers:
        if row.direction != "forward" or row.condition not in study.memories:
            continue
        alone = CellKey(row.condition, row.task, row.task)
        cell = study.cells[CellKey(row.condition, row.sequence, row.task)]
        hard = partitions[row.task].failed
        effects = [
            (value, item not in hard, item) for value, item, _ in _effects(study, cell, alone)
        ]
        signs = [each.estimate.value for each in (row.transfer, row.delta_nl) if each.estimate]
        against = f"against {row.task} alone"
        if any(value < 0 for value in signs):
            losses = sorted(each for each in effects if each[0] < 0)
            ranked = [(value, item, cell.key) for value, _, item in losses]
            yield from _extreme(study, "transfer loss", ranked, alone, against)
        if any(value > 0 for value in signs):
            gains = sorted((-value, easy, item) for value, easy, item in effects if value > 0)
            ranked = [(value, item, cell.key) for value, _, item in gains]
            yield from _extreme(study, "transfer gain", ranked, alone, against)


def _effects(
    study: StudyLog, cell: Cell, other: CellKey | None = None
) -> Iterator[tuple[float, str, CellKey]]:
    """Return how each item's success differs from the baseline's, or another cell's."""
    base = study.cells[other or CellKey(BASELINE, "", cell.key.task)]
    ours, theirs = in_common([cell.scores, base.scores])
    items = next(iter(ours.values()), {})
    for item in items:
        differences = [ours[run][item] - theirs[run][item] for run in ours]
        yield sum(differences) / len(differences), item, cell.key


def _extreme(
    study: StudyLog,
    rule: Rule,
    ranked: Sequence[tuple[float, str, CellKey]],
    other: CellKey | None = None,
    against: str = "against the baseline",
) -> Iterator[_Choice]:
    """Choose the first item, in the first run that goes the way the rule says."""
    rises = rule.endswith("gain")
    for value, item, key in ranked[:1]:
        reason = f"{signed(abs(value) if rises else -abs(value))} pp {against}"
        for pair in _pairs(study, key, other):
            ours, theirs = pair.run.outcomes[item], pair.base.outcomes[item]
            if (ours > theirs) if rises else (ours < theirs):
                yield rule, pair, item, reason
                return


def _pairs(study: StudyLog, key: CellKey, other: CellKey | None = None) -> Iterator[_Pair]:
    """Pair the runs of a cell with those of the same number of the baseline, or another cell."""
    held_to = study.cells[other or CellKey(BASELINE, "", key.task)]
    base = {run.replicate: run for run in held_to.runs}
    for run in study.cells[key].runs:
        against = base.get(run.replicate)
        if against is not None and run.done == run.planned and against.done == against.planned:
            yield _Pair(key, run, against)


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
        and cell.key.task in phases(cell.key.sequence)[:-1]
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


# What the pages show ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One retrieved item."""

    id: str
    score: float
    domain: str
    """Task family it was learned in; empty for an item that is in no bank."""
    own: bool
    """Whether that is the family of the task at hand."""
    episode: str
    success: bool
    key: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One retrieval."""

    step: int
    searched: str
    tied: int
    tokens: int
    entries: tuple[Entry, ...]
    injected: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One step of an episode."""

    number: int
    thought: str
    action: str
    observation: str


@dataclass(frozen=True, slots=True)
class Played:
    """How an episode went."""

    success: bool
    reason: str
    rounds: JSON
    turns: tuple[Turn, ...]
    left_out: int
    """Steps beyond those shown."""


@dataclass(frozen=True, slots=True)
class CasePage:
    """What the page of a case shows."""

    case: Case
    asked: tuple[Asked, ...]
    played: Played
    baseline: Played
    asked_alone: tuple[Asked, ...] = ()
    """Where the other episode had memory too: what it retrieved."""


def case_pages(cases: Sequence[Case], banks: Banks, log: PlanLogReader) -> Iterator[CasePage]:
    """Read what the pages show, one page at a time."""
    source, bank = None, Bank()
    for case in cases:
        if case.run.spec.source != source:  # cases of one evaluation share their bank
            source, bank = case.run.spec.source, banks.at(case.run.spec) or Bank()
        result = _result(log, case.run.spec.name, case.item)
        other = _result(log, case.baseline.spec.name, case.item)
        alone = banks.at(case.baseline.spec) if case.about_transfer else None
        yield CasePage(
            case=case,
            asked=_asked(result, bank, domain_of(case.run)),
            played=_played(result),
            baseline=_played(other),
            asked_alone=() if alone is None else _asked(other, alone, domain_of(case.baseline)),
        )


def _result(log: PlanLogReader, run: str, item: str) -> Mapping[str, JSON]:
    return next(result for result in log.results(run) if result["task_id"] == item)


def _asked(result: Mapping[str, JSON], bank: Bank, domain: str) -> tuple[Asked, ...]:
    recalls = cast("Sequence[Mapping[str, Any]]", result.get("recalls") or ())
    return tuple(_one(recall, bank, domain) for recall in recalls[:MOST_RECALLS])


def _one(recall: Mapping[str, Any], bank: Bank, domain: str) -> Asked:
    ids = [str(identity) for identity in recall.get("item_ids", ())]
    scores = [float(score) for score in recall.get("scores", ())]
    pairs = list(zip(ids, scores, strict=False))[:MOST_ENTRIES]
    return Asked(
        step=int(recall.get("step", 0)),
        searched=shortened(str(recall.get("searched") or recall.get("query", ""))),
        tied=int(recall.get("tied", 0)),
        tokens=int(recall["tokens"]),
        entries=tuple(_entry(identity, score, bank, domain) for identity, score in pairs),
        injected=shortened(render_block([item.text for item in bank.known(ids)])),
    )


def _entry(identity: str, score: float, bank: Bank, domain: str) -> Entry:
    item = bank.items.get(identity)
    if item is None:
        return Entry(shortened(identity, LONGEST_KEY), score, "", False, "", False, "")
    own, key = item.source_domain == domain, shortened(item.retrieval_key, LONGEST_KEY)
    name = shortened(item.id, LONGEST_KEY)
    episode = shortened(item.episode_id, LONGEST_KEY)
    return Entry(name, score, item.source_domain, own, episode, item.success is True, key)


def _played(result: Mapping[str, JSON]) -> Played:
    steps = cast("Sequence[Sequence[Any]]", result.get("steps") or ())
    turns = tuple(
        Turn(number, *(shortened(str(text)) for text in step))
        for number, step in enumerate(steps[:MOST_STEPS])
    )
    return Played(
        success=bool(result["success"]),
        reason=str(result.get("reason", "")),
        rounds=result.get("rounds"),
        turns=turns,
        left_out=len(steps) - len(turns),
    )
