"""Memory systems of a user's own, named in plans as `diary_memory:Diary`: one good, two bad."""

from collections.abc import Sequence
from typing import ClassVar

from langgraph.store.base import PutOp
from typing_extensions import override

from langgraft._core.effects import drive
from langgraft.memory import bank
from langgraft.memory.model import Add, Change, Episode, MemoryDelta, MemoryItem, SetState
from langgraft.memory.provider import MemoryProvider, program
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.programs import Program
from langgraft.memory.stores.read_only import ReadOnlyStore


class DiarySettings(ProviderSettings):
    """Settings of `Diary`."""

    pages: int = 2


class Diary(MemoryProvider[DiarySettings]):
    """Notes how each episode ended, and recalls the latest notes whatever is asked."""

    name: ClassVar[str] = "diary"
    settings_model = DiarySettings
    needs = frozenset()

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        content = yield from bank.read_content(self.namespace)
        notes = sorted(content.items.values(), key=lambda item: -item.order_index)
        return Found(tuple((note, 1.0) for note in notes[: self.settings.pages]))

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        note = MemoryItem(
            id=f"{episode.id}/note",
            text=f"I was told to {episode.task} and {'did' if episode.succeeded else 'did not'}.",
            type="other",
            source_domain=episode.domain,
            episode_id=episode.id,
            success=episode.succeeded,
            order_index=order_index,
        )
        return (Add(note),)


class Scribbler(Diary):
    """Writes when it is asked, which a provider must not do."""

    name: ClassVar[str] = "scribbler"

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        yield [PutOp(self.namespace, "asked", {"query": query})]
        return Found()


class Sneak(Diary):
    """Writes when it is asked, behind the back of a store that refuses."""

    name: ClassVar[str] = "sneak"

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        if isinstance(self.store, ReadOnlyStore):
            delta = MemoryDelta((SetState("asked", query),))
            drive(bank.apply_delta(self.namespace, delta), self.store.store)
        return program(Found())
