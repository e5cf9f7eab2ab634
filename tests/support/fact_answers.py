"""Fact histories told to memories, and questions answered from what they recall, word by word."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.store.memory import InMemoryStore

from langgraft._core.effects import do, run
from langgraft.benchmarks.simulated.fact_histories import (
    STATE_DAYS,
    Asked,
    FactHistory,
    SimulatedNotary,
    fact_history,
)
from langgraft.memory.facts import Attribute, plain
from langgraft.memory.model import Episode, Outcome, Step
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import FactMemory, FactSettings, SimpleRAG, SimpleRAGSettings
from langgraft.memory.recall import Recall, RecallContext
from langgraft.nodes.dialogue import run_dialogue
from langgraft.nodes.extract import extracting
from langgraft.nodes.prompts import prompt
from langgraft.nodes.turns import learning

PROFILE = (
    *(Attribute(name=name) for name in ("city", "employer", "favorite food", "staying in")),
    Attribute(name="mood", category="state"),
    *(Attribute(name=name, many=True) for name in ("pet", "likes")),
)
FACTS, PROFILED = "facts", "facts, with a profile"
SINGLE = ("city", "employer", "favorite food", "mood", "staying in")
_SINCE = re.compile(r"\(since ([\d-]+)\)")
_LINE = re.compile(r"(?P<attribute>[\w ]+) of (?P<subject>\w+): (?P<value>.+?)(?: \([^()]*\))?")


def episodes_of(history: FactHistory) -> list[Episode]:
    """Return the turns of a history as an application's episodes."""
    return [
        Episode(
            id=f"turn-{number}",
            domain="chat",
            task_id=f"turn-{number}",
            task=turn.text,
            steps=(Step("", "", ""), Step("", "Noted.", "")),
            outcome=Outcome(success=None),
            at=turn.at,
        )
        for number, turn in enumerate(history.turns)
    ]


def told(history: FactHistory, **settings: Any) -> FactMemory:
    """Return a memory that was told a history, as `MemoryMiddleware` tells one."""
    settings = {"ttl_days": {"state": STATE_DAYS}, **settings}
    memory = FactMemory(InMemoryStore(), settings=FactSettings(**settings))
    for episode in episodes_of(history):
        run(learning(memory, episode, SimulatedNotary(), prompt("reflect")), do)
    return memory


def noted(history: FactHistory, ranker: str) -> SimpleRAG:
    """Return a memory that has a note of each fact, in the words of `FactMemory`, and nothing else of it."""
    settings = SimpleRAGSettings.model_validate({"top_k": 10, "ranker": ranker})
    memory = SimpleRAG(InMemoryStore(), settings=settings)
    for episode in episodes_of(history):
        found = run_dialogue(extracting(episode), SimulatedNotary())
        for number, fact in enumerate(found.facts):
            ended = "" if fact.holds else "no longer "
            text = (
                f"{fact.attribute} of {fact.subject}: {ended}{fact.value} (since {episode.at[:10]})"
            )
            memory.file(
                Episode(
                    id=f"{episode.id}/{number}",
                    domain="chat",
                    task_id=episode.id,
                    task=text,
                    steps=(),
                    outcome=Outcome(success=None),
                )
            )
    return memory


def values_in(texts: Sequence[str], asked: Asked) -> list[str]:
    """Return the values that lines state of what is asked, in their order."""
    lines = (line.removeprefix("Task: ") for text in texts for line in text.splitlines())
    found = (_LINE.fullmatch(line) for line in lines)
    return [
        each["value"]
        for each in found
        if each is not None
        and (plain(each["subject"]), plain(each["attribute"]))
        == (plain(asked.subject), asked.attribute)
    ]


def ask(memory: MemoryProvider[Any], asked: Asked) -> Recall:
    """Ask memory, as an agent does that is asked a question."""
    context = RecallContext(domain="chat", task_id="asking", episode_id="asking", at=asked.at)
    return memory.provide(asked.text, context)


def all_stated(recall: Recall, asked: Asked) -> frozenset[str]:
    """Answer with all that is stated and not taken back."""
    values = values_in([item.text for item in recall.items], asked)
    return frozenset(each for each in values if not each.startswith("no longer "))


def most_similar(recall: Recall, asked: Asked) -> frozenset[str]:
    """Answer with the most similar note, where one value is asked for."""
    return _one_or_all(values_in([item.text for item in recall.items], asked), asked)


def latest(recall: Recall, asked: Asked) -> frozenset[str]:
    """Answer with the latest note of those recalled, where one value is asked for."""
    items = sorted(recall.items, key=lambda item: -item.order_index)
    return _one_or_all(values_in([item.text for item in items], asked), asked)


def latest_by_then(recall: Recall, asked: Asked) -> frozenset[str]:
    """Answer with the latest note of those recalled that is not later than what is asked about."""
    items = sorted(recall.items, key=lambda item: -item.order_index)
    known = [item.text for item in items if _SINCE.findall(item.text)[:1] <= [asked.at[:10]]]
    return _one_or_all(values_in(known, asked), asked)


def _one_or_all(values: Sequence[str], asked: Asked) -> frozenset[str]:
    stated = [each for each in values if not each.startswith("no longer ")]
    return frozenset(stated[:1] if asked.attribute in SINGLE else stated)


Answer = Callable[[Recall, Asked], frozenset[str]]


@dataclass(slots=True)
class Share:
    """How many questions were answered right, of the present and of the past."""

    now: int = 0
    asked_now: int = 0
    past: int = 0
    asked_past: int = 0

    def count(self, asked: Asked, *, right: bool) -> None:
        """Count one."""
        if asked.past:
            self.past, self.asked_past = self.past + right, self.asked_past + 1
        else:
            self.now, self.asked_now = self.now + right, self.asked_now + 1

    def least(self) -> float:
        """Return the lower of the two shares."""
        return min(self.now / self.asked_now, self.past / self.asked_past)

    def __str__(self) -> str:
        return (
            f"now {self.now:,} of {self.asked_now:,} ({self.now / self.asked_now:.1%}),"
            f" as of {self.past:,} of {self.asked_past:,} ({self.past / self.asked_past:.1%})"
        )


def shares(seeds: Sequence[int]) -> dict[str, Share]:
    """Tell histories to memories, and count right answers."""
    found = {
        name: Share()
        for name in (FACTS, PROFILED, "most similar note", "latest note", "latest note by then")
    }
    for seed in seeds:
        history = fact_history(seed)
        memories: list[tuple[str, MemoryProvider[Any], Answer]] = [
            (FACTS, told(history), all_stated),
            (PROFILED, told(history, profile=PROFILE), all_stated),
            ("most similar note", noted(history, "bm25"), most_similar),
        ]
        notes = noted(history, "term_overlap")
        memories += [("latest note", notes, latest), ("latest note by then", notes, latest_by_then)]
        for asked in history.questions:
            for name, memory, answer in memories:
                right = answer(ask(memory, asked), asked) == asked.values
                found[name].count(asked, right=right)
    return found
