"""What the first page of a report answers beside the verdicts: best and worst transfer, cost, limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from langgraft.benchmarks.comparison.outcomes import Spread
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.cells import BASELINE
from langgraft.benchmarks.continual.costs import Cost
from langgraft.benchmarks.continual.mechanisms import hanging
from langgraft.benchmarks.continual.metrics import Direction, Transfer
from langgraft.benchmarks.continual.plan import Condition
from langgraft.benchmarks.continual.retrieval import FirstRecall
from langgraft.benchmarks.reporting.words import listing, points, several

MOST_ROWS: Final = 5
"""Memories in the table of the first page; the first section below has them all."""

_NAMES: Final[Mapping[Direction, str]] = {"forward": "FWT", "backward": "BWT"}


@dataclass(frozen=True, slots=True)
class Extreme:
    """The best or the worst transfer of a direction, over all memories and sequences."""

    label: str
    """Such as `best FWT`."""
    row: Transfer
    among: int
    """How many it was chosen from."""
    first: FirstRecall | None = None
    """What its tests recall first; of forward transfer alone."""

    @property
    def where(self) -> str:
        """Which memory, after what, tested on what."""
        after = self.row.sequence.replace(">", "→")
        return f"{self.row.condition}, {after}, tested on {self.row.task}"


_RECALLS: Final[Mapping[str, str]] = {
    "trajectory": "recalls whole episodes",
    "insight": "recalls lessons drawn from episodes",
}
"""What memories of the papers recall, for readers who do not know their names."""


def memory_note(conditions: Sequence[Condition], names: Sequence[str]) -> str:
    """Say what stands behind the names of memories, such as `raw is trajectory`."""
    shown = [each for each in conditions if each.name in names]
    told = []
    for each in shown:
        settings = ", ".join(f"{name} {value}" for name, value in each.settings.items())
        told.append(f"{each.name} is {each.provider}{f' ({settings})' if settings else ''}")
    kinds = [
        f"{name} {_RECALLS[name]}"
        for name in dict.fromkeys(each.provider for each in shown)
        if name in _RECALLS
    ]
    return " ".join(f"{listing(each)}." for each in (told, kinds) if each)


def notices(*, simulated: bool, generated: bool) -> tuple[str, ...]:
    """Return what has to be known before any number, for a terminal."""
    model = ("The model is simulated: with it, memory helps by construction.",) if simulated else ()
    games = ("The games are generated here: no number is an ALFWorld score.",) if generated else ()
    return (*model, *games)


def extremes(analysis: Analysis) -> tuple[Extreme, ...]:
    """Return best and worst forward and backward transfer of memories whose episodes are all there."""
    found = []
    for direction, name in _NAMES.items():
        rows = [
            row
            for row in analysis.transfers
            if row.direction == direction
            and row.condition in analysis.study.memories
            and row.transfer.complete
            and row.transfer.estimate is not None
        ]
        ranked = sorted(rows, key=_value, reverse=True)
        ends = (("best", ranked[:1]), ("worst", ranked[1:][-1:]))
        found += [
            Extreme(f"{end} {name}", row, len(rows), analysis.first_recall(row))
            for end, chosen in ends
            for row in chosen
        ]
    return tuple(found)


def _value(row: Transfer) -> float:
    assert row.transfer.estimate is not None
    return row.transfer.estimate.value


def transfer_sentences(found: Sequence[Extreme]) -> Iterator[str]:
    """Say for a terminal where transfer helped or hurt most."""
    for extreme in found:
        assert extreme.row.transfer.estimate is not None
        label = f"{extreme.label[0].upper()}{extreme.label[1:]} of {extreme.among}"
        hangs = "" if extreme.first is None else hanging(extreme.first)
        told = f"; it {hangs}" if hangs else ""
        yield f"{label}: {points(extreme.row.transfer.estimate)} ({extreme.where}){told}."


def cost_sentences(analysis: Analysis, *, simulated: bool) -> tuple[str, ...]:
    """Say what memory cost: replies and tokens of a test episode, then all of the study's."""
    tests = {cost.condition: cost for cost in analysis.costs if cost.kind != "train"}
    memories = [tests[name] for name in analysis.study.memories if name in tests]
    compared = [
        text
        for noun in ("replies", "tokens")
        for text in _compared(noun, tests.get(BASELINE), memories)
    ]
    episodes, replies, tokens = _bill(analysis)
    whole = [several(episodes, "episode"), several(replies, "reply", "replies")]
    whole += [several(tokens, "token")] * bool(tokens)
    money = "nothing was paid" if simulated else "the log holds no prices"
    return (*compared, f"The whole study, training included: {listing(whole)}; {money}.")


def _compared(noun: str, bare: Cost | None, memories: Sequence[Cost]) -> Iterator[str]:
    spreads: list[tuple[str, Spread]] = [
        (cost.condition, found) for cost in memories if (found := getattr(cost, noun)) is not None
    ]
    without: Spread | None = None if bare is None else getattr(bare, noun)
    if without is None or not spreads:
        return
    ranked = sorted(spreads, key=lambda pair: pair[1].mean)
    digits = 1 if noun == "replies" else 0
    ends = dict([ranked[0], ranked[-1]])
    told = " to ".join(f"{found.mean:,.{digits}f} ({name})" for name, found in ends.items())
    yield f"A test episode took {without.mean:,.{digits}f} {noun} without memory, with it {told}."


def _bill(analysis: Analysis) -> tuple[int, int, int]:
    """Count episodes, replies and tokens of the whole study."""
    results = [result for run in analysis.study.runs for result in run.results]
    usages = [cast("Mapping[str, Any]", result.get("usage") or {}) for result in results]
    replies = sum(
        int(usage.get("replies", cast("int", result.get("rounds") or 0)))
        for usage, result in zip(usages, results, strict=True)
    )
    kinds = ("prompt_tokens", "completion_tokens")
    return len(results), replies, sum(int(usage.get(kind, 0)) for usage in usages for kind in kinds)
