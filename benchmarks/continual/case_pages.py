"""The episodes shown in full, a page each: asked, retrieved, injected, done, and without memory.

What is on a page comes from the log alone. The injected text is not in it: it is put together
again from the items retrieved and the bank as it stood, as `render_block` did. Everything is
escaped and cut to a bounded length, for much of it a model wrote.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.continual.banks import Bank, Banks, domain_of
from langgraft.benchmarks.continual.cases import Case
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.reporting.words import shortened
from langgraft.memory.recall import render_block

LONGEST_KEY = 300
MOST_STEPS = 60
MOST_RECALLS = 12
MOST_ENTRIES = 20


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
