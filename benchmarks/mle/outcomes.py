"""What the runs of each condition came to and why they ended, and what memory held and gave them (§4.6).

Earned is what MLE-bench counts: submissions made and valid, ranks and medals. Each such number is a share of
tasks per seed, then a mean over seeds with its standard error. The paper's Table 1 does not say how its
errors are made; its OpenHands rows come out of one form only, the standard deviation of the seeds with ddof =
1, over the root of their number (see `published`). That form is used here.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final, Literal, TypeAlias

from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.comparison.outcomes import Spread, spread_of
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.benchmarks.mle.behaviour.runs import Share, resource_entries
from langgraft.benchmarks.mle.searches import TREE, Search, Searches
from langgraft.memory.model import MemoryDelta, fold


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of one condition, pooled over its runs."""

    condition: str
    runs: int
    steps: int
    attempts: int
    """Beginnings of runs; 0 of a tree."""
    retrievals: int
    """Programs written with recalled memory in the prompt; of a tree."""
    taught: int
    """Failures that memory was taught of; of step agents."""
    stores: int
    """Banks at the end of a run; one bank a run."""
    shares: Mapping[str, Share]
    """By name: those of the agent's behavior, and `resource_entries`, the entries of these banks that
    tell of time or memory running out."""


@dataclass(frozen=True, slots=True)
class Used:
    """What valid programs of a condition import, and how the others failed."""

    condition: str
    valid: int
    """Valid programs, or successful executions of a step agent."""
    packages: Counter[str]
    """Those that import a package."""
    buggy: int
    """Buggy programs, or steps."""
    errors: Counter[str]
    """The same by the class of their exception."""


_ENTRIES: Final = "resource_entries"
_SHARES: Final[Mapping[bool, tuple[str, ...]]] = {
    True: (
        *("written_with_memory", "repaired_with_memory", _ENTRIES),
        *("resource_retrievals", "resource_of_buggy", "resource_for_buggy"),
    ),
    False: ("attempts_with_memory", "buggy_with_memory", _ENTRIES, "resource_attempts"),
}
"""What is told of a tree, and of other agents."""


def memory_use(searches: Searches, log: PlanLogReader) -> tuple[MemoryUse, ...]:
    """Return what memory did under each condition."""
    return tuple(_memory_use(searches, condition, log) for condition in searches.conditions)


def _memory_use(searches: Searches, condition: str, log: PlanLogReader) -> MemoryUse:
    trees = [run for run in searches.trees if run.condition == condition]
    others = [run for run in searches.step_runs if run.condition == condition]
    runs = searches.of(condition)
    banks = [bank for run in runs if (bank := _bank(run.spec, log)) is not None]
    return MemoryUse(
        condition=condition,
        runs=len(runs),
        steps=sum(run.behavior.steps for run in runs),
        attempts=sum(run.attempts for run in others),
        retrievals=sum(run.behavior.retrievals for run in trees),
        taught=sum(run.behavior.taught for run in others),
        stores=len(banks),
        shares={
            name: _pool(
                banks if name == _ENTRIES else [getattr(run.behavior, name) for run in runs]
            )
            for name in _SHARES[searches.kind == TREE]
        },
    )


def _pool(shares: Sequence[Share]) -> Share:
    return reduce(add, shares, Share(0, 0))


def _bank(spec: RunSpec, log: PlanLogReader) -> Share | None:
    """Return the resource entries of a run's bank at its end; `None` of one that does not fold."""
    try:
        bank = fold(_deltas(spec, log))
    except LanggraftError:
        return None
    return resource_entries(bank.items.values())


def _deltas(spec: RunSpec, log: PlanLogReader) -> list[MemoryDelta]:
    """Return all deltas of a bank, those of what it started from first."""
    before: list[MemoryDelta] = []
    if spec.source is not None:
        origin = next(each for each in log.runs if each.name == spec.source.run)
        before = _deltas(origin, log)
        if spec.source.items is not None:
            own = log.deltas(origin.name)
            kept = sum(map(len, own[: spec.source.items]))
            before = before[: len(before) - sum(map(len, own)) + kept]
    return [*before, *(delta for item in log.deltas(spec.name) for delta in item)]


def used(searches: Searches) -> tuple[Used, ...]:
    """Return packages and errors of each condition."""
    return tuple(_used(condition, searches.of(condition)) for condition in searches.conditions)


def _used(condition: str, runs: Sequence[Search]) -> Used:
    packages: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for run in runs:
        packages.update(run.behavior.package_steps)
        errors.update(run.behavior.error_types)
    valid = sum(run.behavior.valid for run in runs)
    buggy = sum(run.behavior.buggy for run in runs)
    return Used(condition, valid, packages, buggy, errors)


def most_common(counts: Iterable[Counter[str]], most: int) -> tuple[str, ...]:
    """Return the names counted most often over all conditions, of equal ones by the alphabet."""
    total: Counter[str] = reduce(add, counts, Counter())
    return tuple(sorted(total, key=lambda name: (-total[name], name))[:most])


def recurrences(searches: Searches) -> dict[tuple[str, str], Share]:
    """Return, by competition and condition, the share of runs in which an error class recurs."""
    found: dict[tuple[str, str], Share] = {}
    for competition in searches.competitions:
        for condition in searches.conditions:
            told = [run.behavior.errors_recur for run in searches.of(condition, competition)]
            known = [each for each in told if each is not None]
            found[competition, condition] = Share(sum(known), len(known))
    return found


OUTCOMES: Final = {
    "submission_exists": "made submission",
    "valid_submission": "valid submission",
    "above_median": "above median",
    "bronze_medal": "bronze",
    "silver_medal": "silver",
    "gold_medal": "gold",
    "any_medal": "any medal",
}
"""Field of a grading report → what the paper's Table 1 calls it, in its order."""


def earned(search: Search, outcome: str) -> float:
    """Return 1 where a search earned something, else 0."""
    return float(bool(search.report.get(outcome)))


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a condition."""

    condition: str
    tasks: int
    """Competitions of each seed."""
    seeds: int
    """Seeds that are complete: all their tasks have a result. Others are left out."""
    seeds_planned: int
    shares: tuple[tuple[str, Spread | None], ...]
    """By outcome: mean over seeds; `None` while no seed is complete."""


def outcomes(searches: Searches) -> tuple[Outcomes, ...]:
    """Return what each condition earned."""
    return tuple(_outcomes(searches, condition) for condition in searches.conditions)


def _outcomes(searches: Searches, condition: str) -> Outcomes:
    pairs = searches.planned_pairs(condition)
    planned = Counter(seed for _, seed in pairs)
    found = searches.of(condition)
    done = Counter(search.seed for search in found)
    complete = sorted(seed for seed in planned if done[seed] == planned[seed])
    return Outcomes(
        condition=condition,
        tasks=len({competition for competition, _ in pairs}),
        seeds=len(complete),
        seeds_planned=len(planned),
        shares=tuple((name, _share(found, complete, name)) for name in OUTCOMES),
    )


def _share(found: Sequence[Search], seeds: Sequence[int], outcome: str) -> Spread | None:
    if not seeds:
        return None
    return spread_of([_of_seed(found, seed, outcome) for seed in seeds])


def _of_seed(found: Sequence[Search], seed: int, outcome: str) -> float:
    values = [earned(search, outcome) for search in found if search.seed == seed]
    return math.fsum(values) / len(values)


What: TypeAlias = Literal["bugs", "best"]


@dataclass(frozen=True, slots=True)
class Curve:
    """A mean over searches at each step."""

    what: What
    metric_group: str
    condition: str
    points: tuple[Spread | None, ...]
    """By step; `n` is the number of searches in it, `None` where no search has a number yet."""
    searches: int


def curves(searches: Searches) -> tuple[Curve, ...]:
    """Return bugs so far and the best metric so far, by metric group and condition (Figure 3).

    Bugs of a search that ended early stay as they were, and so does its best metric. A search
    without a valid program so far has no best metric and is left out of that step's mean, so that
    early means are over fewer searches; `n` says over how many.
    """
    found = []
    for group in searches.metric_groups:
        for condition in searches.conditions:
            runs = [each for each in searches.of(condition) if each.metric_group == group]
            if runs:
                bugs = [_bugs(run, searches.longest) for run in runs]
                best = [_best(run, searches.longest) for run in runs]
                found.append(Curve("bugs", group, condition, _points(bugs), len(runs)))
                found.append(Curve("best", group, condition, _points(best), len(runs)))
    return tuple(found)


def _bugs(search: Search, steps: int) -> tuple[float, ...]:
    return _carried(tuple(map(float, search.behavior.cumulative_bugs)), steps, before=0.0)


def _best(search: Search, steps: int) -> tuple[float, ...]:
    return _carried(search.behavior.best_so_far, steps, before=math.nan)


def _carried(values: tuple[float, ...], steps: int, *, before: float) -> tuple[float, ...]:
    """Go on with the last value of a run that ended; one without steps stays as it began."""
    last = values[-1] if values else before
    return values + (last,) * (steps - len(values))


def _points(rows: Sequence[Sequence[float]]) -> tuple[Spread | None, ...]:
    columns = (
        [value for value in step if not math.isnan(value)] for step in zip(*rows, strict=True)
    )
    return tuple(spread_of(values) for values in columns)


@dataclass(frozen=True, slots=True)
class Endings:
    """The ends of the runs of a condition."""

    condition: str
    runs: int
    steps: Spread | None
    least: int
    most: int
    attempts: Spread | None
    reasons: Counter[str]
    """Runs by why they ended."""
    tools: Counter[str]
    """Steps by action, pooled over runs."""


def endings(searches: Searches) -> tuple[Endings, ...]:
    """Return how the runs of each condition ended; nothing of a tree, whose length is given."""
    if not searches.step_runs:
        return ()
    return tuple(_endings(searches, condition) for condition in searches.conditions)


def _endings(searches: Searches, condition: str) -> Endings:
    runs = [run for run in searches.step_runs if run.condition == condition]
    steps = [run.behavior.steps for run in runs]
    tools: Counter[str] = Counter()
    for run in runs:
        tools.update(run.behavior.tools)
    return Endings(
        condition=condition,
        runs=len(runs),
        steps=spread_of(steps),
        least=min(steps, default=0),
        most=max(steps, default=0),
        attempts=spread_of(run.attempts for run in runs),
        reasons=Counter(run.ended for run in runs),
        tools=tools,
    )
