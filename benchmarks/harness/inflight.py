"""How much goes on at once: items of all runs of a plan, and calls that one server bears."""

import asyncio
import heapq
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import Final

from langgraft.benchmarks.harness.failures import Failure


class Slots:
    """Room for items under way, shared by all runs of a process; belongs to one event loop.

    Args:
        size: How many items may be under way at once.

    Attributes:
        on_idle: Called when a slot is given back and nobody waits for it.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.on_idle: Callable[[], None] = lambda: None
        self._free = size
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    @property
    def free(self) -> int:
        """Slots that nobody holds."""
        return self._free

    @asynccontextmanager
    async def held(self, rank: int) -> AsyncIterator[None]:
        """Wait for a slot and hold it; the lowest rank comes first, and of equals who came first."""
        await self._take(rank)
        try:
            yield
        finally:
            self._give()

    async def _take(self, rank: int) -> None:
        if self._free:
            self._free -= 1
            return
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._arrivals), ticket))
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():  # it was given to one who left
                self._give()
            raise

    def _give(self) -> None:
        while self._waiting:
            *_, ticket = heapq.heappop(self._waiting)
            if not ticket.done():
                ticket.set_result(None)
                return
        self._free += 1
        self.on_idle()


_QUEUEING: Final = 4.0
"""Replies that take so many times as long as in the best window have waited in the server's queue."""
_LEAST_WINDOW: Final = 8
"""Calls by which a server is judged, at least."""
_TOO_MANY: Final = frozenset({"rate_limit", "http_408", "http_503", "http_504", "http_529"})
"""Reasons of failures that fewer calls at once may cure (`langgraft.benchmarks.harness.failures`)."""


class CallLimit:
    """Calls in flight to one server, as many as it bears; for threads and event loops alike.

    Additive increase, multiplicative decrease, as DCTCP has it (RFC 8257): each window of calls, as many
    as may be in flight, allows one call more, up to `most`, and takes away half the share of what is
    allowed that the server refused for being too many. So a flood of refusals halves it, and one in
    five, at random, leaves ten. Where replies of a window took over four times as
    long as in the best one, the server makes them wait, and one call fewer is allowed.

    It decides when a call is made, and never what it says.

    Args:
        most: Calls in flight at the most; the limit begins there.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._allowed = float(most)
        self._flying = 0
        self._lock = threading.Condition()
        self._tickets: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._replies = self._refused = 0
        self._seconds = 0.0
        self._best = float("inf")

    @property
    def allowed(self) -> int:
        """Calls that may be in flight now; at least 1."""
        return max(1, int(self._allowed))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait in a thread until one call more may be made, and count it while it is."""
        with self._lock:
            while self._flying >= self.allowed:
                self._lock.wait()
            self._flying += 1
        try:
            yield
        finally:
            self._end()

    @asynccontextmanager
    async def aheld(self) -> AsyncIterator[None]:
        """Do as `held` does, in an event loop."""
        while True:
            with self._lock:
                if self._flying < self.allowed:
                    self._flying += 1
                    break
                loop = asyncio.get_running_loop()
                ticket: asyncio.Future[None] = loop.create_future()
                self._tickets.append((loop, ticket))
            try:
                await ticket
            except asyncio.CancelledError:
                self._wake()  # in case that it was this one's turn
                raise
        try:
            yield
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._flying -= 1
        self._wake()

    def _wake(self) -> None:
        """Wake as many as there is room for; who finds none waits again."""
        with self._lock:
            room = max(0, self.allowed - self._flying)
            self._lock.notify(room)
            woken, self._tickets = self._tickets[:room], self._tickets[room:]
        for loop, ticket in woken:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, ticket)

    def replied(self, seconds: float) -> None:
        """Count a reply that took so long."""
        with self._lock:
            self._replies += 1
            self._seconds += seconds
            self._judge()
        self._wake()

    def failed(self, failure: Failure) -> None:
        """Take note of a failed call; most failures say nothing of how many a server bears."""
        if failure.reason in _TOO_MANY or "RateLimit" in failure.reason:
            with self._lock:
                self._refused += 1
                self._judge()

    def _judge(self) -> None:
        """Judge a window, once it is full."""
        calls = self._replies + self._refused
        if calls < max(_LEAST_WINDOW, self.allowed):
            return
        step = 1
        if not self._refused:
            mean = self._seconds / calls
            self._best = min(self._best, mean)
            step = -1 if mean > _QUEUEING * self._best else 1
        allowed = self._allowed * (1 - self._refused / calls / 2) + step
        self._allowed = min(float(self.most), max(1.0, allowed))
        self._replies, self._refused, self._seconds = 0, 0, 0.0


class CallLimits:
    """A `CallLimit` for each server that models of a plan ask.

    Args:
        most: Calls in flight to one of them at the most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._of: dict[str, CallLimit] = {}

    def __reduce__(self) -> "tuple[type[CallLimits], tuple[int]]":
        """Send another process the number alone: what it is refused it finds itself."""
        return CallLimits, (self._most,)

    def of(self, server: str) -> CallLimit:
        """Return the limit of a server, by its URL or any other name."""
        with self._lock:
            return self._of.setdefault(server, CallLimit(self._most))


NO_LIMIT: Final = 1 << 30
"""Calls in flight where nobody says how many."""


def _settle(ticket: asyncio.Future[None]) -> None:
    if not ticket.done():
        ticket.set_result(None)
