"""What a coding memory finds for errors it has not seen, and how alike errors of a task are.

Hits: each run is held out in turn. The bank is built from the others, and asked about every error of
the run that is held out, as when it is debugged. A *hit* is an entry among those recalled that
has the same exception class and package, or names the same API symbol. Chance is exact: the
probability that as many entries, drawn at random from those that might have been recalled, hold
at least one that would be a hit.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langgraft._core.lazy import require
from langgraft.benchmarks.comparison.estimates import Estimate, mean_estimate
from langgraft.benchmarks.comparison.verdicts import CONFIDENCE
from langgraft.benchmarks.mle.coding_memory import build_memory, journal_episodes
from langgraft.memory.embedders.named import HashingEmbeddings
from langgraft.memory.model import Episode, ErrorRecord, MemoryItem
from langgraft.memory.providers.coding import CodingMemory
from langgraft.memory.providers.coding.provider import CodingSettings
from langgraft.memory.providers.coding.tracebacks import canonical_error
from langgraft.memory.recall import RecallContext
from langgraft.nodes.search.journal import Journal
from langgraft.nodes.tracebacks import api_symbol, exception_class

_ENUMERATED: Final = 8
"""Most runs whose resamples are all enumerated: 6,435 of them."""
_FLIPS: Final = 2**14
"""Flips of signs at the most: all that 14 runs have, or so many drawn."""
_DRAWS: Final = 10_000

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """One error that the memory was asked about."""

    run: str
    task: str
    error: str
    package: str
    hit: bool
    chance: float
    """Probability of a hit for as many entries drawn at random."""
    recalled: int
    candidates: int
    """Entries that might have been recalled."""
    hits: int
    """How many of them would be a hit; 0: none can be."""

    @property
    def telling(self) -> bool:
        """Whether the error names an exception class or an API symbol: others cannot be hit."""
        return bool(exception_class(self.error) or api_symbol(self.error))


def alike(error: str, package: str, other: str, other_package: str) -> bool:
    """Say whether two canonical errors have the same class and package, or the same symbol."""
    name, symbol = exception_class(error), api_symbol(error)
    same_class = bool(name) and name == exception_class(other) and package == other_package
    return same_class or (bool(symbol) and symbol == api_symbol(other))


def chance_of_hit(hits: int, candidates: int, drawn: int) -> float:
    """Return the probability that a draw without replacement holds one of the hits."""
    drawn = min(drawn, candidates)
    return 1 - math.comb(candidates - hits, drawn) / math.comb(candidates, drawn)


def leave_one_run_out(
    journals: Sequence[Journal],
    *,
    tasks: Literal["all", "same"] = "all",
    settings: CodingSettings | None = None,
) -> list[Asked]:
    """Ask about every error of each run a memory of the other runs.

    Args:
        journals: The runs.
        tasks: Whose entries may be recalled; with `same`, runs that are the only ones of their
            task are not asked about.
        settings: The memory's other settings.
    """
    chosen = (settings or CodingSettings()).model_copy(update={"tasks": tasks})
    asked: list[Asked] = []
    for held_out in journals:
        others = [journal for journal in journals if journal is not held_out]
        if tasks == "same" and held_out.task not in {journal.task for journal in others}:
            continue
        asked += _ask_about(held_out, others, chosen)
    return asked


def _ask_about(
    held_out: Journal, others: Sequence[Journal], settings: CodingSettings
) -> list[Asked]:
    memory = build_memory(others, settings=settings)
    entries = [
        item
        for item in memory.content().items.values()
        if settings.tasks == "all" or item.task_id == held_out.task
    ]
    asked: list[Asked] = []
    for episode in journal_episodes(held_out):
        for record in episode.errors:
            context = _debugging(episode, record)
            found = memory.provide(episode.task, context).items
            asked.append(_judged(held_out, record, found, entries))
    return asked


def _debugging(episode: Episode, record: ErrorRecord) -> RecallContext:
    return RecallContext(
        domain=episode.domain,
        task_id=episode.task_id,
        episode_id=episode.id,
        stage="debug",
        observation=record.error,
    )


def _judged(
    run: Journal,
    record: ErrorRecord,
    found: Sequence[MemoryItem],
    entries: Sequence[MemoryItem],
) -> Asked:
    error = canonical_error(record.error)

    def would_hit(item: MemoryItem) -> bool:
        kept = str(item.metadata["error"]), str(item.metadata["package"])
        return alike(error, record.package, *kept)

    hits = sum(map(would_hit, entries))
    return Asked(
        run=run.run,
        task=run.task,
        error=error,
        package=record.package,
        hit=any(map(would_hit, found)),
        chance=chance_of_hit(hits, len(entries), len(found)) if found else 0.0,
        recalled=len(found),
        candidates=len(entries),
        hits=hits,
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Hits against chance, with two intervals of the difference."""

    n: int
    runs: int
    rate: float
    chance: float
    reachable: float
    """Share of the errors for which some entry would be a hit: no ranking can do better."""
    difference: float
    low: float
    """Lower end of the interval by runs."""
    high: float
    by_error: Estimate
    """The difference with errors taken as independent, which those of one run are not: too
    narrow an interval, shown beside the other."""
    p: float
    """Two-sided sign-flip p over runs' mean differences; it cannot fall below `2 / 2 ** runs`."""


def compare(asked: Sequence[Asked]) -> Comparison:
    """Compare hits with chance.

    The interval by runs is the percentile interval of the bootstrap that draws whole runs; all
    resamples are enumerated where runs are few. It says what another choice among *these* runs
    would have given. With five it is too narrow for runs at large: percentile intervals from so
    few clusters cover clearly less than they promise, and with two or three they say little.

    Raises:
        ValueError: Nothing was asked.
    """
    if not asked:
        msg = "nothing was asked, so that there is nothing to compare"
        raise ValueError(msg)
    by_run: dict[str, list[float]] = defaultdict(list)
    for each in asked:
        by_run[each.run].append(each.hit - each.chance)
    differences = [difference for run in by_run.values() for difference in run]
    low, high = bootstrap_by_runs(by_run)
    return Comparison(
        n=len(asked),
        runs=len(by_run),
        rate=float(np.mean([each.hit for each in asked])),
        chance=float(np.mean([each.chance for each in asked])),
        reachable=float(np.mean([each.hits > 0 for each in asked])),
        difference=float(np.mean(differences)),
        low=low,
        high=high,
        by_error=mean_estimate(np.array(differences)[:, None], bounds=(-1.0, 1.0)),
        p=sign_flip_p([float(np.mean(run)) for run in by_run.values()]),
    )


def bootstrap_by_runs(by_run: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean over errors, drawing whole runs."""
    sums = np.array([sum(run) for run in by_run.values()])
    sizes = np.array([len(run) for run in by_run.values()])
    counts, weights = _resamples(len(sums))
    means = counts @ sums / (counts @ sizes)
    order = np.argsort(means, kind="stable")
    reached = np.cumsum(weights[order])
    tail = (1 - CONFIDENCE) / 2

    def quantile(at: float) -> float:
        # Rounded: sums of weights are a little off, and a quantile must not jump for that.
        place = int(np.searchsorted(np.round(reached, 12), round(at, 12)))
        return float(means[order[min(place, len(order) - 1)]])

    return quantile(tail), quantile(1 - tail)


def _resamples(runs: int) -> tuple[Numbers, Numbers]:
    """Return how often each run is drawn in a resample, and how likely the resample is."""
    if runs > _ENUMERATED:
        sampled = np.random.default_rng(0).multinomial(runs, [1 / runs] * runs, size=_DRAWS)
        return sampled.astype(float), np.full(_DRAWS, 1 / _DRAWS)
    counts: list[list[int]] = []
    weights: list[float] = []
    for drawn in itertools.combinations_with_replacement(range(runs), runs):
        often = [drawn.count(run) for run in range(runs)]
        counts.append(often)
        ways = math.factorial(runs) // math.prod(map(math.factorial, often))
        weights.append(ways / runs**runs)
    return np.array(counts, dtype=float), np.array(weights)


def sign_flip_p(differences: Sequence[float]) -> float:
    """Return the two-sided p value of the mean under flips of signs, all of them if runs are few."""
    if len(differences) == 1:
        return 1.0
    stats: Any = require("scipy.stats", extra="bench", purpose="The analysis")
    flips = {"permutation_type": "samples", "n_resamples": _FLIPS, "rng": np.random.default_rng(0)}
    return float(stats.permutation_test((differences,), np.mean, **flips).pvalue)


# How alike errors are ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Likeness:
    """Similarities within and across tasks; means over tasks."""

    within: float
    across: float
    difference: Estimate
    """Over tasks, paired."""
    errors: int
    tasks: int

    @property
    def ratio(self) -> float:
        """Within to across."""
        return self.within / self.across if self.across else math.inf

    @property
    def t(self) -> float:
        """Of the paired difference."""
        return self.difference.value / self.difference.se if self.difference.se else math.inf


def likeness(
    memory: CodingMemory, *, nearest: int | None = None, embeddings: Embeddings | None = None
) -> Likeness:
    """Compare the errors of a memory within and across tasks (mle-agent-memory App. B).

    The paper gives a mean embedding similarity of 0.032 within tasks and 0.013 across, a ratio of 2.0
    to 4.9, t = 10.69 and d = 2.28, without saying of what. As d = t / √22, the test is paired over
    its 22 tasks; the scale is not that of a cosine. The reading taken here: the query is the
    canonical error of each entry; it is compared, by the cosine of an embedder's vectors, with the
    keys (error and fix) of the other entries of its task, and with those of other tasks; once with
    all of them, once with the `k` nearest, which is what retrieval would give. Means are taken by
    error, then by task, and the test is paired over tasks. The nearest of many are nearer than the
    nearest of few, so that the second reading favors the side with more entries.

    Args:
        memory: The memory; entries of tasks with a single entry are not asked about.
        nearest: Compare with so many nearest entries of each side; `None`: with all.
        embeddings: Give the vectors; `None` takes those of the memory's default, hashed words.

    Raises:
        ValueError: There are fewer than two tasks of at least two entries.
    """
    items = sorted(memory.content().items.values(), key=lambda item: item.order_index)
    cosines = _cosines(items, embeddings or HashingEmbeddings())
    tasks = [item.task_id or "" for item in items]
    by_task: dict[str, list[tuple[float, float]]] = {}
    for position, task in enumerate(tasks):
        same = [i for i, other in enumerate(tasks) if other == task and i != position]
        others = [i for i, other in enumerate(tasks) if other != task]
        if same and others:
            row = cosines[position]
            pair = _mean(row[same], nearest), _mean(row[others], nearest)
            by_task.setdefault(task, []).append(pair)
    if len(by_task) < 2:
        msg = f"likeness is compared over tasks; only {len(by_task)} has two entries or more"
        raise ValueError(msg)
    means = np.array([np.mean(pairs, axis=0) for pairs in by_task.values()])
    return Likeness(
        within=float(means[:, 0].mean()),
        across=float(means[:, 1].mean()),
        difference=mean_estimate((means[:, 0] - means[:, 1])[:, None], bounds=(-1.0, 1.0)),
        errors=sum(map(len, by_task.values())),
        tasks=len(by_task),
    )


def _cosines(items: Sequence[MemoryItem], embeddings: Embeddings) -> Numbers:
    """Return the cosines of errors (rows) and keys (columns)."""

    def unit(texts: list[str]) -> Numbers:
        vectors = np.array(embeddings.embed_documents(texts), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1.0)

    errors = unit([str(item.metadata["error"]) for item in items])
    cosines: Numbers = errors @ unit([item.retrieval_key for item in items]).T
    return cosines


def _mean(similarities: Numbers, nearest: int | None) -> float:
    ordered = np.sort(similarities)[::-1]
    return float(ordered[:nearest].mean())
