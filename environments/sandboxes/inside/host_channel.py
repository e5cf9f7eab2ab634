"""The supervisor's end of the stream to its host."""

from __future__ import annotations

import os

from langgraft.environments.sandboxes.inside.frames import ASKED, CHUNK, take_frame


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
