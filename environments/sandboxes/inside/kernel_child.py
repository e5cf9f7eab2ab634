"""The interpreter that runs cells, seen from the supervisor; it may say anything."""

from __future__ import annotations

import json
import os

MAX_REPORT = 1 << 19
"""Bytes; a launcher's or kernel's own reports are shorter, and as JSON it fits a frame."""


class KernelChild:
    """A started kernel: its process, its two pipes, and its output."""

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
