"""A place: one container, or one process, with a supervisor in it that we talk to.

A supervisor (`inside/supervisor.py`) runs inside every place as its first process. It starts
programs, relays and caps their output, watches the clock, kills what is left over and hands files
in and out, all over one byte stream. In a container it is PID 1: programs cannot signal it, trace it or
read its memory, so what it says about how a program ended is not the program's word.
"""

from dataclasses import dataclass
from typing import Protocol

from langgraft.environments.sandboxes.inside.frames import (
    ANSWERED,
    HEADER,
    FrameError,
    unpack_header,
    unpack_json,
)


class ChannelClosedError(Exception):
    """The other end of a channel is gone."""


class Channel(Protocol):
    """The byte stream to and from a supervisor."""

    def send(self, data: bytes) -> None:
        """Send all of `data`.

        Raises:
            ChannelClosedError: The other end is gone.
        """
        ...

    def receive(self, size: int, *, timeout: float) -> bytes:
        """Receive exactly `size` bytes.

        Raises:
            TimeoutError: They did not come within `timeout` seconds of silence.
            ChannelClosedError: The other end is gone.
        """
        ...

    def close(self) -> None:
        """Close it at once, whoever may be reading; safe to call twice and from any thread."""
        ...


@dataclass(frozen=True, slots=True)
class Death:
    """Why a supervisor is gone, told by what ran it (the engine)."""

    oom: bool
    """The OOM killer took it: the program's doing."""
    reason: str
    """For the log: `exit code 137`, `no such container`, `the engine does not answer`."""
    supervisor_log: str = ""
    """What the supervisor itself wrote to its standard error."""

    def __str__(self) -> str:
        log = self.supervisor_log.strip()
        return f"{self.reason}; its supervisor wrote: {log[-2000:]}" if log else self.reason


class Place(Protocol):
    """One started container or process; used for one program, or held by one kernel."""

    channel: Channel

    def post_mortem(self) -> Death:
        """Say why the channel closed. Asks the engine; never raises."""
        ...

    def destroy(self) -> None:
        """Kill and remove it with all that runs in it. Never raises; what cannot be removed now is
        remembered and removed later. Safe to call twice and from any thread.
        """  # noqa: D205
        ...


class ProtocolError(Exception):
    """The supervisor sent what it never sends: not the program's doing."""


def receive_frame(channel: Channel, *, timeout: float) -> tuple[int, bytes]:
    """Receive one frame: its kind and payload.

    Raises:
        TimeoutError: Nothing came for `timeout` seconds.
        ChannelClosedError: The other end is gone.
        ProtocolError: What came is no frame.
    """
    header = channel.receive(HEADER.size, timeout=timeout)
    try:
        length, kind = unpack_header(header, ANSWERED)
    except FrameError as error:
        raise ProtocolError(f"the supervisor sent {error}") from error
    return kind, channel.receive(length, timeout=timeout) if length else b""


def parse_json(payload: bytes) -> dict[str, object]:
    """Return the JSON object of a frame.

    Raises:
        ProtocolError: It is none.
    """
    try:
        return unpack_json(payload)
    except FrameError as error:
        raise ProtocolError(f"the supervisor sent {error}") from error
