"""How much goes on at once: slots for items, and calls that a server bears."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InfrastructureError
from langgraft.benchmarks.harness import replies
from langgraft.benchmarks.harness.exchange import RetryPolicy
from langgraft.benchmarks.harness.execute import Slots
from langgraft.benchmarks.harness.failures import Failure, FailureKind
from langgraft.benchmarks.harness.limits import (
    ITEMS,
    NO_LIMIT,
    CallLimit,
    CallLimits,
    Grant,
    Lease,
    Need,
    SlotKeeper,
)
from langgraft.benchmarks.harness.models import MeteredChatModel, make_model

REFUSED = Failure(FailureKind.PROVIDER_TRANSIENT, "rate_limit")
LOST = Failure(FailureKind.PROVIDER_TRANSIENT, "connection")


@given(
    size=st.integers(1, 4),
    ranks=st.lists(st.tuples(st.integers(0, 1), st.booleans()), max_size=30),
)
def test_slots_when_some_leave_early_then_none_is_lost_and_streams_go_first(
    size: int, ranks: list[tuple[int, bool]]
) -> None:
    """However many are cancelled while they wait, all slots are there again at the end."""

    async def scenario() -> None:
        slots = Slots(size)
        order: list[int] = []
        most = under_way = 0

        async def item(rank: int) -> None:
            nonlocal most, under_way
            async with slots.held(rank):
                under_way += 1
                most = max(most, under_way)
                order.append(rank)
                try:
                    await asyncio.sleep(0)
                finally:
                    under_way -= 1

        tasks = [asyncio.create_task(item(rank)) for rank, _ in ranks]
        await asyncio.sleep(0)
        for task, (_, leaves) in zip(tasks, ranks, strict=True):
            if leaves:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= size
        assert slots.free == size
        later = order[size:]
        assert later == sorted(later)

    asyncio.run(scenario())


def told(limit: CallLimit, outcomes: Sequence[Failure | float]) -> int:
    """Tell a limit how calls ended; return what it allows then."""
    for each in outcomes:
        if isinstance(each, Failure):
            limit.failed(each)
        else:
            limit.replied(each)
    return limit.allowed


def test_limit_when_a_window_is_refused_whole_is_halved_and_grows_back_by_ones() -> None:
    """A flood of refusals halves it; each window without one gives one back, up to the most."""
    limit = CallLimit(64)
    assert told(limit, [REFUSED] * 64) == 33
    assert told(limit, [1.0] * 33) == 34
    for _ in range(100):
        told(limit, [1.0] * 64)
    assert limit.allowed == 64


def test_limit_when_one_call_in_five_is_refused_at_random_stays_above_a_few() -> None:
    """Refusals that do not depend on the load cost some of it, not nearly all."""
    limit = CallLimit(64)
    for _ in range(400):
        told(limit, [REFUSED, 1.0, 1.0, 1.0, 1.0])
    assert 6 <= limit.allowed <= 16


def test_limit_when_replies_take_much_longer_goes_down_and_lost_connections_count_for_nothing() -> (
    None
):
    """A queue at the server shows in how long replies take; a lost connection says nothing of it."""
    limit = CallLimit(16)
    told(limit, [1.0] * 16)
    assert told(limit, [5.0] * 16) == 15
    assert told(limit, [LOST] * 100) == 15


@given(most=st.integers(1, 5), calls=st.integers(0, 40), leave=st.integers(0, 10))
def test_limit_when_tasks_and_threads_share_it_then_is_never_exceeded(
    most: int, calls: int, leave: int
) -> None:
    """Calls of event loops and of threads are counted together, also where some are cancelled."""
    limit = CallLimit(most)
    lock, flying, worst = threading.Lock(), 0, 0

    def begin() -> None:
        nonlocal flying, worst
        with lock:
            flying += 1
            worst = max(worst, flying)

    def end() -> None:
        nonlocal flying
        with lock:
            flying -= 1

    def blocking(_: int) -> None:
        with limit.held():
            begin()
            end()

    async def waiting() -> None:
        async with limit.aheld():
            begin()
            try:
                await asyncio.sleep(0)
            finally:
                end()

    async def loop() -> None:
        tasks = [asyncio.create_task(waiting()) for _ in range(calls)]
        await asyncio.sleep(0)
        for task in tasks[:leave]:
            task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)

    with ThreadPoolExecutor(3) as pool:
        threads = [pool.submit(blocking, each) for each in range(5)]
        asyncio.run(loop())
        for each in threads:
            each.result(30)
    assert worst <= most


# Several processes -------------------------------------------------------------------------------


class Line:
    """Processes that are lent slots, over lines on which messages arrive a little later, in order."""

    def __init__(self, items: int, most: int, processes: int) -> None:
        self.keeper: SlotKeeper[int] = SlotKeeper(items, most, self._send)
        self.slots = [Slots(items, Lease(ITEMS, partial(self._tell, n))) for n in range(processes)]
        self.limits = [CallLimits(most) for _ in range(processes)]
        for number, limits in enumerate(self.limits):
            limits.lent_by(partial(self._tell, number))
        self.dead: set[int] = set()

    def _send(self, process: int, grant: Grant) -> None:
        asyncio.get_running_loop().call_soon(self._granted, process, grant)

    def _granted(self, process: int, grant: Grant) -> None:
        if process in self.dead:
            return
        if grant.name == ITEMS:
            self.slots[process].granted(grant)
        else:
            self.limits[process].of(grant.name).granted(grant)

    def _tell(self, process: int, need: Need) -> None:
        asyncio.get_running_loop().call_soon(self._told, process, need)

    def _told(self, process: int, need: Need) -> None:
        if process not in self.dead:
            self.keeper.told(process, need)

    def tick(self) -> None:
        """Let each process tell what it needs."""
        for number in range(len(self.limits)):
            self.slots[number].tick()
            self.limits[number].tick()

    async def turn(self, times: int, ticks: int = NO_LIMIT) -> None:
        """Let time pass, and processes tell what they need once in so many turns."""
        for number in range(1, times + 1):
            await asyncio.sleep(0)
            if number % ticks == 0:
                self.tick()

    def kill(self, process: int) -> None:
        """Let a process die."""
        self.dead.add(process)
        self.keeper.gone(process)


@given(
    items=st.integers(1, 9),
    most=st.integers(1, 5),
    calls=st.lists(st.integers(0, 12), min_size=1, max_size=3),
    dies=st.booleans(),
    ticks=st.integers(1, 9),
)
def test_processes_when_they_share_slots_then_all_go_on_and_never_exceed_them(
    items: int, most: int, calls: list[int], *, dies: bool, ticks: int
) -> None:
    """However few there are, and whoever dies while it holds some, the others come to their end."""

    async def scenario() -> None:
        line = Line(items, most, len(calls))
        flying, worst = [0] * len(calls), 0

        async def item(process: int) -> None:
            nonlocal worst
            async with line.slots[process].held(1), line.limits[process].of("server").aheld():
                flying[process] += 1
                worst = max(worst, sum(flying))
                if dies and process == 0:
                    await asyncio.Event().wait()
                for _ in range(3):
                    await asyncio.sleep(0)
                flying[process] -= 1

        tasks = [
            [asyncio.create_task(item(n)) for _ in range(size)] for n, size in enumerate(calls)
        ]
        if dies:
            await line.turn(8)
            for task in tasks[0]:
                task.cancel()
            flying[0] = 0
            line.kill(0)
        left = [task for each in tasks[int(dies) :] for task in each]
        await line.turn(2_000, ticks)
        assert all(task.done() for task in left)
        assert worst <= min(items, most)

    asyncio.run(scenario())


def test_processes_when_one_needs_nothing_then_the_other_has_all_until_it_does() -> None:
    """What stays unused is lent to others; asked for, it comes back as calls end."""

    async def scenario() -> None:
        line = Line(8, 8, 2)
        ends, begun = asyncio.Event(), [0, 0]

        async def call(process: int) -> None:
            async with line.limits[process].of("server").aheld():
                begun[process] += 1
                await ends.wait()

        async def settled() -> list[int]:
            await line.turn(50, 1)
            return list(begun)

        tasks = [asyncio.create_task(call(0)) for _ in range(20)]
        assert await settled() == [8, 0]
        tasks += [asyncio.create_task(call(1)) for _ in range(20)]
        assert await settled() == [8, 0]
        ends.set()
        ends = asyncio.Event()
        assert await settled() == [12, 4]
        ends.set()
        await asyncio.gather(*tasks)

    asyncio.run(scenario())


def test_processes_when_one_is_refused_then_all_may_make_fewer_calls() -> None:
    """A server is judged by the calls of the whole plan, and what one process learns holds for all."""

    async def scenario() -> None:
        line = Line(16, 16, 2)
        limits = [each.of("server") for each in line.limits]
        for each in limits:
            for _ in range(8):
                async with each.aheld():
                    each.failed(REFUSED)
        await line.turn(50)
        pool = line.keeper._pools["server"]
        assert pool.window.allowed == 9
        assert sum(each.held for each in pool.shares.values()) <= 9

    asyncio.run(scenario())


# Connections ---------------------------------------------------------------------------------


@dataclass
class ModelServer:
    """A server of chat models, down to its connections."""

    said: dict[str, Any]
    """What it answers."""
    together: int = 1
    """How many requests it waits for before it answers them."""
    connections: int = 0
    open: int = 0
    asked: list[bytes] = field(default_factory=list)
    """The first line of each request."""
    url: str = ""

    def __post_init__(self) -> None:
        self._all_there = asyncio.Event()
        self.few = asyncio.Event()
        """Set once all connections but one were closed."""
        self.none = asyncio.Event()
        """Set while there is none."""
        self.none.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer on one connection until it is closed."""
        self.connections += 1
        self.open += 1
        self.none.clear()
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                self.asked.append(head.partition(b"\r\n")[0])
                await self._until_all_are_there()
                body = json.dumps(self.said).encode()
                told = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
                writer.write(told.encode() + b"\r\n\r\n" + body)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self.open -= 1
            if self.open <= 1:
                self.few.set()
            if not self.open:
                self.none.set()
            writer.close()

    async def _until_all_are_there(self) -> None:
        if len(self.asked) % self.together == 0:
            self._all_there.set()
            self._all_there = asyncio.Event()
        else:
            await self._all_there.wait()


ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}
    ],
}


@asynccontextmanager
async def listening(server: ModelServer) -> AsyncIterator[ModelServer]:
    """Serve on a free port; `url` says which."""
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        yield server
        await server.none.wait()


@asynccontextmanager
async def model_at(url: str) -> AsyncIterator[MeteredChatModel]:
    """Reach a server as a plan does, and ask once; close the connections, which nobody else would."""
    once = RetryPolicy(total_seconds=0.0)
    model = make_model("openai:m", base_url=url, api_key="none", retry=once)
    yield model
    inner: Any = model.inner
    await inner.root_async_client.close()


@pytest.fixture
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep connections however long the machine takes from one call to the next."""
    library = replies._library_of(openai.DefaultAsyncHttpxClient)
    monkeypatch.setattr(library, "Limits", partial(library.Limits, keepalive_expiry=None))
    monkeypatch.setattr(replies, "_IDLE_SECONDS", 3600.0)


async def ask_at_once(model: MeteredChatModel, calls: int) -> None:
    """Ask so often at the same time."""
    await asyncio.gather(*(model.ainvoke(f"hi {number}") for number in range(calls)))


@pytest.mark.usefixtures("_kept")
async def test_connections_when_many_calls_go_on_then_are_kept_and_used_again() -> None:
    """Forty calls at once take forty connections, and the next forty the same ones."""
    async with (
        listening(ModelServer(ANSWER, together=40)) as server,
        model_at(server.url) as model,
    ):
        for _ in range(3):
            await ask_at_once(model, 40)
        assert (len(server.asked), server.connections) == (120, 40)


@pytest.mark.usefixtures("_kept")
async def test_connections_when_calls_follow_one_another_then_one_is_enough() -> None:
    """However many were answered, and however many replies were refused."""
    async with listening(ModelServer(ANSWER)) as server, model_at(server.url) as model:
        for _ in range(20):
            await model.ainvoke("hi")
        server.said = {"error": {"message": "overloaded", "code": 503}}
        for _ in range(20):
            with pytest.raises(InfrastructureError):
                await model.ainvoke("hi")
        assert (len(server.asked), server.connections) == (40, 1)


async def test_connections_when_fewer_are_needed_for_a_while_then_the_others_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A burst does not hold a server's connections for ever."""
    monkeypatch.setattr(replies, "_IDLE_SECONDS", 0.01)
    async with (
        listening(ModelServer(ANSWER, together=40)) as server,
        model_at(server.url) as model,
    ):
        await ask_at_once(model, 40)
        await asyncio.sleep(0.02)
        server.together = 1
        await model.ainvoke("hi")
        async with asyncio.timeout(300):
            await server.few.wait()


async def test_connections_when_the_environment_names_a_proxy_then_go_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a lab's network needs is honored by every client of ours."""
    async with listening(ModelServer(ANSWER)) as server:
        for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        async with model_at("http://models.invalid/v1") as model:
            await model.ainvoke("hi")
        assert server.asked == [b"POST http://models.invalid/v1/chat/completions HTTP/1.1"]
