"""What one run prints, and how much and how long it may."""

from __future__ import annotations

import os
import time

from langgraft.environments.sandboxes.inside.frames import CHUNK, STDERR, STDOUT, pack
from langgraft.environments.sandboxes.inside.host_channel import Host
from langgraft.environments.sandboxes.inside.relay import Relay

PIPE_SIZE = 1 << 20


class Output:
    """What one run prints, on its way to the host, or to nobody."""

    def __init__(self, host: Host | None, descriptors: tuple[int, ...], limit: int) -> None:
        self._host = host
        self._relays = {
            descriptor: (kind, Relay(limit))
            for descriptor, kind in zip(descriptors, (STDOUT, STDERR))  # noqa: B905 - Python 3.8
        }
        self.open = set(descriptors)

    @property
    def count(self) -> int:
        """Bytes printed so far."""
        return sum(relay.count for _, relay in self._relays.values())

    def read(self, descriptor: int) -> int:
        """Take what is there of a stream; return how many bytes."""
        try:
            data = os.read(descriptor, PIPE_SIZE)
        except BlockingIOError:
            return 0
        if not data:
            self.open.discard(descriptor)
            return 0
        kind, relay = self._relays[descriptor]
        head = relay.feed(data)
        if head:
            self._send(kind, head)
        return len(data)

    def finish(self) -> list[int]:
        """Take what was printed before now, send the tails, return the bytes of both streams."""
        for descriptor in list(self.open):
            # No more than a pipe holds: a background process may go on printing for ever.
            room = PIPE_SIZE
            while room > 0:
                taken = self.read(descriptor)
                if not taken:
                    break
                room -= taken
        for kind, relay in self._relays.values():
            self._send(kind, relay.tail())
        return [relay.count for _, relay in self._relays.values()] or [0, 0]

    def _send(self, kind: int, data: bytes) -> None:
        if self._host is None:
            return
        for start in range(0, len(data), CHUNK):
            self._host.send(pack(kind, data[start : start + CHUNK]))


class Clock:
    """When a run must end, and why it was ended."""

    def __init__(self, seconds: float, flood: int) -> None:
        self.begun = time.monotonic()
        self.deadline = self.begun + seconds
        self.flood = flood
        self.stopped: str | None = None
        self.duration = 0.0

    def stop(self) -> None:
        """Note how long the run took."""
        self.duration = time.monotonic() - self.begun

    def check(self, printed: int) -> bool:
        """Return whether the run has to be ended for a reason that is new."""
        if self.stopped is None and printed > self.flood:
            self.stopped = "output"
            return True
        if self.stopped is None and time.monotonic() >= self.deadline:
            self.stopped = "timeout"
            return True
        return False
