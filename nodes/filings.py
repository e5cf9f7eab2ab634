"""Episodes on their way into banks: those filed in the background, and those that could not be filed yet."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import Context
from typing import Any, Final, Generic, TypeAlias, TypeVar

from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.stores.programs import Namespace

T = TypeVar("T")

Place: TypeAlias = tuple[Namespace, str]
"""The bank that an episode is filed in, and the episode: other answers and users may share a turn's name."""

Failed: TypeAlias = Callable[[BaseException], None]
"""Is told why an episode was not filed."""

KEPT: Final = 4096
"""Episodes of each kind that a process remembers: the latest."""


class Filing:
    """An episode that is filed meanwhile: in a thread, or as a task of an event loop."""

    def __init__(self, work: "Future[Any] | asyncio.Task[Any]") -> None:
        self.work = work

    def wait(self) -> None:
        """Wait for its end, whatever that is; a task ends where its event loop runs."""
        if isinstance(self.work, Future):
            wait([self.work])

    async def await_it(self) -> None:
        """Do as `wait` does, asynchronously."""
        work = self.work
        if isinstance(work, Future):
            await asyncio.wait([asyncio.wrap_future(work)])
        elif work.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([work])


class Filings(Generic[T]):
    """What a process knows of the episodes that it files; `T` is the record of a turn."""

    def __init__(self) -> None:
        self._running: dict[Place, Filing] = {}
        self._results: OrderedDict[Place, T] = OrderedDict()
        self._missed: OrderedDict[Place, tuple[MemoryProvider[Any], T]] = OrderedDict()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def start(self, place: Place, program: Program[Call, T], failed: Failed) -> None:
        """File an episode in a thread, for which Python waits when it ends."""
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(4, "langgraft-filing")
        self._started(place, self._pool.submit(run, program, do), failed)

    async def astart(self, place: Place, program: Program[Call, T], failed: Failed) -> None:
        """File an episode in a task of this event loop, which does not wait for it when it ends."""
        # In a context of its own, as a thread has it: the run that it comes from, and its trace, have ended.
        work = asyncio.create_task(arun(program, ado), context=Context())
        self._started(place, work, failed)

    def _started(self, place: Place, work: "Future[T] | asyncio.Task[T]", failed: Failed) -> None:
        with self._lock:
            self._running[place] = Filing(work)
        work.add_done_callback(lambda work: self._ended(place, work, failed))

    def _ended(self, place: Place, work: Any, failed: Failed) -> None:
        error = asyncio.CancelledError() if work.cancelled() else work.exception()
        if error is None:
            self.filed(place, work.result())
        else:
            failed(error)
        with self._lock:
            self._running.pop(place, None)

    def running(self, place: Place) -> Filing | None:
        """Return what files an episode, as long as it runs."""
        return self._running.get(place)

    def result(self, place: Place) -> T | None:
        """Return the record of a turn that was filed in the background, or late."""
        return self._results.get(place)

    def filed(self, place: Place, record: T) -> None:
        """Remember that an episode is filed."""
        with self._lock:
            self._missed.pop(place, None)
            _keep(self._results, place, record)

    def miss(self, place: Place, memory: MemoryProvider[Any], record: T) -> None:
        """Remember an episode that could not be filed, as the last to be tried again."""
        with self._lock:
            _keep(self._missed, place, (memory, record))

    def missed(self, namespace: Namespace | None = None) -> list[tuple[MemoryProvider[Any], T]]:
        """Return what could not be filed yet, in one bank or in all; first what failed first."""
        with self._lock:
            return [
                each
                for (bank, _), each in self._missed.items()
                if namespace is None or bank == namespace
            ]

    def drop(self, place: Place) -> None:
        """Forget an episode that is not to be filed any more."""
        with self._lock:
            self._missed.pop(place, None)

    def wait(self) -> None:
        """Wait for all that is filed in the background."""
        for filing in list(self._running.values()):
            filing.wait()

    async def await_all(self) -> None:
        """Do as `wait` does, asynchronously."""
        for filing in list(self._running.values()):
            await filing.await_it()


def _keep(kept: "OrderedDict[Place, Any]", place: Place, what: Any) -> None:
    kept[place] = what
    kept.move_to_end(place)
    while len(kept) > KEPT:
        kept.popitem(last=False)
