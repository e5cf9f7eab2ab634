"""In which order items came, so that the first and the last are found without reading a bank.

LangGraph stores list records in no promised order, and filters of a plain listing do not reach
into an item. So providers that forget or recall by age keep a line of ids in their bookkeeping,
one id a record: who joins it and who leaves it costs a few records, however large the bank is.
The line is a function of the log, as all bookkeeping is, and is begun anew where items are
imported (`MemoryProvider._settle`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from langgraph.store.base import GetOp, Item

from langgraft.memory import bank
from langgraft.memory.deltas import Add, Change, Remove, SetState
from langgraft.memory.item_ids import present, with_free_ids
from langgraft.memory.items import MemoryItem
from langgraft.memory.stores.drive import Program

_BLOCK = 64
"""Ids read at a time, at least."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A line of items in the order they came; those that others removed are passed over.

    Args:
        namespace: The bank.
        name: Which line of the bank it is.
    """

    namespace: bank.Namespace
    name: str = "items"

    def add(self, item: MemoryItem) -> Program[list[Change]]:
        """Say what a new item changes: it enters the bank, and joins the line.

        The line holds ids as the bank does, where an imported item may have this one's.
        """
        changes = yield from with_free_ids(self.namespace, [Add(item)])
        added = [change.item.id for change in changes if isinstance(change, Add)]
        return [*changes, *(yield from self.join(added))]

    def join(self, ids: Sequence[str]) -> Program[list[SetState]]:
        """Say what changes when items join the end of the line."""
        first, end = yield from self._bounds()
        if not ids:
            return []
        places = [SetState(self._place(number), name) for number, name in enumerate(ids, end)]
        return [*places, SetState(self._key, [first, end + len(ids)])]

    def overflow(self, limit: int) -> Program[list[Change]]:
        """Say what changes when those leave after whom at least `limit` others came (FIFO)."""
        first, end = yield from self._bounds()
        left = max(first, end - limit)
        if left == first:
            return []
        ids = yield from self._ids(first, left)
        held = yield from present(self.namespace, ids)
        return [
            *(Remove(name, f"over the capacity of {limit}") for name in held),
            *(SetState(self._place(number), None) for number in range(first, left)),
            SetState(self._key, [left, end]),
        ]

    def newest(
        self, limit: int, *, where: Callable[[MemoryItem], bool] = lambda _: True
    ) -> Program[list[MemoryItem]]:
        """Read the last `limit` items that pass `where`, newest first."""
        first, end = yield from self._bounds()
        found: list[MemoryItem] = []
        width = max(limit, _BLOCK)
        while end > first and len(found) < limit:
            start = max(first, end - width)
            block = yield from self._items(start, end)
            found += [item for item in reversed(block) if where(item)]
            end, width = start, 2 * width
        return found[:limit]

    def oldest(self) -> Program[MemoryItem | None]:
        """Read the first item that is still there."""
        first, end = yield from self._bounds()
        for start in range(first, end, _BLOCK):
            block = yield from self._items(start, min(start + _BLOCK, end))
            if block:
                return block[0]
        return None

    @property
    def _key(self) -> str:
        return f"arrivals/{self.name}"

    def _place(self, number: int) -> str:
        return f"{self._key}/{number}"

    def _bounds(self) -> Program[tuple[int, int]]:
        """Return the number of the first place that is taken, and of the first that is free."""
        (held,) = yield from bank.read_state(self.namespace, [self._key])
        first, end = cast("list[int]", held or [0, 0])
        return first, end

    def _ids(self, start: int, end: int) -> Program[list[str]]:
        keys = [self._place(number) for number in range(start, end)]
        ids = yield from bank.read_state(self.namespace, keys)
        # Whoever reads without the writer's lock may find a place given up meanwhile.
        return [cast("str", name) for name in ids if name is not None]

    def _items(self, start: int, end: int) -> Program[list[MemoryItem]]:
        ids = yield from self._ids(start, end)
        records = yield [GetOp(self.namespace, bank.item_key(name)) for name in ids]
        return [
            bank.item_of(record)
            for record in cast("Sequence[Item | None]", records)
            if record is not None
        ]
