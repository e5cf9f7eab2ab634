"""Frames on the host's side: sent whole, received within bounds, trusted in nothing."""

from collections.abc import Mapping

from langgraft.environments.sandboxes.inside.frames import (
    ANSWERED,
    HEADER,
    FrameError,
    pack_json,
    unpack_header,
    unpack_json,
)
from langgraft.environments.sandboxes.places import Channel


class ProtocolError(Exception):
    """The supervisor sent what it never sends: not the program's doing."""


def send_json(channel: Channel, kind: int, content: Mapping[str, object]) -> None:
    """Send a frame of JSON."""
    channel.send(pack_json(kind, dict(content)))


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
