"""The supervisor's ends of its two streams: to the host, and to the interpreter that runs cells."""

from __future__ import annotations

import json
import os

from langgraft.environments.sandboxes.inside.frames import ASKED, CHUNK, take_frame

MAX_REPORT = 1 << 19
"""Bytes; a launcher's or kernel's own reports are shorter, and as JSON it fits a frame."""


class HostGoneError(Exception):
    """Nobody is left to work for."""


class Host:
    """The stream to and from the host."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.parent: int | None = None
        self._heard = bytearray()
        self._unsent = bytearray()
        for descriptor in (source, sink):
            os.set_blocking(descriptor, False)

    @property
    def unsent(self) -> bool:
        """Whether something waits to be taken by the host."""
        return bool(self._unsent)

    def send(self, frame: bytes) -> None:
        """Send a frame as far as the host takes it now."""
        self._unsent += frame
        self.push()

    def push(self) -> None:
        """Send on what waits."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self.sink, self._unsent[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError as error:
            raise HostGoneError from error

    def hear(self) -> None:
        """Read what the host has sent."""
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise HostGoneError from error
        if not data:
            raise HostGoneError
        self._heard += data

    def next(self) -> tuple[int, bytes] | None:
        """Return the next whole frame, if there is one."""
        return take_frame(self._heard, ASKED)

    def check(self) -> None:
        """Notice that the host is gone though something holds its end of the stream."""
        if self.parent is not None and os.getppid() != self.parent:
            raise HostGoneError


class KernelChild:
    """A started kernel: its process, its two pipes, and its output; it may say anything."""

    def __init__(self, pid: int, control: int, report: int, output: tuple[int, int]) -> None:
        self.pid = pid
        self.control = control
        self.report = report
        self.output = output
        self.broken = False
        self._unsent = bytearray()
        self._heard = bytearray()

    @property
    def unsent(self) -> bool:
        """Whether something waits to be taken by the kernel."""
        return bool(self._unsent)

    def say(self, message: dict[str, object]) -> None:
        """Send a message, as far as it is taken now."""
        body = json.dumps(message).encode("ascii")
        self._unsent += len(body).to_bytes(4, "big") + body
        self.push()

    def push(self) -> None:
        """Send on what waits."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self.control, self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.broken = True

    def told(self, number: int) -> bytes | None:
        """Return what was reported of a cell, once it was; of other cells is no report."""
        while len(self._heard) >= 4:  # noqa: PLR2004 - the length
            size = int.from_bytes(self._heard[:4], "big")
            if size > MAX_REPORT:
                self.broken = True
                return None
            if len(self._heard) < 4 + size:
                return None
            body = bytes(self._heard[4 : 4 + size])
            del self._heard[: 4 + size]
            cell, _, description = body.partition(b"\0")
            if cell == b"%d" % number:
                return description
        return None

    def hear(self) -> None:
        """Read what it reports."""
        try:
            data = os.read(self.report, 1 << 16)
        except BlockingIOError:
            return
        if data:
            self._heard += data
        else:
            self.broken = True

    def close(self) -> None:
        """Close our ends."""
        for descriptor in (self.control, self.report, *self.output):
            os.close(descriptor)
