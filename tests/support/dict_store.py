"""A store that a user might write."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class DictStore(BaseStore):
    """A user's store: one dict, newest record first, no queries, at most 7 records a search.

    `log` keeps every batch it was given; `abatch` gives way to other tasks before and after.
    """

    def __init__(self) -> None:
        self.records: dict[tuple[tuple[str, ...], str], Item] = {}
        self.log: list[list[Op]] = []

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Read first, then write."""
        batch = list(ops)
        self.log.append(batch)
        results = [self._read(op) for op in batch]
        for op in batch:
            if isinstance(op, PutOp):
                self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`, with other tasks in between."""
        await asyncio.sleep(0)
        results = self.batch(ops)
        await asyncio.sleep(0)
        return results

    def _put(self, op: PutOp) -> None:
        self.records.pop((op.namespace, op.key), None)
        if op.value is not None:
            self.records[op.namespace, op.key] = Item(
                value=dict(op.value),
                key=op.key,
                namespace=op.namespace,
                created_at=_EPOCH,
                updated_at=_EPOCH,
            )

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self.records.get((op.namespace, op.key))
            case SearchOp():
                assert not op.query, "this store cannot answer queries"
                items = [
                    SearchItem(item.namespace, item.key, item.value, _EPOCH, _EPOCH)
                    for item in reversed(list(self.records.values()))
                    if item.namespace[: len(op.namespace_prefix)] == op.namespace_prefix
                    and (op.filter or {}).items() <= item.value.items()
                ]
                return items[op.offset : op.offset + min(op.limit, 7)]
            case ListNamespacesOp():
                return sorted({namespace for namespace, _ in self.records})
            case _:
                return None
