"""In which order items came, so that the first and the last are found without reading a bank.

LangGraph stores list records in no promised order, and filters of a plain listing do not reach
into an item. So providers that forget or recall by age keep a line of items in their bookkeeping,
one place a record. Joining writes two records, reading an end reads a few, and pruning reads as
many as there may be: a bank keeps marks of all episodes ever filed, and none of them is read.
The line is a function of the log, as all bookkeeping is; imported items join it as they settle
(`MemoryProvider._settle`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langgraph.store.base import GetOp, Item

from langgraft.memory import bank
from langgraft.memory.deltas import Add, Change, Remove, SetState
from langgraft.memory.item_ids import with_free_ids
from langgraft.memory.items import MemoryItem
from langgraft.memory.stores.drive import Program

_BLOCK = 64
"""Ids read at a time, at least."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A line of items in the order they came.

    Items that something else removed, a policy or an import that replaces them, leave their
    place empty and are passed over; one of the same name that comes later has its own.

    Args:
        namespace: The bank.
        name: Which line of the bank it is.
    """

    namespace: bank.Namespace
    name: str = "items"

    def add(self, item: MemoryItem) -> Program[list[Change]]:
        """Say what a new item changes: it enters the bank, and joins the line.

        The line holds names as the bank does, where an imported item may have this one's. Ask
        once in a delta: the next place is read off the bank.
        """
        changes = yield from with_free_ids(self.namespace, [Add(item)])
        added = [change.item for change in changes if isinstance(change, Add)]
        return [*changes, *(yield from self.join(added))]

    def join(self, items: Sequence[MemoryItem]) -> Program[list[SetState]]:
        """Say what changes when items join the end of the line."""
        first, end = yield from self._bounds()
        return self._placed(items, first, end) if items else []

    def overflow(self, limit: int) -> Program[list[Change]]:
        """Say what changes when the oldest leave, until there are `limit` (FIFO).

        Empty places are cleared away only with items, or where they are as many as items may be:
        what another policy forgets after this one makes no upkeep due.
        """
        first, end = yield from self._bounds()
        if end - first <= limit:
            return []
        held = yield from self._held(first, end)
        surplus = max(0, len(held) - limit)
        if not surplus and end - first <= 2 * limit:
            return []
        gone, kept = held[:surplus], held[surplus:]
        removed = [Remove(item.id, f"over the capacity of {limit}") for _, item in gone]
        start = kept[0][0] if kept else end
        if end - start <= 2 * limit:
            return [*removed, *self._vacated(first, start), self._set_bounds(start, end)]
        # Too many empty places between the items: they line up anew.
        moved = self._placed([item for _, item in kept], end, end)
        return [*removed, *self._vacated(first, end), *moved]

    def newest(
        self, limit: int, *, where: Callable[[MemoryItem], bool] = lambda _: True
    ) -> Program[list[MemoryItem]]:
        """Read the last `limit` items that pass `where`, newest first."""
        first, end = yield from self._bounds()
        found: list[MemoryItem] = []
        width = max(limit, _BLOCK)
        while end > first and len(found) < limit:
            start = max(first, end - width)
            block = yield from self._held(start, end)
            found += [item for _, item in reversed(block) if where(item)]
            end, width = start, 2 * width
        return found[:limit]

    def oldest(self) -> Program[MemoryItem | None]:
        """Read the first item that is still there."""
        first, end = yield from self._bounds()
        for start in range(first, end, _BLOCK):
            block = yield from self._held(start, min(start + _BLOCK, end))
            if block:
                return block[0][1]
        return None

    @property
    def _key(self) -> str:
        return f"arrivals/{self.name}"

    def _place(self, number: int) -> str:
        return f"{self._key}/{number}"

    def _bounds(self) -> Program[tuple[int, int]]:
        """Return the number of the first place in use, and of the first behind the line."""
        (held,) = yield from bank.read_state(self.namespace, [self._key])
        first, end = cast("list[int]", held or [0, 0])
        return first, end

    def _set_bounds(self, first: int, end: int) -> SetState:
        return SetState(self._key, [first, end])

    def _placed(self, items: Sequence[MemoryItem], first: int, end: int) -> list[SetState]:
        """Put items behind a line of these bounds."""
        places = [
            SetState(self._place(number), [item.id, item.order_index])
            for number, item in enumerate(items, end)
        ]
        return [*places, self._set_bounds(first, end + len(items))]

    def _vacated(self, start: int, end: int) -> list[SetState]:
        return [SetState(self._place(number), None) for number in range(start, end)]

    def _held(self, start: int, end: int) -> Program[list[tuple[int, MemoryItem]]]:
        """Read the items that are at their places, with the numbers of these."""
        keys = [self._place(number) for number in range(start, end)]
        values = cast("list[list[Any] | None]", (yield from bank.read_state(self.namespace, keys)))
        # A reader has no lock: a place may have been given up since.
        places = [(number, *held) for number, held in enumerate(values, start) if held]
        records = yield [GetOp(self.namespace, bank.item_key(name)) for _, name, _ in places]
        items = [
            None if record is None else bank.item_of(record)
            for record in cast("Sequence[Item | None]", records)
        ]
        return [
            (number, item)
            for (number, _, order), item in zip(places, items, strict=True)
            if item is not None and item.order_index == order
        ]
