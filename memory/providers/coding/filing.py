"""What filing one episode's errors changes in a coding memory."""

from collections.abc import Iterable, Mapping
from typing import Final, cast

from langgraph.store.base import GetOp, Item

from langgraft._core.canonical import JSON
from langgraft.memory import bank
from langgraft.memory.bank import with_free_ids
from langgraft.memory.deltas import Add, Annotate, Change, Remove, SetState
from langgraft.memory.episodes import Episode
from langgraft.memory.items import MemoryItem
from langgraft.memory.providers.coding.entries import CodingEntry
from langgraft.memory.stores.drive import Namespace, Program

_ENTRIES: Final = "entries/"
REPLACED: Final = "a better fix of its error is known:"
"""Why an entry was removed; the id of the one in its place follows."""


def entries_key(episode_id: str) -> str:
    """Name the bookkeeping that lists the entries which hold an episode's errors and fixes."""
    return _ENTRIES + episode_id


class Filing:
    """Gathers the changes of one episode.

    Args:
        namespace: The bank.
        episode: The episode.
        order_index: The number of its first new item.
    """

    def __init__(self, namespace: Namespace, episode: Episode, order_index: int) -> None:
        self._namespace = namespace
        self._episode = episode
        self._order_index = order_index
        self._added: list[MemoryItem] = []
        self._gone: dict[str, MemoryItem] = {}
        """Entries whose place another one has taken, by their ids."""
        self._notes: dict[str, dict[str, JSON]] = {}
        """Notes that change, as they will be; others on the same items, such as uses, do not."""
        self._standing: dict[str, int] = {}
        """What stands for the episode's errors with the same fixes: ids with `order_index`."""

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
        self._standing[item.id] = item.order_index
        if entry.verified:
            self.verify([item])

    def current(self, item: MemoryItem) -> MemoryItem:
        """Return an entry, or the last of those that took its place in this episode."""
        while item.id in self._gone:
            item = self._gone[item.id]
        return item

    def replace(self, item: MemoryItem, entry: CodingEntry) -> Program[None]:
        """Let an entry take another one's place, and stand for all that it stood for."""
        seen = yield from self._seen(item)
        self._notes.pop(item.id, None)
        yield from self.add(entry)
        new = self._added[-1]
        self._gone[item.id] = new
        self._notes.setdefault(new.id, {})["seen"] = seen + 1

    def count(self, item: MemoryItem, entry: CodingEntry) -> Program[None]:
        """Count a record for an entry that already stands for it.

        A judge may merge records with different fixes: what proves the record's, now or when a
        later episode resolves this one, says nothing about the entry's.
        """
        notes = self._notes.setdefault(item.id, {})
        if "seen" not in notes:
            notes["seen"] = yield from self._seen(item)
        notes["seen"] = cast("int", notes["seen"]) + 1
        if item.metadata.get("fix") == entry.fix:
            self._standing[item.id] = item.order_index
            if entry.verified:
                self.verify([item])

    def verify(self, items: Iterable[MemoryItem]) -> None:
        """Note that fixes work; an entry without a fix, or that is gone, has nothing to verify."""
        for item in items:
            if item.metadata.get("fix") and item.id not in self._gone:
                self._notes.setdefault(item.id, {})["verified"] = True

    def changes(self) -> list[Change]:
        """Return what changes, in order."""
        listed: list[JSON] = [[name, order] for name, order in self._standing.items()]
        return [
            *(Add(item) for item in self._added),
            *(Remove(old, f"{REPLACED} {new.id}") for old, new in self._gone.items()),
            *(Annotate(name, notes) for name, notes in self._notes.items()),
            *([SetState(entries_key(self._episode.id), listed)] if listed else ()),
        ]

    def _seen(self, item: MemoryItem) -> Program[int]:
        """Return how many records an entry stands for, as the bank has it."""
        notes = yield from self.notes(item)
        return cast("int", notes.get("seen", 1))

    def notes(self, item: MemoryItem) -> Program[Mapping[str, JSON]]:
        """Return the notes on an entry, with what this episode changes of them."""
        (record,) = yield [GetOp(self._namespace, bank.item_key(item.id))]
        kept = bank.loaded([cast("Item | None", record)]).notes.get(item.id, {})
        return {**kept, **self._notes.get(item.id, {})}
