"""A flat bank of notes, one an episode, that holds the latest (memory-transplants §4.2)."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import Field as SettingsField
from typing_extensions import override

from langgraft.memory.deltas import Change
from langgraft.memory.episodes import Episode
from langgraft.memory.items import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.arrivals import Arrivals
from langgraft.memory.providers.episode_items import note_of
from langgraft.memory.settings import RankedSettings
from langgraft.memory.stores.drive import Program


class LatestNotesSettings(RankedSettings):
    """Settings of a bank that holds the latest notes."""

    max_items: int = SettingsField(ge=1)
    """Items the bank holds; the first in is the first out."""


NotesT = TypeVar("NotesT", bound=LatestNotesSettings)


class LatestNotes(MemoryProvider[NotesT]):
    """Base of providers that keep a note of every episode, and differ in how they recall them."""

    @property
    def _line(self) -> Arrivals:
        return Arrivals(self.namespace)

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        return (yield from self._line.add(note_of(episode, order_index)))

    @override
    def _maintain(self) -> Program[Sequence[Change]]:
        return (yield from self._line.overflow(self.settings.max_items))

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Program[Sequence[Change]]:
        return (yield from self._line.join(items))
