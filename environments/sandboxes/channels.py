"""A channel over a socket."""

import contextlib
import select
import socket
import threading
import time

from langgraft.environments.sandboxes.places import ChannelClosedError


class SocketChannel:
    """The byte stream of a connected socket, which it owns."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._closing = threading.Lock()
        self._closed = False

    def send(self, data: bytes) -> None:
        """Send all of `data`.

        Raises:
            ChannelClosedError: The other end is gone.
        """
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ChannelClosedError(f"the supervisor is gone: {error}") from error

    def receive(self, size: int, *, timeout: float) -> bytes:
        """Receive exactly `size` bytes.

        Raises:
            TimeoutError: They did not come within `timeout` seconds of silence.
            ChannelClosedError: The other end is gone.
        """
        data = bytearray()
        try:
            while len(data) < size:
                self._wait(timeout)
                more = self._socket.recv(min(size - len(data), 1 << 20))
                if not more:
                    raise ChannelClosedError("the supervisor is gone: its stream has ended")
                data += more
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise ChannelClosedError(f"the supervisor is gone: {error}") from error
        return bytes(data)

    def _wait(self, seconds: float) -> None:
        # The socket's own timeout would bound sending as well.
        until = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            if time.monotonic() >= until:
                raise TimeoutError(f"the supervisor was silent for {seconds:.1f} s")

    def close(self) -> None:
        """Close it at once, whoever may be reading; safe to call twice and from any thread."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        # Whoever waits in `receive` is woken by the shutdown; closing alone would not do it.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
