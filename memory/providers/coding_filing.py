"""What filing one episode's errors changes in a coding memory."""

from collections.abc import Iterable, Sequence
from typing import Final, cast

from langgraph.store.base import GetOp, Item

from langgraft._core.canonical import JSON
from langgraft.memory import bank
from langgraft.memory.deltas import Add, Annotate, Change, SetState
from langgraft.memory.episodes import Episode
from langgraft.memory.item_ids import with_free_ids
from langgraft.memory.items import MemoryItem
from langgraft.memory.providers.coding_entries import CodingEntry
from langgraft.memory.stores.drive import Program

_ENTRIES: Final = "entries/"


def entries_key(episode_id: str) -> str:
    """Name the bookkeeping that lists the entries which stand for an episode's errors."""
    return _ENTRIES + episode_id


class Filing:
    """Gathers the changes of one episode.

    Args:
        namespace: The bank.
        episode: The episode.
        order_index: The number of its first new item.
    """

    def __init__(self, namespace: bank.Namespace, episode: Episode, order_index: int) -> None:
        self._namespace = namespace
        self._episode = episode
        self._order_index = order_index
        self._added: list[MemoryItem] = []
        self._notes: dict[str, dict[str, JSON]] = {}
        """Notes, as they will be, of the items that this episode concerns."""
        self._standing: list[str] = []
        """Ids of what stands for the episode's errors."""

    def equal(self, entry: CodingEntry) -> MemoryItem | None:
        """Return an equal entry that this episode itself has added."""
        return next(
            (
                item
                for item in self._added
                if (item.retrieval_key, item.metadata["package"]) == (entry.key, entry.package)
            ),
            None,
        )

    def add(self, entry: CodingEntry) -> Program[None]:
        """Add an entry."""
        number = len(self._added)
        item = entry.item(self._episode, f"error-{number}", self._order_index + number)
        # Now: the bookkeeping has to name it as the bank will.
        (change,) = yield from with_free_ids(self._namespace, [Add(item)])
        item = cast("Add", change).item
        self._added.append(item)
        self._standing.append(item.id)
        self._notes[item.id] = {"verified": True} if entry.verified else {}

    def count(self, item: MemoryItem, entry: CodingEntry) -> Program[None]:
        """Count a record for an entry that already stands for it."""
        yield from self._read([item])
        notes = self._notes[item.id]
        notes["seen"] = cast("int", notes.get("seen", 1)) + 1
        if entry.verified and item.metadata.get("fix"):
            notes["verified"] = True
        self._standing.append(item.id)

    def verify(self, items: Sequence[MemoryItem]) -> Program[None]:
        """Note that fixes work; an entry without a fix has nothing to verify."""
        fixed = [item for item in items if item.metadata.get("fix")]
        yield from self._read(fixed)
        for item in fixed:
            self._notes[item.id]["verified"] = True

    def changes(self) -> list[Change]:
        """Return what changes, in order."""
        noted = ((name, notes) for name, notes in self._notes.items() if notes)
        listed = list(dict.fromkeys(self._standing))
        return [
            *(Add(item) for item in self._added),
            *(Annotate(name, notes) for name, notes in noted),
            *([SetState(entries_key(self._episode.id), listed)] if listed else ()),
        ]

    def _read(self, items: Iterable[MemoryItem]) -> Program[None]:
        """Read the notes of items that have not been concerned so far."""
        names = [item.id for item in items if item.id not in self._notes]
        records = yield [GetOp(self._namespace, bank.item_key(name)) for name in names]
        notes = bank.loaded(cast("Sequence[Item | None]", records)).notes
        self._notes |= {name: dict(notes.get(name, {})) for name in names}
