"""Frames: how a host and a supervisor talk over one byte stream, and the supervisor's ends of its streams.

A frame is four bytes of length (big-endian), one byte of kind and a payload: JSON, or bytes as
they are. The host asks, the supervisor answers; in between it sends a heartbeat each second.

| asked | payload | answered with |
|---|---|---|
| `SETTINGS` | JSON, the first frame | `READY` |
| `FILE`, `DATA` …, then `PUT` | path and size; content | `DONE` |
| `RUN` | JSON | `STDOUT`, `STDERR`, then `ENDED`, then files as for `COLLECT` |
| `KERNEL` | JSON | `DONE` |
| `CELL` | JSON | as for `RUN` |
| `COLLECT` | JSON | `FILE`, `DATA` …, `FILE_END` or `LEFT_OUT`, and at last `DONE` |
| `INTERRUPT` | JSON: which run or cell | nothing; that one ends sooner |
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

PROTOCOL = 1
HEADER = struct.Struct(">IB")
MAX_FRAME = 4 << 20
CHUNK = 1 << 18

SETTINGS, FILE, DATA, PUT, RUN, KERNEL, CELL, COLLECT, INTERRUPT = b"SFDPRKXCI"
READY, DONE, STDOUT, STDERR, ENDED, FILE_END, LEFT_OUT, BEAT = b"rd12eflh"
ASKED = frozenset(b"SFDPRKXCI")
ANSWERED = frozenset(b"rd12eflhFD")


class FrameError(Exception):
    """Bytes that are no frame."""


def pack(kind: int, payload: bytes = b"") -> bytes:
    """Make a frame."""
    return HEADER.pack(len(payload), kind) + payload


def pack_json(kind: int, content: dict[str, object]) -> bytes:
    """Make a frame of JSON."""
    return pack(kind, json.dumps(content).encode("ascii"))


def unpack_header(header: bytes, kinds: frozenset[int]) -> tuple[int, int]:
    """Return length and kind.

    Raises:
        FrameError: The length or kind is none that is sent.
    """
    length, kind = HEADER.unpack(header)
    if kind not in kinds:
        raise FrameError(f"a frame of unknown kind {kind}")
    if length > MAX_FRAME:
        raise FrameError(f"a frame of {length} bytes; at most {MAX_FRAME} are sent")
    return length, kind


def unpack_json(payload: bytes) -> dict[str, Any]:
    """Return the JSON object of a frame.

    Raises:
        FrameError: It is none.
    """
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame that is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise FrameError("a frame of JSON that is no object")
    return content


def take_frame(buffer: bytearray, kinds: frozenset[int]) -> tuple[int, bytes] | None:
    """Take the first whole frame off a buffer, or nothing where none is whole yet.

    Raises:
        FrameError: The buffer does not begin with a frame.
    """
    if len(buffer) < HEADER.size:
        return None
    length, kind = unpack_header(bytes(buffer[: HEADER.size]), kinds)
    end = HEADER.size + length
    if len(buffer) < end:
        return None
    payload = bytes(buffer[HEADER.size : end])
    del buffer[:end]
    return kind, payload


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
