"""A store that threads and tasks may share."""

import asyncio
import threading
from collections.abc import Iterable

from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore


class LockedStore(InMemoryStore):
    """LangGraph's in-memory store with the lock that it lacks."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as the base class, one caller at a time."""
        with self._guard:
            return super().batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`, with other tasks in between."""
        await asyncio.sleep(0)
        results = self.batch(ops)
        await asyncio.sleep(0)
        return results
