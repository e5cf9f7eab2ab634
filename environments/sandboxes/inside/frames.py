"""Frames: how a host and a supervisor talk over one byte stream.

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
