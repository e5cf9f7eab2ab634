"""One started container: how a supervisor gets into it, how it is talked to, why it died, how it goes."""

import contextlib
import os
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from langgraft.environments.sandboxes.docker.engine import Removals
from langgraft.environments.sandboxes.places import Channel, ChannelClosedError, Death

if TYPE_CHECKING:
    from docker import APIClient

_SETTLING: Final = 3.0
"""Seconds within which an engine has noticed that a container ended, once its output has."""
_AT_THE_END: Final = 2.0
"""Seconds between the OOM killer and the end of a container that ended by it."""
_KILLED: Final = 137

_HEADER: Final = struct.Struct(">BxxxL")
"""Before each piece of output: which stream, three empty bytes, how long."""
_STDOUT: Final = 1
_CHUNK: Final = 1 << 18
_LOG: Final = 16_000
"""Bytes kept of what the supervisor wrote to its standard error: the last."""
_STALLED: Final = 60.0
"""Seconds in which a send may make no progress at all before the other end counts as gone."""
_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class AttachChannel(Channel):
    """A byte stream over an attached container without a terminal: both its outputs, taken apart.

    One thread may receive while another sends or closes. An engine blocks whoever would kill or
    remove a container whose attached output nobody reads: so `close` shuts the connection down
    before anything else is done to the container.

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

    @override
    def send(self, data: bytes) -> None:
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

    @override
    def receive(self, size: int, *, timeout: float) -> bytes:
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

    @override
    def close(self) -> None:
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


class Container:
    """A place in a container of its own.

    Args:
        api: Of its engine.
        container: Its id.
        channel: To what runs in it as process 1.
        removals: Who removes it.
    """

    def __init__(
        self, api: "APIClient", container: str, channel: AttachChannel, removals: Removals
    ) -> None:
        self.id = container
        self.channel: Channel = channel
        self._attached = channel
        self._api = api
        self._removals = removals
        self._destroyed = False
        self._process = os.getpid()

    @classmethod
    def start(cls, api: "APIClient", container: str, removals: Removals) -> "Container":
        """Start a created container, listening from before its first output.

        Raises:
            DockerException, RequestException, OSError: The engine did not; the container stays.
        """
        streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        channel = AttachChannel(_connection(api.attach_socket(container, params=streams)))
        try:
            api.start(container)
        except BaseException:
            channel.close()
            raise
        return cls(api, container, channel, removals)

    def alive(self) -> bool:
        """Return whether it still runs, as far as its stream tells."""
        return self._attached.open_still()

    def post_mortem(self) -> Death:
        """Say why the channel closed, as the engine has it."""
        log = self._attached.log
        try:
            state = self._final_state()
            ended = bool(state["OOMKilled"]) and not state["Running"]
            oom = ended and self._ended_by_oom(state)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is no answer)
            return Death(oom=False, reason=_unknown(error), supervisor_log=log)
        if state["Running"]:
            reason = "the connection to it broke while it ran"
        else:
            reason = f"exit code {state['ExitCode']}"
        if state.get("Error"):
            reason += f": {state['Error']}"
        return Death(oom=oom, reason=reason, supervisor_log=log)

    def destroy(self) -> None:
        """Have it killed and removed.

        The end of its input ends all that runs in it at once; that the engine has removed it too
        takes another moment, in which nobody waits. `Removals.settle` does.
        """
        if os.getpid() != self._process:
            # A fork of the process that owns it, which may still use it.
            return
        # First of all: an engine waits for ever for somebody to read what is attached.
        self.channel.close()
        if not self._destroyed:
            self._destroyed = True
            self._removals.soon(self.id)

    def _ended_by_oom(self, state: dict[str, Any]) -> bool:
        """Return whether the OOM killer came at the end.

        The state alone also remembers a child that it took long before, which the container
        outlived. Without any news of its end the engine was started anew, and is to blame.
        """
        news: dict[str, int] = {}
        # By the engine's clock, to the second: what is told waits for that time to come.
        finished = datetime.fromisoformat(f"{state['FinishedAt'][:19]}+00:00")
        until = int(finished.timestamp()) + 2
        told = self._api.events(since=0, until=until, filters={"container": self.id}, decode=True)
        for event in told:
            news[event["Action"]] = int(event["timeNano"])
            if event["Action"] == "die":
                break
        told.close()
        return "die" in news and abs(news["die"] - news.get("oom", 0)) < _AT_THE_END * 1e9

    def _final_state(self) -> dict[str, Any]:
        """Return the state of a container whose output has ended, once it has settled."""
        until = time.monotonic() + _SETTLING
        while True:
            state: dict[str, Any] = self._api.inspect_container(self.id)["State"]
            told = not state["Running"] and (state["OOMKilled"] or state["ExitCode"] != _KILLED)
            if told or time.monotonic() > until:
                return state
            if not state["Running"]:
                # Killed: news that it was the OOM killer come on another way, maybe later.
                until = min(until, time.monotonic() + 0.3)
            time.sleep(0.05)


def _connection(attached: Any) -> socket.socket:
    """Take the connection of an attach request out of the HTTP client's hands."""
    raw: socket.socket = getattr(attached, "_sock", attached)
    if isinstance(raw, ssl.SSLSocket):
        # It cannot be duplicated: its encryption has a state. It holds its response itself.
        return raw
    own = socket.socket(fileno=os.dup(raw.fileno()))
    attached._response.close()  # noqa: SLF001  (docker-py's only way to it)
    return own


def _unknown(error: Exception) -> str:
    from docker.errors import NotFound  # noqa: PLC0415  (slow)

    if isinstance(error, NotFound):
        return "no such container: it was removed from outside"
    return f"the engine does not answer ({error})"
