"""How much goes on at once in a plan: items, and calls to each server, whatever processes carry it out.

One process counts for itself. Of several, the one that holds the run directory keeps the slots
(`SlotKeeper`), and lends them to the others over the line by which it names their runs, on this machine
and on the nodes of a cluster alike. A process asks when it is short, and is lent what is free, up to a fair
part of what is allowed: what others do not need is its own as long as that is so. It uses what it was
lent over and over without a word; every `TICK_SECONDS` it says how much it needed, and how its calls ended,
so that a server is judged by the calls of all. What a process held that died is free at once.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from langgraft.benchmarks.harness.failures import Failure

NO_LIMIT: Final = 1 << 30
"""Calls in flight where nobody says how many."""
ITEMS: Final = ""
"""Name of the slots for items; all others are called by the server that the calls go to."""
TICK_SECONDS: Final = 0.2
"""How often a process tells what it needs of the slots that it was lent."""

_QUEUEING: Final = 4.0
"""Replies that take so many times as long as in the best window have waited in the server's queue."""
_LEAST_WINDOW: Final = 8
"""Calls by which a server is judged, at least."""
_TOO_MANY: Final = frozenset({"rate_limit", "http_408", "http_503", "http_504", "http_529"})
"""Reasons of failures that fewer calls at once may cure (`langgraft.benchmarks.harness.failures`)."""


class Window:
    """How many calls one server bears, judged by how they end.

    Additive increase, multiplicative decrease, as DCTCP has it (RFC 8257): each window of calls, as many
    as may be in flight, allows one call more, up to `most`, and takes away half the share of what is
    allowed that the server refused for being too many. So a flood of refusals halves it, and one in
    five, at random, leaves ten. Where replies of a window took over four times as
    long as in the best one, the server makes them wait, and one call fewer is allowed.

    Args:
        most: Calls in flight at the most; the limit begins there.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = float(most)
        self._replies = self._refused = 0
        self._seconds = 0.0
        self._best = float("inf")

    @property
    def allowed(self) -> int:
        """Calls that may be in flight now; at least 1."""
        return max(1, int(self._allowed))

    def take(self, replies: int, refused: int, seconds: float) -> None:
        """Count replies, which took so many seconds together, and refusals; judge a window that is full."""
        self._replies += replies
        self._refused += refused
        self._seconds += seconds
        calls = self._replies + self._refused
        if calls < max(_LEAST_WINDOW, self.allowed):
            return
        step = 1
        if not self._refused:
            mean = self._seconds / calls
            self._best = min(self._best, mean)
            step = -1 if mean > _QUEUEING * self._best else 1
        allowed = self._allowed * (1 - self._refused / calls / 2) + step
        self._allowed = min(float(self._most), max(1.0, allowed))
        self._replies, self._refused, self._seconds = 0, 0, 0.0


# Slots that are lent -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Need:
    """What a process tells of the slots of one name."""

    name: str
    need: int
    """How many it has in use or waits for, at the most of late."""
    back: int = 0
    """How many it gives back."""
    replies: int = 0
    refused: int = 0
    seconds: float = 0.0
    """Of these replies, together."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a process is told of the slots of one name."""

    name: str
    more: int
    """How many it is lent beside those that it has."""
    most: int
    """How many it may keep: what it has beyond is given back, once it is not in use."""
    number: int
    """Grants of a higher number are younger, in whatever order they arrive."""


class Lease:
    """The slots of one name that a process was lent; whoever has it locks.

    Args:
        name: Their name.
        tell: Tells whoever lends them.
    """

    def __init__(self, name: str, tell: Callable[[Need], None]) -> None:
        self.held = 0
        """How many the process has."""
        self._name = name
        self._tell = tell
        self._most = NO_LIMIT
        self._number = 0
        self._asked = False
        self._peak = self._told = 0
        self._ended = (0, 0, 0.0)

    def note(self, need: int) -> None:
        """Take note of how many are in use or waited for; ask for more where these are too few."""
        self._peak = max(self._peak, need)
        if need > self.held and not self._asked:
            self._asked = True
            self._say(need)

    def ended(self, *, replies: int = 0, refused: int = 0, seconds: float = 0.0) -> None:
        """Count calls that ended. What was refused is told at once: others ask the same server."""
        had = self._ended
        self._ended = (had[0] + replies, had[1] + refused, had[2] + seconds)
        if refused:
            self._say(self._told)

    def settle(self, used: int) -> None:
        """Give back what is not in use and may not be kept."""
        back = self.held - max(used, self._most)
        if back > 0:
            self.held -= back
            self._say(self._told, back)

    def take(self, grant: Grant) -> None:
        """Take what is lent."""
        self.held += grant.more
        self._asked = self._asked and not grant.more
        if grant.number > self._number:
            self._number, self._most = grant.number, grant.most

    def tick(self, need: int) -> None:
        """Tell what was needed since the last time, where that is news."""
        peak, self._peak = max(self._peak, need), need
        self._asked = peak > self.held
        if peak != self._told or self._ended[0]:
            self._say(peak)

    def _say(self, need: int, back: int = 0) -> None:
        (replies, refused, seconds), self._ended = self._ended, (0, 0, 0.0)
        self._told = need
        self._tell(Need(self._name, need, back, replies, refused, seconds))


@dataclass(slots=True)
class _Share:
    """What a process needs and has."""

    need: int = 0
    held: int = 0
    most: int = NO_LIMIT
    lent: int = 0
    """When it was lent some last, by the number of the grant."""


ProcessT = TypeVar("ProcessT", bound=Hashable)


@dataclass(slots=True)
class _Pool(Generic[ProcessT]):
    """The slots of one name."""

    window: Window
    shares: dict[ProcessT, _Share] = field(default_factory=dict)
    grants: int = 0


class SlotKeeper(Generic[ProcessT]):
    """Lends the slots of a plan to its processes; belongs to one event loop.

    Args:
        items: How many items may be under way.
        calls: How many calls may be in flight to one server, at the most.
        send: Tells a process what it is lent; it may be gone.
    """

    def __init__(self, items: int, calls: int, send: Callable[[ProcessT, Grant], None]) -> None:
        self._calls = calls
        self._send = send
        self._pools: dict[str, _Pool[ProcessT]] = {ITEMS: _Pool(Window(items))}

    def told(self, process: ProcessT, need: Need) -> None:
        """Take in what a process tells, and lend what there is."""
        pool = self._pools.setdefault(need.name, _Pool(Window(self._calls)))
        share = pool.shares.setdefault(process, _Share())
        share.need = need.need
        share.held -= need.back
        if need.replies or need.refused:
            pool.window.take(need.replies, need.refused, need.seconds)
        self._deal(need.name, pool)

    def gone(self, process: ProcessT) -> None:
        """Take back what a process held that is dead."""
        for name, pool in self._pools.items():
            if pool.shares.pop(process, None) is not None:
                self._deal(name, pool)

    def _deal(self, name: str, pool: _Pool[ProcessT]) -> None:
        """Lend what is free, and ask back what others are short of."""
        shares, allowed = pool.shares, pool.window.allowed
        parts = _fair_parts(shares, allowed)
        free = allowed - sum(each.held for each in shares.values())
        short = free < 0 or any(parts[who] > each.held for who, each in shares.items())
        for who, share in shares.items():
            more = max(0, min(parts[who] - share.held, free))
            most = parts[who] if short and share.held > parts[who] else NO_LIMIT
            if more or most != share.most:
                pool.grants += 1
                free -= more
                share.held += more
                share.most = most
                share.lent = pool.grants if more else share.lent
                self._send(who, Grant(name, more, most, pool.grants))


def _fair_parts(shares: Mapping[ProcessT, _Share], allowed: int) -> dict[ProcessT, int]:
    """Divide what is allowed: nobody gets more than it needs, and nobody less than another for needing more.

    Where there is less than one for each, they take turns.
    """
    needing = [who for who, share in shares.items() if share.need]
    if allowed < len(needing):
        needing.sort(key=lambda who: -shares[who].lent)
    else:
        needing.sort(key=lambda who: shares[who].need)
    parts, left = dict.fromkeys(shares, 0), allowed
    for place, who in enumerate(needing):  # who comes last may get one more than an equal part
        parts[who] = min(shares[who].need, left // (len(needing) - place))
        left -= parts[who]
    return parts


# Calls in flight -------------------------------------------------------------------------------


class CallLimit:
    """Calls in flight to one server, as many as it bears; for threads and event loops alike.

    It decides when a call is made, and never what it says.

    Args:
        most: Calls in flight at the most.
        lease: Of one of several processes, what it is lent of the plan's; `None` judges the server
            by the calls of this process (`Window`).
    """

    def __init__(self, most: int, lease: Lease | None = None) -> None:
        self._window = Window(most)
        self._lease = lease
        self._flying = self._waiting = 0
        self._lock = threading.Condition()
        self._tickets: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def allowed(self) -> int:
        """Calls that may be in flight now: at least 1, or what the process was lent."""
        return self._window.allowed if self._lease is None else self._lease.held

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait in a thread until one call more may be made, and count it while it is."""
        with self._lock:
            self._waiting += 1
            try:
                while not self._begun():
                    self._lock.wait()
            finally:
                self._waiting -= 1
        try:
            yield
        finally:
            self._end()

    @asynccontextmanager
    async def aheld(self) -> AsyncIterator[None]:
        """Do as `held` does, in an event loop."""
        with self._lock:
            self._waiting += 1
        try:
            while True:
                with self._lock:
                    if self._begun():
                        break
                    loop = asyncio.get_running_loop()
                    ticket: asyncio.Future[None] = loop.create_future()
                    self._tickets.append((loop, ticket))
                try:
                    await ticket
                except asyncio.CancelledError:
                    self._wake()  # in case that it was this one's turn
                    raise
        finally:
            with self._lock:
                self._waiting -= 1
        try:
            yield
        finally:
            self._end()

    def _begun(self) -> bool:
        """Begin a call that was waited for, where there is room; the lock is held."""
        if self._lease is not None:
            self._lease.note(self._flying + self._waiting)
        room = self._flying < self.allowed
        self._flying += room
        return room

    def _end(self) -> None:
        with self._lock:
            self._flying -= 1
            if self._lease is not None:
                self._lease.settle(self._flying)
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
            if self._lease is not None:
                self._lease.ended(replies=1, seconds=seconds)
                return
            self._window.take(1, 0, seconds)
        self._wake()

    def failed(self, failure: Failure) -> None:
        """Take note of a failed call; most failures say nothing of how many a server bears."""
        if failure.reason in _TOO_MANY or "RateLimit" in failure.reason:
            with self._lock:
                if self._lease is not None:
                    self._lease.ended(refused=1)
                else:
                    self._window.take(0, 1, 0.0)

    def granted(self, grant: Grant) -> None:
        """Take what the process is lent."""
        assert self._lease is not None
        with self._lock:
            self._lease.take(grant)
            need = (
                self._flying + self._waiting
            )  # who waits uses a slot once before it is given back
            self._lease.settle(min(need, self._lease.held))
            self._lease.note(need)
        self._wake()

    def tick(self) -> None:
        """Tell what was needed of what was lent."""
        assert self._lease is not None
        with self._lock:
            self._lease.tick(self._flying + self._waiting)


class CallLimits:
    """A `CallLimit` for each server that models of a plan ask.

    Args:
        most: Calls in flight to one of them at the most.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._of: dict[str, CallLimit] = {}
        self._tell: Callable[[Need], None] | None = None

    def __reduce__(self) -> "tuple[type[CallLimits], tuple[int]]":
        """Send another process the number alone: it is to be lent what it uses."""
        return CallLimits, (self.most,)

    def lent_by(self, tell: Callable[[Need], None]) -> None:
        """Make no call from now on but in slots that are lent by whoever is told so."""
        self._tell = tell

    def of(self, server: str) -> CallLimit:
        """Return the limit of a server, by its URL or any other name."""
        with self._lock:
            found = self._of.get(server)
            if found is None:
                lease = None if self._tell is None else Lease(server, self._tell)
                found = self._of[server] = CallLimit(self.most, lease)
            return found

    def tick(self) -> None:
        """Tell what was needed of what was lent."""
        with self._lock:
            limits = [*self._of.values()]
        for each in limits:
            each.tick()


def _settle(ticket: asyncio.Future[None]) -> None:
    if not ticket.done():
        ticket.set_result(None)
