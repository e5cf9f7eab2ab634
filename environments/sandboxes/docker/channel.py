"""The stream to and from a supervisor: Docker's attach, taken apart into its two outputs.

An engine blocks whoever would kill or remove a container whose attached output nobody reads.
So `close` shuts the connection down before anything else is done to the container.
"""

import contextlib
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from typing import Final

from langgraft.environments.sandboxes.places import ChannelClosedError

_HEADER: Final = struct.Struct(">BxxxL")
"""Before each piece of output: which stream, three empty bytes, how long."""
_STDOUT: Final = 1
_CHUNK: Final = 1 << 18
_LOG: Final = 16_000
"""Bytes kept of what the supervisor wrote to its standard error: the last."""
_STALLED: Final = 60.0
"""Seconds in which a send may make no progress at all before the other end counts as gone."""
_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class AttachChannel:
    """A byte stream over an attached container without a terminal.

    One thread may receive while another sends or closes.

    Args:
        connection: Of the attach request, after its answer's header; closed with the channel.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._raw = bytearray()
        self._left = 0
        self._stream = _STDOUT
        self._stdout = bytearray()
        self._log = bytearray()
        self._lock = threading.Lock()
        self._users = 0
        self._closed = False

    @property
    def log(self) -> str:
        """The end of what came on standard error."""
        return bytes(self._log).decode("utf-8", "replace")

    def send(self, data: bytes) -> None:
        """Send all of `data`.

        Raises:
            ChannelClosedError: The other end is gone, or has taken nothing for a minute.
        """
        left = memoryview(data)
        with self._in_use():
            while left:
                try:
                    left = left[self._connection.send(left[:_CHUNK]) :]
                except _NOT_NOW as error:
                    events = _events(error, select.POLLOUT)
                    if not self._wait(events, _STALLED):
                        raise ChannelClosedError("it takes no input") from None
                except (OSError, ValueError) as error:
                    raise ChannelClosedError(str(error)) from error

    def receive(self, size: int, *, timeout: float) -> bytes:
        """Receive exactly `size` bytes of standard output.

        Raises:
            TimeoutError: They did not come within `timeout` seconds of silence.
            ChannelClosedError: The other end is gone.
        """
        with self._in_use():
            while len(self._stdout) < size:
                self._take(self._read(timeout))
            data = bytes(memoryview(self._stdout)[:size])
            del self._stdout[:size]
            return data

    def open_still(self) -> bool:
        """Return whether the other end is there, as far as can be told without asking it."""
        try:
            with self._in_use():
                while True:
                    self._take(self._read(0.0))
        except TimeoutError:
            return True
        except ChannelClosedError:
            return False

    def close(self) -> None:
        """Close it at once, whoever may be reading; safe to call twice and from any thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            if not self._users:
                self._connection.close()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Keep the descriptor from being closed, and its number given away, under a reader."""
        with self._lock:
            if self._closed:
                raise ChannelClosedError("closed on this side")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._closed and not self._users:
                    self._connection.close()

    def _read(self, timeout: float) -> bytes:
        until = time.monotonic() + timeout
        while True:
            try:
                data = self._connection.recv(_CHUNK)
            except _NOT_NOW as error:
                if not self._wait(_events(error, select.POLLIN), until - time.monotonic()):
                    raise TimeoutError(f"nothing came for {timeout:g} s") from None
            except (OSError, ValueError) as error:
                raise ChannelClosedError(str(error)) from error
            else:
                if not data:
                    raise ChannelClosedError("the stream ended")
                return data

    def _wait(self, events: int, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._connection, events)
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def _take(self, data: bytes) -> None:
        """Sort what came into standard output and the log."""
        self._raw += data
        start = 0
        while True:
            if not self._left:
                if len(self._raw) - start < _HEADER.size:
                    break
                self._stream, self._left = _HEADER.unpack_from(self._raw, start)
                start += _HEADER.size
            piece = memoryview(self._raw)[start : start + self._left]
            size = len(piece)
            (self._stdout if self._stream == _STDOUT else self._log).extend(piece)
            piece.release()
            self._left -= size
            start += size
            if self._left:
                break
        del self._raw[:start]
        del self._log[:-_LOG]


def _events(error: OSError, otherwise: int) -> int:
    """Return what to wait for: TLS may have to read before it can write, and the reverse."""
    if isinstance(error, ssl.SSLWantReadError):
        return select.POLLIN
    if isinstance(error, ssl.SSLWantWriteError):
        return select.POLLOUT
    return otherwise
