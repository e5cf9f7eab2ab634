"""Negative controls: providers that wrap another one and take away what should matter.

A control recalls as often and as much as the provider it wraps, so that a difference between
the two is due to *what* is recalled. Its receipts tell what that provider searched for, and how
many items tied there. Controls are for evaluation: they file nothing.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, TypeAlias

from typing_extensions import override

from langgraft._core.canonical import JSON, seeded_fraction
from langgraft.memory import bank
from langgraft.memory.deltas import Change, MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.items import MemoryItem
from langgraft.memory.provider import MemoryProvider, Need
from langgraft.memory.rankers.tokens import tokenize
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program
from langgraft.memory.stores.read_only import ReadOnlyStore

Scored: TypeAlias = Sequence[tuple[MemoryItem, float]]
"""Items with their scores."""


class Control(MemoryProvider[ProviderSettings]):
    """Base of the controls; what they are to take in, they let pass.

    Args:
        inner: The provider to imitate; its bank is read and never written.
        seed: Decides between equals.
    """

    def __init__(self, inner: MemoryProvider[Any], *, seed: int = 0) -> None:
        super().__init__(ReadOnlyStore(inner.store))
        self.namespace = inner.namespace
        self.inner = inner
        self.seed = seed

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """Nothing: nothing is filed."""
        return frozenset()

    @override
    def asks_again(self, query: str, context: RecallContext, last: RecallContext) -> bool:
        """Ask again when the wrapped provider does."""
        return self.inner.asks_again(query, context, last)

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the control and the architecture it wraps."""
        return {"control": self.name, "seed": self.seed, "of": self.inner.describe()}

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        found = yield from self.inner._recall(query, context)  # noqa: SLF001
        items = yield from self._replace(found.items, query)
        return replace(found, items=tuple(items))

    @abstractmethod
    def _replace(self, found: Scored, query: str) -> Program[Scored]:
        """Put something else in the place of what the wrapped provider found."""

    @override
    def _take_in(self, episode: Episode) -> Program[MemoryDelta]:
        return MemoryDelta()
        yield

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        return ()
        yield


FILLER: Final = (
    "The weather was calm on that day.",
    "Rivers run down to the sea.",
    "Bread is baked early in the morning.",
    "A year has twelve months.",
    "Snow is cold and summers are warm.",
    "Some clouds looked like sheep.",
    "Libraries lend books to many people.",
    "Trains leave on the hour.",
)
"""Sentences about nothing an agent does."""


class Placebo(Control):
    """Recalls neutral filler of the same length (memory-transplants §4.5, *placebo context*).

    Each item is replaced by filler of exactly as many characters, and so of as many tokens by
    the default counter.
    """

    name: ClassVar[str] = "placebo"

    @override
    def _replace(self, found: Scored, query: str) -> Program[Scored]:
        return [
            (item.model_copy(update={"text": self._filler(item)}), score) for item, score in found
        ]
        yield

    def _filler(self, item: MemoryItem) -> str:
        start = int(seeded_fraction("placebo", self.seed, item.id) * len(FILLER))
        text = " ".join(FILLER[start:] + FILLER[:start])
        copies = len(item.text) // (len(text) + 1) + 1
        return " ".join([text] * copies)[: len(item.text)].rstrip().ljust(len(item.text), ".")


class Shuffled(Control):
    """Recalls real items of other tasks: as many, but those least like the query.

    Items are taken from the same bank: those whose key shares the fewest distinct words with
    the query, and none that the wrapped provider found while there are others. Among equals
    the seed decides. What is recalled is genuine advice, and about something else.
    """

    name: ClassVar[str] = "shuffled"

    @override
    def _replace(self, found: Scored, query: str) -> Program[Scored]:
        content = yield from bank.read_content(self.namespace)
        words = frozenset(tokenize(query))
        same = frozenset(item.id for item, _ in found)

        def unlikeness(item: MemoryItem) -> tuple[bool, int, float]:
            shared = len(words.intersection(tokenize(item.retrieval_key)))
            chance = seeded_fraction("shuffled", self.seed, query, item.id)
            return item.id in same, shared, chance

        others = sorted(content.items.values(), key=unlikeness)
        return [(item, 0.0) for item in others[: len(found)]]


CONTROLS: Final = {control.name: control for control in (Placebo, Shuffled)}
"""The controls by name."""
