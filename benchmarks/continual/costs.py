"""What conditions cost and what training leaves: replies, tokens, banks, and what became of lessons."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.outcomes import Spread, pooled_spread, spread_of
from langgraft.benchmarks.continual.cells import UNTRAINED, RunResults, StudyLog
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.memory.model import Add, MemoryDelta, Remove

Fault: TypeAlias = tuple[str, str]
"""Node that dropped a lesson, and why."""

VALIDATION, DUPLICATION = "validate", "deduplicate"
"""Names of the nodes that drop lessons."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Per-episode costs of a condition, in training or in evaluation."""

    condition: str
    kind: str
    episodes: int
    replies: Spread | None
    invalid_replies: Spread | None
    recalls: Spread | None
    recalled_tokens: Spread | None
    tokens: Spread | None
    """Prompt and completion tokens, where the results hold them."""
    questions: Spread | None
    """Questions that memory asked of a judge."""
    by_rules: Spread | None
    """Those among them that rules answered, where no reply could be used or none was needed."""


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What one node of the agent's graph asks of its model, per episode.

    So the calls that memory causes (draft, judge, reflect …) are told from the agent's own.
    """

    condition: str
    kind: str
    node: str
    replies: Spread
    tokens: Spread
    """Prompt and completion tokens."""


@dataclass(frozen=True, slots=True)
class BankSize:
    """Items in the banks that the runs of a sequence leave behind."""

    condition: str
    sequence: str
    items: Spread


def costs(study: StudyLog) -> tuple[Cost, ...]:
    """Return the costs of each condition, training and evaluation apart."""
    return tuple(
        Cost(
            *key,
            episodes=sum(run.done for run in runs),
            replies=_spread(runs, lambda result: _number(result.get("rounds"))),
            invalid_replies=_spread(runs, lambda result: _number(result.get("invalid_replies"))),
            recalls=_spread(runs, lambda result: float(len(_recalls(result)))),
            recalled_tokens=_spread(runs, _recalled_tokens),
            tokens=_spread(runs, _tokens),
            questions=_spread(runs, lambda result: float(len(_judging(result)))),
            by_rules=_spread(runs, _by_rules),
        )
        for key, runs in _groups(study).items()
    )


def costs_by_node(study: StudyLog) -> tuple[NodeCost, ...]:
    """Return which nodes asked the model, and what that cost, where results tell."""
    found: list[NodeCost] = []
    for key, runs in _groups(study).items():
        nodes = {node for run in runs for result in run.results for node in _by_node(result)}
        for node in sorted(nodes):
            replies = _spread(runs, partial(_of_node, node, "replies"))
            tokens = _spread(runs, partial(_of_node, node, "tokens"))
            if replies is not None and tokens is not None:
                found.append(NodeCost(*key, node, replies, tokens))
    return tuple(found)


def _groups(study: StudyLog) -> dict[tuple[str, str], list[RunResults]]:
    groups: dict[tuple[str, str], list[RunResults]] = {}
    for run in study.runs:
        factors = run.spec.factors
        groups.setdefault((str(factors["condition"]), str(factors["kind"])), []).append(run)
    return groups


def _by_node(result: Mapping[str, JSON]) -> Mapping[str, Mapping[str, JSON]]:
    usage = cast("Mapping[str, Any]", result.get("usage") or {})
    return cast("Mapping[str, Mapping[str, JSON]]", usage.get("by_node") or {})


def _of_node(node: str, what: str, result: Mapping[str, JSON]) -> float:
    """Return what a node used in an episode: nothing where it was not reached."""
    return _number(_by_node(result).get(node, {}).get(what)) or 0.0


def _number(value: JSON) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _recalls(result: Mapping[str, JSON]) -> Sequence[Mapping[str, JSON]]:
    return cast("Sequence[Mapping[str, JSON]]", result.get("recalls") or ())


def _judging(result: Mapping[str, JSON]) -> Sequence[Mapping[str, JSON]]:
    return cast("Sequence[Mapping[str, JSON]]", result.get("judging") or ())


def _by_rules(result: Mapping[str, JSON]) -> float:
    return float(sum(judged.get("by") == "rules" for judged in _judging(result)))


def _recalled_tokens(result: Mapping[str, JSON]) -> float:
    return sum(_number(recall.get("tokens")) or 0.0 for recall in _recalls(result))


def _tokens(result: Mapping[str, JSON]) -> float | None:
    usage = cast("Mapping[str, Any]", result.get("usage") or {})
    found = [_number(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    known = [value for value in found if value is not None]
    return sum(known) if known else None


def _spread(
    runs: Iterable[RunResults], measure: Callable[[Mapping[str, JSON]], float | None]
) -> Spread | None:
    return pooled_spread(
        [value for result in run.results if (value := measure(result)) is not None] for run in runs
    )


def bank_sizes(study: StudyLog, log: PlanLogReader) -> tuple[BankSize, ...]:
    """Count the items in the bank at the end of each finished training stream."""
    by_name = {run.spec.name: run for run in study.training}
    sizes: dict[tuple[str, str], list[int]] = {}
    for run in study.training:
        if run.done == run.planned and run.stream[0] not in UNTRAINED:
            sizes.setdefault(run.stream, []).append(_size(run, by_name, log))
    spreads = {key: spread_of(found) for key, found in sizes.items()}
    return tuple(BankSize(*key, spread) for key, spread in spreads.items() if spread is not None)


def _size(run: RunResults, by_name: Mapping[str, RunResults], log: PlanLogReader) -> int:
    """Return adds minus removes, those of the streams before included."""
    source, own = run.spec.source, log.deltas(run.spec.name)
    total = sum(_growth(delta) for item in own for delta in item)
    if source is None:
        return total
    before = by_name[source.run]
    if source.items is None:
        return total + _size(before, by_name, log)
    first = log.deltas(source.run)[: source.items]
    return total + sum(_growth(delta) for item in first for delta in item)


def _growth(delta: MemoryDelta) -> int:
    added = sum(isinstance(change, Add) for change in delta)
    return added - sum(isinstance(change, Remove) for change in delta)


# Lessons: drawn from training episodes, dropped and why, kept, in the bank ----------------------


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
    found = (_distillation(key, runs, log, sizes.get(key)) for key, runs in study.streams.items())
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
