"""Stores that LangGraph allows and that are hard to read page by page."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from langgraph.store.base import Op, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from langgraft.memory.stores.programs import Namespace

Order = Callable[[list[SearchItem]], list[SearchItem]]


class PagingStore(InMemoryStore):
    """Lists records in an order of its own, and at most `cap` of them a search.

    `asked` keeps each search's limit and offset. What is in `after` is called after each search.
    """

    def __init__(self, order: Order = list, *, cap: int | None = None) -> None:
        super().__init__()
        self.order, self.cap = order, cap
        self.asked: list[tuple[int, int]] = []
        self.after: Callable[[], object] = lambda: None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as the base class, but for searches."""
        return [
            self._page(op) if isinstance(op, SearchOp) else super(PagingStore, self).batch([op])[0]
            for op in ops
        ]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`."""
        return self.batch(ops)

    def _page(self, op: SearchOp) -> list[SearchItem]:
        self.asked.append((op.limit, op.offset))
        found = super().batch([op._replace(limit=10**9, offset=0)])[0]
        stop = op.offset + min(op.limit, self.cap or op.limit)
        page = self.order(cast("list[SearchItem]", found))[op.offset : stop]
        self.after()
        return page


def shuffling(seed: int) -> Order:
    """Place all records anew for each search, as `ORDER BY updated_at` may do with ties."""
    draw = random.Random(seed)
    return lambda items: draw.sample(items, len(items))


def fill(store: InMemoryStore, namespace: Namespace, count: int) -> Sequence[str]:
    """Put documents, each with a word of its own, and return their keys."""
    keys = [f"k{i:05}" for i in range(count)]
    for key in keys:
        store.put(namespace, key, {"text": f"common {key}"})
    return keys
