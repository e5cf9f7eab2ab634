"""Waiting for everything at once: the host, processes, what they print, and the clock."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable

from langgraft.environments.sandboxes.inside.frames import BEAT, INTERRUPT, pack, unpack_json
from langgraft.environments.sandboxes.inside.host_channel import Host
from langgraft.environments.sandboxes.inside.kernel_child import KernelChild
from langgraft.environments.sandboxes.inside.output import Clock, Output
from langgraft.environments.sandboxes.inside.processes import Processes

BEAT_SECONDS = 1.0


class Watch:
    """The one place where the supervisor waits.

    Attributes:
        host: Hears what the host asks, and takes what it is told, at any time.
        processes: Reaped at any time.
        kernel: Takes what it was told and has not taken yet, at any time.
        cancelled: The host has called off what runs.
    """

    def __init__(self, host: Host, processes: Processes) -> None:
        self.host = host
        self.processes = processes
        self.kernel: KernelChild | None = None
        self.cancelled = False
        self._running: object = None
        self._asked: list[tuple[int, bytes]] = []
        self._beat = 0.0

    def next(self) -> tuple[int, bytes]:
        """Wait for what the host asks next."""
        while not self._asked:
            self.wait((), 2.0)
        return self._asked.pop(0)

    def begin(self, number: object) -> None:
        """Note which run or cell may be called off from now on."""
        self._running, self.cancelled = number, False

    def end(self) -> None:
        """Note that nothing runs."""
        self._running, self.cancelled = None, False

    def wait(self, descriptors: Iterable[int], seconds: float) -> set[int]:
        """Wait until a descriptor can be read, the host speaks, a process ends, or time is up."""
        host, kernel = self.host, self.kernel
        poll = select.poll()
        for descriptor in (host.source, self.processes.wakeup, *descriptors):
            poll.register(descriptor, select.POLLIN)
        if host.unsent:
            poll.register(host.sink, select.POLLOUT)
        if kernel is not None and kernel.unsent:
            poll.register(kernel.control, select.POLLOUT)
        # Rounded up, or the last millisecond before a deadline would be spent waiting for 0.
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000 + 0.5)}
        self.processes.reap()
        host.push()
        if kernel is not None:
            kernel.push()
        self._hear(ready)
        return ready

    def tick(self) -> None:
        """Show a sign of life now and then."""
        now = time.monotonic()
        if now >= self._beat + BEAT_SECONDS:
            self._beat = now
            self._hear({self.host.source})
            if not self.host.unsent:
                self.host.send(pack(BEAT))

    def attend(
        self, output: Output, clock: Clock, reports: set[int], over: Callable[[set[int]], bool]
    ) -> None:
        """Relay a run's output until it is over or has to be ended."""
        ready: set[int] = set()
        while not over(ready):
            if self.cancelled and clock.stopped is None:
                clock.stopped = "cancelled"
                return
            if clock.check(output.count):
                return
            self.tick()
            left = min(clock.deadline - time.monotonic(), BEAT_SECONDS)
            ready = self.wait(output.open | reports, left)
            for descriptor in output.open & ready:
                output.read(descriptor)

    def _hear(self, ready: set[int]) -> None:
        if self.host.source in ready:
            self.host.hear()
        self.host.check()
        while True:
            frame = self.host.next()
            if frame is None:
                return
            if frame[0] != INTERRUPT:
                self._asked.append(frame)
            elif self._running is not None:
                self.cancelled |= unpack_json(frame[1]).get("id") == self._running
