"""What memory held, what it put into prompts, and what programs then used (§4.6)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.benchmarks.mle.behaviour.runs import Share, resource_entries
from langgraft.benchmarks.mle.searches import TREE, Search, Searches
from langgraft.memory.deltas import MemoryDelta, fold


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of one condition of a tree agent, pooled over its searches."""

    condition: str
    searches: int
    programs: int
    retrievals: int
    """Programs written with recalled memory in the prompt."""
    written_with_memory: Share
    repaired_with_memory: Share
    stores: int
    """Banks at the end of a search; one bank a search."""
    resource_entries: Share
    """Entries of those banks that tell of time or memory running out."""
    resource_retrievals: Share
    resource_of_buggy: Share
    resource_for_buggy: Share


@dataclass(frozen=True, slots=True)
class StepMemoryUse:
    """Memory of one condition of a step agent, pooled over its runs."""

    condition: str
    runs: int
    attempts: int
    steps: int
    taught: int
    """Failures that memory was taught of."""
    attempts_with_memory: Share
    buggy_with_memory: Share
    stores: int
    """Banks at the end of a run; one bank a run."""
    resource_entries: Share
    """Entries of those banks that tell of time or memory running out."""
    resource_attempts: Share


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


def memory_use(searches: Searches, log: PlanLogReader) -> tuple[MemoryUse, ...]:
    """Return what memory did under each condition of a tree agent; nothing of others."""
    if searches.kind != TREE:
        return ()
    return tuple(_memory_use(searches, condition, log) for condition in searches.conditions)


def step_memory_use(searches: Searches, log: PlanLogReader) -> tuple[StepMemoryUse, ...]:
    """Return what memory did under each condition of a step agent; nothing of a tree."""
    if searches.kind == TREE:
        return ()
    return tuple(_step_memory_use(searches, condition, log) for condition in searches.conditions)


def _memory_use(searches: Searches, condition: str, log: PlanLogReader) -> MemoryUse:
    runs = [run for run in searches.trees if run.condition == condition]
    known = _known_banks(runs, log)
    return MemoryUse(
        condition=condition,
        searches=len(runs),
        programs=sum(run.behavior.steps for run in runs),
        retrievals=sum(run.behavior.retrievals for run in runs),
        written_with_memory=_pool([run.behavior.written_with_memory for run in runs]),
        repaired_with_memory=_pool([run.behavior.repaired_with_memory for run in runs]),
        stores=len(known),
        resource_entries=_pool(known),
        resource_retrievals=_pool([run.behavior.resource_retrievals for run in runs]),
        resource_of_buggy=_pool([run.behavior.resource_of_buggy for run in runs]),
        resource_for_buggy=_pool([run.behavior.resource_for_buggy for run in runs]),
    )


def _step_memory_use(searches: Searches, condition: str, log: PlanLogReader) -> StepMemoryUse:
    runs = [run for run in searches.step_runs if run.condition == condition]
    known = _known_banks(runs, log)
    return StepMemoryUse(
        condition=condition,
        runs=len(runs),
        attempts=sum(run.attempts for run in runs),
        steps=sum(run.behavior.steps for run in runs),
        taught=sum(run.behavior.taught for run in runs),
        attempts_with_memory=_pool([run.behavior.attempts_with_memory for run in runs]),
        buggy_with_memory=_pool([run.behavior.buggy_with_memory for run in runs]),
        stores=len(known),
        resource_entries=_pool(known),
        resource_attempts=_pool([run.behavior.resource_attempts for run in runs]),
    )


def _known_banks(runs: Sequence[Search], log: PlanLogReader) -> list[Share]:
    banks = (_bank(run.spec, log) for run in runs)
    return [bank for bank in banks if bank is not None]


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
