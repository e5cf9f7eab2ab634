"""What became of the lessons: drawn from training episodes, dropped and why, kept, in the bank."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.outcomes import Spread, spread_of
from langgraft.benchmarks.continual.cells import RunResults, StudyLog
from langgraft.benchmarks.continual.costs import BankSize
from langgraft.benchmarks.harness.study import PlanLogReader

Fault: TypeAlias = tuple[str, str]
"""Node that dropped a lesson, and why."""

VALIDATION, DUPLICATION = "validate", "deduplicate"
"""Names of the nodes that drop lessons."""


@dataclass(frozen=True, slots=True)
class Distillation:
    """The lessons of one condition's training streams, counted per run."""

    condition: str
    sequence: str
    """Of the last phase alone, but for `bank`."""
    episodes: int
    """Of all runs."""
    drawn: Spread
    invalid: Spread
    """Dropped because they do not hold."""
    repeated: Spread
    """Dropped because they say what is known."""
    kept: Spread
    bank: Spread | None
    """Items at the end, those of the phase before included; `None` while training."""
    reasons: Mapping[Fault, int]
    """How often, over all runs."""


@dataclass(frozen=True, slots=True)
class _Count:
    kept: int
    dropped: Counter[Fault]

    def by(self, node: str) -> int:
        return sum(count for (name, _), count in self.dropped.items() if name == node)


def distillations(
    study: StudyLog, log: PlanLogReader, banks: Sequence[BankSize]
) -> tuple[Distillation, ...]:
    """Count the lessons of each condition and sequence; of those that draw any."""
    sizes = {(bank.condition, bank.sequence): bank.items for bank in banks}
    streams: dict[tuple[str, str], list[RunResults]] = {}
    for run in study.training:
        factors = run.spec.factors
        key = (str(factors["condition"]), str(factors["sequence"]))
        streams.setdefault(key, []).append(run)
    found = (_distillation(key, runs, log, sizes.get(key)) for key, runs in streams.items())
    return tuple(row for row in found if row is not None)


def _distillation(
    key: tuple[str, str], runs: Sequence[RunResults], log: PlanLogReader, bank: Spread | None
) -> Distillation | None:
    counts = [_count(log.results(run.spec.name)) for run in runs if run.done]
    drawn = spread_of(float(each.kept + each.dropped.total()) for each in counts)
    kept = spread_of(float(each.kept) for each in counts)
    invalid, repeated = (
        spread_of(float(each.by(node)) for each in counts) for node in (VALIDATION, DUPLICATION)
    )
    if drawn is None or not drawn.high or kept is None or invalid is None or repeated is None:
        return None
    reasons = sum((each.dropped for each in counts), Counter[Fault]())
    return Distillation(
        *key,
        episodes=sum(run.done for run in runs),
        drawn=drawn,
        invalid=invalid,
        repeated=repeated,
        kept=kept,
        bank=bank,
        reasons=dict(sorted(reasons.items(), key=lambda each: (-each[1], each[0]))),
    )


def _count(results: Iterable[Mapping[str, JSON]]) -> _Count:
    kept, dropped = 0, Counter[Fault]()
    for result in results:
        kept += len(cast("Sequence[JSON]", result.get("lessons") or ()))
        for lesson in cast("Sequence[Mapping[str, str]]", result.get("dropped") or ()):
            # What follows a colon is a model's own words: nothing that can be counted.
            dropped[str(lesson["node"]), str(lesson["reason"]).partition(":")[0].strip()] += 1
    return _Count(kept, dropped)
