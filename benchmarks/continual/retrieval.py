"""What memory retrieved: measures of one evaluation, and of all replicates of a cell.

Every retrieval counts as a query, so an episode that asks again counts more than once. The
paper finds that a bank can look diverse while what is retrieved from it is not (retrieval
diversity collapse, continual-memory Appendix D); these are its measures, and a few beside:

key diversity          1 - mean pairwise TF-IDF cosine of the keys in the bank
context diversity      the same of the items retrieved for all queries, repetitions included: "how
                       varied the items actually retrieved across all test queries are" (§D)
between contexts       the same of the injected contexts, the texts of one query's items joined:
                       stricter, because variety that every query gets alike does not count
coverage of the bank   distinct items retrieved / items in the bank
coverage of the slots  distinct items retrieved / items retrieved, repetitions included
                       (the paper's Figure 11b: 13 of 240)
top-1 concentration    largest share of queries that one item is the best for (Figure 11c)
effective top-1 items  1 / Σ p², with p the share of queries each item is the best for
own-task share         items retrieved that are of the query's own task family / items retrieved
tie rate               queries whose best score is shared by several items of the bank

After X→T a query of T may be answered by an experience of X (§3.1, §F.1). Each test episode belongs
to one *origin*, that of the best item of its first retrieval; its change is its outcome after X→T
less that of the same item and run after T alone. Changes weighted by their episodes add up to FWT, so
that one sees from which retrievals a transfer comes, on easy items and on hard ones.

They add up by recalled *key* as well: the part of a key is the sum of the changes of the tests for which
an item of that key comes first, over all tests. Items of one key answer a query equally well, and which
of them comes first is a matter of ties. FWT *without* a key takes the outcomes of these tests to be those
after T alone: their change is 0.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.outcomes import (
    Metric,
    Scores,
    Spread,
    differences_of,
    in_common,
    pooled_spread,
    spread_of,
)
from langgraft.benchmarks.continual.cells import (
    UNTRAINED,
    Bank,
    Banks,
    Cell,
    CellKey,
    RunResults,
    StudyLog,
    domain_of,
)
from langgraft.benchmarks.continual.metrics import Partition, Transfer, count, metric_of
from langgraft.benchmarks.continual.plan import phases
from langgraft.memory.rankers.diversity import mean_pairwise_diversity

JOIN = "\n\n"
"""Between the texts of one context, as in the block that the agent is given."""

Subset: TypeAlias = Literal["all", "easy", "hard"]

SUBSETS: Final[Mapping[Subset, str]] = {
    "all": "all items",
    "easy": "solved without memory",
    "hard": "failed without memory",
}


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one evaluation; `None` where there is nothing to measure."""

    key_diversity: float | None
    context_diversity: float | None
    between_contexts: float | None
    coverage_bank: float | None
    coverage_slots: float | None
    top1_share: float | None
    top1_effective: float | None
    own_share: float | None
    tie_rate: float | None
    """`None` also where receipts do not tell."""
    empty_share: float | None
    """Queries that retrieved nothing."""
    items: float | None
    """Items per retrieval."""
    insights: float | None
    """Lessons in these items: a bundle holds several, a raw trajectory none."""
    tokens: float | None
    """Tokens per retrieval, frame included."""
    tokens_per_episode: float | None
    bank_own: float | None
    """Items of the bank that are of the query's own task family / items in the bank."""
    bank_items: float
    queries: float


SHARES = frozenset(
    {
        *("coverage_bank", "coverage_slots", "top1_share", "own_share", "tie_rate"),
        *("empty_share", "bank_own"),
    }
)
"""Measures that are shares and are shown in percent."""

MEASURES = tuple(each.name for each in fields(Measures))


@dataclass(frozen=True, slots=True)
class First:
    """The best item of an episode's first retrieval."""

    item: str
    key: str
    domain: str
    """The task family it was learned in."""


@dataclass(frozen=True, slots=True)
class RunRetrieval:
    """What one evaluation retrieved."""

    replicate: int
    measures: Measures
    own: Mapping[str, float]
    """Test item → own-task share of what was retrieved for it."""
    top1: str | None
    """The item that is the best for most queries."""
    first: Mapping[str, First] = field(default_factory=dict)
    """Test item → the best item of its first retrieval, where that is an item of the bank."""


@dataclass(frozen=True, slots=True)
class CellRetrieval:
    """What the replicates of a cell retrieved."""

    key: CellKey
    runs: tuple[RunRetrieval, ...]

    def spread(self, measure: str) -> Spread | None:
        """Return the mean of a measure over the replicates, with its range."""
        found = [getattr(run.measures, measure) for run in self.runs]
        return spread_of(value for value in found if value is not None)

    @property
    def own(self) -> Scores:
        """Own-task share by replicate and test item."""
        return {run.replicate: run.own for run in self.runs}

    @property
    def values(self) -> Mapping[str, Spread | None]:
        """All measures by name."""
        return {name: self.spread(name) for name in MEASURES}


def retrievals(study: StudyLog, banks: Banks) -> tuple[CellRetrieval, ...]:
    """Measure what every evaluation of memories and crossed probes retrieved.

    Controls are left out: what they inject is not what was retrieved.
    """
    found: dict[CellKey, list[RunRetrieval]] = {}
    for stream, waiting in _by_source(study).items():
        for number, bank in banks.along(stream):
            evaluations = waiting.pop(number, ())
            keys = [item.retrieval_key for item in bank.items.values()] if evaluations else []
            diversity = mean_pairwise_diversity(keys)
            for key, run in evaluations:
                found.setdefault(key, []).append(measure(run, bank, diversity))
            if not waiting:
                break
    return tuple(CellRetrieval(key, tuple(found[key])) for key in study.cells if key in found)


Waiting: TypeAlias = dict[int, list[tuple[CellKey, RunResults]]]
"""After how many items of a stream → the evaluations that read its bank then."""


def _by_source(study: StudyLog) -> Mapping[str, Waiting]:
    """Group the evaluations by the stream whose banks they read."""
    lengths = {run.spec.name: run.planned for run in study.training}
    left_out = {*UNTRAINED, *study.controls}
    found: dict[str, Waiting] = {}
    for key, cell in study.cells.items():
        for run in cell.runs:
            source = run.spec.source
            if key.condition in left_out or source is None or not run.done:
                continue
            at = lengths[source.run] if source.items is None else source.items
            found.setdefault(source.run, {}).setdefault(at, []).append((key, run))
    return found


@dataclass(frozen=True, slots=True)
class Query:
    """One retrieval of an episode."""

    task: str
    """The test item."""
    items: tuple[str, ...]
    """What was retrieved, best first."""
    tokens: int
    tied: int
    """Items of the bank that share the best score; 0 where that is not known."""


def queries_in(result: Mapping[str, JSON]) -> Iterator[Query]:
    """List the retrievals of an episode, in order."""
    for recall in cast("Sequence[Mapping[str, Any]]", result.get("recalls") or ()):
        yield Query(
            str(result["task_id"]),
            tuple(recall.get("item_ids", ())),
            recall["tokens"],
            recall.get("tied", 0),
        )


def measure(run: RunResults, bank: Bank, key_diversity: float | None) -> RunRetrieval:
    """Measure what an evaluation retrieved from its bank."""
    asked = [query for result in run.results for query in queries_in(result)]
    filled = [query for query in asked if query.items]
    slots = [item for query in filled for item in query.items]
    winners = Counter(query.items[0] for query in filled)
    own = own_slots(filled, bank, domain_of(run))
    known = [query.tied for query in filled if query.tied]
    contexts = [JOIN.join(item.text for item in bank.known(query.items)) for query in filled]
    measures = Measures(
        key_diversity=key_diversity,
        context_diversity=mean_pairwise_diversity([item.text for item in bank.known(slots)]),
        between_contexts=mean_pairwise_diversity(contexts),
        coverage_bank=_ratio(len(set(slots)), len(bank.items)),
        coverage_slots=_ratio(len(set(slots)), len(slots)),
        top1_share=_ratio(max(winners.values(), default=0), len(filled)),
        top1_effective=effective_number(winners.values()),
        own_share=_mean([slot for slots in own.values() for slot in slots]),
        tie_rate=_mean([float(tied > 1) for tied in known]),
        empty_share=_ratio(len(asked) - len(filled), len(asked)),
        items=_ratio(len(slots), len(asked)),
        insights=_mean(
            [float(sum(bank.insights.get(item, 0) for item in query.items)) for query in asked]
        ),
        tokens=_mean([float(query.tokens) for query in asked]),
        tokens_per_episode=_ratio(sum(query.tokens for query in asked), run.done),
        bank_own=bank.share(domain_of(run)),
        bank_items=float(len(bank.items)),
        queries=float(len(asked)),
    )
    top = min(winners, key=lambda item: (-winners[item], item), default=None)
    shares = {task: float(np.mean(each)) for task, each in own.items()}
    return RunRetrieval(run.replicate, measures, shares, top, first_recalled(asked, bank))


def first_recalled(queries: Iterable[Query], bank: Bank) -> Mapping[str, First]:
    """Return for each test item the best of what is retrieved for it first.

    Items for which nothing is retrieved then, or only what is in no bank, are left out.
    """
    first: dict[str, Query] = {}
    for query in queries:
        first.setdefault(query.task, query)
    best = {task: bank.known(query.items)[:1] for task, query in first.items()}
    return {
        task: First(item.id, item.retrieval_key, item.source_domain)
        for task, items in best.items()
        for item in items
    }


def own_slots(queries: Iterable[Query], bank: Bank, domain: str) -> Mapping[str, Sequence[float]]:
    """Return, per test item, 1 for each retrieved item that is of the task family and else 0."""
    slots: dict[str, list[float]] = {}
    for query in queries:
        own = [float(item.source_domain == domain) for item in bank.known(query.items)]
        if own:
            slots.setdefault(query.task, []).extend(own)
    return slots


def effective_number(counts: Iterable[int]) -> float | None:
    """Return the effective number of kinds, `1 / Σ p²`; `None` where there are none.

    So many equally frequent kinds would be as concentrated as these are.
    """
    known = list(counts)
    total = sum(known)
    return total**2 / sum(count**2 for count in known) if total else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


# What came of retrieving from the own task and from the other one --------------------------------


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
        and cell.key.task == phases(cell.key.sequence)[-1]
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
    domain = domain_of(after.runs[0])
    for run in cell.runs:
        ours = after.scores[run.replicate]
        theirs = alone.scores.get(run.replicate, {})
        for item in sorted(items & ours.keys() & theirs.keys()):
            first = run.first.get(item)
            own = None if first is None else first.domain == domain
            yield _Episode(run.replicate, own, ours[item], theirs[item])


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
    return pooled_spread(by_run.values())


# Which keys a forward transfer hangs on -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recalled:
    """A key of one task family, and the tests for which an item of it is recalled first."""

    key: str
    domain: str
    """The task family it was learned in."""
    items: int
    """Items of the key that come first in some test; those of one training instance are one."""
    episodes: int
    """The tests, over all runs."""
    share: Spread
    """Their share of all tests."""
    part: float
    """What they add to FWT: the sum of their changes, over all tests."""


@dataclass(frozen=True, slots=True)
class FirstRecall:
    """A forward transfer by the keys that are recalled first."""

    transfer: Transfer
    other_first: Spread | None
    """Share of the tests that begin with an item of another task, of those that retrieve at all."""
    top: Recalled
    """The key that is first in most tests."""
    largest: Recalled
    """The key with the largest part in the direction of FWT."""
    without: Metric
    """FWT without that key."""

    @property
    def hangs(self) -> bool:
        """Whether FWT hangs on one key.

        It can be told from 0, and without the key it cannot, or less than half of it is left.
        """
        whole, rest = self.transfer.transfer, self.without.estimate
        if whole.estimate is None or rest is None or not whole.complete:
            return False
        value = whole.estimate.value
        stays = rest.excludes_zero and rest.value * value > 0
        return whole.estimate.excludes_zero and not (stays and 2 * abs(rest.value) >= abs(value))


def first_recalls(
    study: StudyLog, transfers: Iterable[Transfer], found: Sequence[CellRetrieval]
) -> tuple[FirstRecall, ...]:
    """Split each forward transfer of a memory by the keys that its tests recall first."""
    cells = {cell.key: cell for cell in found}
    split = []
    for row in transfers:
        cell = cells.get(CellKey(row.condition, row.sequence, row.task))
        if row.direction == "forward" and row.condition in study.memories and cell is not None:
            alone = study.cells[CellKey(row.condition, row.task, row.task)]
            both = in_common([study.cells[cell.key].scores, alone.scores])
            tests = list(_tests(cell, *both))
            if any(first is not None for _, _, first, _ in tests):
                split.append((row, study.cells[cell.key], alone, both, tests))
    sides = []
    for row, _, _, (after, before), tests in split:
        keys = _keys(tests)
        largest = _largest(keys, row)
        served = {(r, item) for r, item, first, _ in tests if first and _key(first) == _id(largest)}
        rest = {
            r: {i: before[r][i] if (r, i) in served else score for i, score in items.items()}
            for r, items in after.items()
        }
        sides.append((keys, largest, rest, before))
    estimates = differences_of((rest, before) for _, _, rest, before in sides)
    return tuple(
        FirstRecall(
            transfer=row,
            other_first=_spread(
                [(r, float(f.domain != domain_of(cell.runs[0]))) for r, _, f, _ in tests if f]
            ),
            top=min(keys, key=lambda each: (-each.episodes, each.key, each.domain)),
            largest=largest,
            without=metric_of(estimate, [cell, alone], count(cell, None)),
        )
        for (row, cell, alone, _, tests), (keys, largest, *_), estimate in zip(
            split, sides, estimates, strict=True
        )
    )


_Test: TypeAlias = tuple[int, str, First | None, float]
"""Run, test item, what is recalled first, and the change."""


def _tests(cell: CellRetrieval, after: Scores, before: Scores) -> Iterator[_Test]:
    for run in cell.runs:
        for item, success in after.get(run.replicate, {}).items():
            change = success - before[run.replicate][item]
            yield run.replicate, item, run.first.get(item), change


def _keys(tests: Sequence[_Test]) -> list[Recalled]:
    """Return all keys that are recalled first."""
    served: defaultdict[tuple[str, str], list[_Test]] = defaultdict(list)
    for test in tests:
        if test[2] is not None:
            served[_key(test[2])].append(test)
    found = []
    for place, theirs in served.items():
        mine = {(run, item) for run, item, _, _ in theirs}
        share = _spread([(run, float((run, item) in mine)) for run, item, _, _ in tests])
        assert share is not None
        items = len({first.item for _, _, first, _ in theirs if first is not None})
        part = sum(change for *_, change in theirs) / len(tests)
        found.append(Recalled(place[1], place[0], items, len(theirs), share, part))
    return found


def _largest(keys: Sequence[Recalled], row: Transfer) -> Recalled:
    """Return the key with the largest part in the direction of a transfer; of 0, in either."""
    value = 0.0 if row.transfer.estimate is None else row.transfer.estimate.value

    def along(each: Recalled) -> float:
        return each.part * value if value else abs(each.part)

    return min(keys, key=lambda each: (-along(each), -each.episodes, each.key, each.domain))


def _key(first: First) -> tuple[str, str]:
    return first.domain, first.key


def _id(recalled: Recalled) -> tuple[str, str]:
    return recalled.domain, recalled.key
