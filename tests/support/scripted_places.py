"""Places whose supervisor says what a test wants it to say."""

import contextlib
import socket
import threading
from collections.abc import Callable, Sequence

from langgraft.environments.sandboxes.inside.frames import (
    ASKED,
    CELL,
    COLLECT,
    DONE,
    ENDED,
    KERNEL,
    PUT,
    RUN,
    STDOUT,
    pack,
    pack_json,
    take_frame,
)
from langgraft.environments.sandboxes.places import Channel, Death, Place
from langgraft.environments.sandboxes.sandbox import Limits
from langgraft.environments.sandboxes.subprocess import SocketChannel
from langgraft.environments.sandboxes.supervised import SupervisedSandbox

Script = Callable[[socket.socket], None]
"""What a supervisor does when it is asked to run something; then it is gone."""


def ended(**fields: object) -> bytes:
    """Return a result as it is sent."""
    content: dict[str, object] = {
        "exit_code": 0,
        "signal": None,
        "stopped": None,
        "oom": False,
        "duration": 0.5,
        "stdout_printed": 0,
        "stderr_printed": 0,
        "error": None,
        "kernel_lost": False,
        "cleared": True,
    }
    return pack_json(ENDED, {**content, **fields})


def done() -> bytes:
    """Return the frame that ends an answer."""
    return pack_json(DONE, {"refused": ""})


def well(text: str) -> Script:
    """Print something and end well."""
    output = text.encode()
    return saying(pack(STDOUT, output) + ended(stdout_printed=len(output)) + done())


def saying(data: bytes) -> Script:
    """Send bytes."""
    return lambda end: end.sendall(data)


class ScriptedPlace:
    """A place that answers requests to run with scripts, one after the other."""

    channel: Channel

    def __init__(self, scripts: Sequence[Script], death: Death) -> None:
        ours, self._end = socket.socketpair()
        self.channel = SocketChannel(ours)
        self.destroyed = False
        self._death = death
        self._thread = threading.Thread(target=self._serve, args=(list(scripts),))
        self._thread.start()

    def _serve(self, scripts: list[Script]) -> None:
        buffer = bytearray()
        with self._end, contextlib.suppress(OSError):
            while data := self._end.recv(1 << 16):
                buffer += data
                while (frame := take_frame(buffer, ASKED)) is not None:
                    if frame[0] in (RUN, CELL):
                        scripts.pop(0)(self._end)
                        if not scripts:
                            return
                    elif frame[0] in (PUT, KERNEL, COLLECT):
                        self._end.sendall(done())

    def post_mortem(self) -> Death:
        """Say what the test wants to be said."""
        return self._death

    def destroy(self) -> None:
        """Close it."""
        self.destroyed = True
        self.channel.close()
        self._thread.join()


class ScriptedSandbox(SupervisedSandbox):
    """Opens places as a test lists them; an exception in the list is raised instead."""

    def __init__(
        self,
        *openings: Sequence[Script] | Exception,
        oom: bool = False,
        limits: Limits | None = None,
        retries: int = 2,
    ) -> None:
        super().__init__(limits, retries=retries)
        self.opened: list[ScriptedPlace] = []
        self._openings = list(openings)
        self._death = Death(oom=oom, reason="no such container")

    @property
    def digest(self) -> str:
        """Nothing."""
        return ""

    def _open(self) -> Place:
        opening = self._openings.pop(0)
        if isinstance(opening, Exception):
            raise opening
        self.opened.append(ScriptedPlace(opening, self._death))
        return self.opened[-1]
