"""What memory held, what it put into prompts, and what programs then used (§4.6)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final

from langgraft._core.errors import LanggraftError
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
