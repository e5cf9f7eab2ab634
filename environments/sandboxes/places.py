"""A place: one container, or one process, with a supervisor in it; and the first words with that one.

A supervisor (`inside/supervisor.py`) runs inside every place as its first process. It starts
programs, relays and caps their output, watches the clock, kills what is left over and hands files
in and out, all over one byte stream. In a container it is PID 1: programs cannot signal it, trace it or
read its memory, so what it says about how a program ended is not the program's word.
"""

import marshal
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final, Protocol

from langgraft._core.errors import SandboxUnavailableError
from langgraft.environments.sandboxes.inside.frames import (
    ANSWERED,
    HEADER,
    PROTOCOL,
    READY,
    SETTINGS,
    FrameError,
    pack_json,
    unpack_header,
    unpack_json,
)
from langgraft.environments.sandboxes.sandbox import Limits


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


TAKING: Final = """
import marshal, os, select
def take(size):
    taken = b""
    while len(taken) < size:
        heard = select.select([0], [], [], 30)[0]
        piece = os.read(0, size - len(taken)) if heard else b""
        if not piece:
            raise SystemExit("the host is gone")
        taken += piece
    return taken
"""
"""Reads an exact number of bytes, none of those that follow.

An engine that is killed between starting a container and noting that down never ends it, nor its
input. So one that hears nothing for half a minute ends itself.
"""

_START: Final = (
    TAKING
    + """
kind, size = take(1), int(take(8))
code = take(size)
code = marshal.loads(code) if kind == b"m" else compile(code, "<supervisor>", "exec")
exec(code, {"__name__": "__main__"})
"""
)

_INSIDE: Final = "langgraft.environments.sandboxes.inside"

_SUPERVISOR: Final = (
    *("frames", "sealing", "processes", "watching", "running", "files", "supervisor"),
)
"""Its files, in the order in which they are joined: each names what those before it define."""

_DROPPED: Final = (
    # Their names are in the joined script.
    f"from {_INSIDE}.",
    # It has this one at its top.
    "from __future__ import ",
    # Names for annotations, which nobody looks up there: 10 ms of every run, most for `typing`.
    "from typing import ",
    "from collections.abc import ",
    "from types import ",
)


@dataclass(frozen=True, slots=True)
class PlaceSettings:
    """What a supervisor must know of the place it is the first process of."""

    limits: Limits
    workspace: str = "/workspace"
    """Absolute, inside the place."""
    home: str = "/tmp"  # noqa: S108 - inside the container
    """`HOME` and `TMPDIR` of programs, absolute, inside the place."""
    isolated: bool = True
    """Whether the supervisor is PID 1 of a pid namespace: it may then kill all but itself."""
    remove: str | None = None
    """A folder that the supervisor makes, with `workspace` and `home` in it, and removes when the
    host is gone."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Links to make in such a workspace: name to target."""
    parent: int | None = None
    """The host's process id, where the supervisor is its child."""
    mounted: tuple[str, ...] = ()
    """What is mounted in the workspace, by name."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables of all programs."""


def greet(channel: Channel, settings: PlaceSettings, *, timeout: float = 30.0) -> None:
    """Tell a started supervisor its settings and wait until it is ready.

    Raises:
        TimeoutError: It did not answer within `timeout` seconds.
        ChannelClosedError: It is gone.
        ProtocolError: It answered what none of ours answers.
        SandboxUnavailableError: It cannot be kept from the programs of an isolated place.
    """
    held_inside = {"output", "flood", "file", "open_files", "collected", "collected_files"}
    told = {
        "protocol": PROTOCOL,
        "isolated": settings.isolated,
        "workspace": settings.workspace,
        "environment": _environment(settings),
        "home": settings.home,
        "remove": settings.remove,
        "links": dict(settings.links),
        "parent": settings.parent,
        "launcher": launcher_script(),
        "kernel": kernel_script(),
        "limits": settings.limits.model_dump(include=held_inside),
        "disk": _disk(settings),
    }
    channel.send(pack_json(SETTINGS, told))
    kind, payload = receive_frame(channel, timeout=timeout)
    if kind != READY:
        raise ProtocolError(f"the supervisor sent a frame of kind {kind} before it was ready")
    ready = parse_json(payload)
    if ready.get("protocol") != PROTOCOL:
        raise ProtocolError(f"the supervisor speaks protocol {ready.get('protocol')!r}")
    protected = {"pid": 1, "dumpable": False, "sealed": True}
    found = {name: ready.get(name) for name in protected}
    if settings.isolated and found != protected:
        raise SandboxUnavailableError(
            f"the supervisor cannot be kept from programs: it is {found} and should be {protected}."
            " That takes an x86_64 or aarch64 Linux with seccomp, and an image whose python3 has "
            "ctypes"
        )


def _disk(settings: PlaceSettings) -> dict[str, object] | None:
    """Return what is watched of a workspace on disk; of no other one anything has to be."""
    if not settings.isolated or settings.limits.workspace_on == "memory":
        return None
    return {"most": settings.limits.workspace, "mounted": list(settings.mounted)}


def _environment(settings: PlaceSettings) -> dict[str, str]:
    threads = str(math.ceil(settings.limits.cpus))
    return {
        "HOME": settings.home,
        "TMPDIR": settings.home,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        **settings.environment,
    }


def bootstrap_command(python: str = "python3") -> list[str]:
    """Return the command that becomes the supervisor once that was sent to it.

    An engine writes a container's command to disk several times over, and handing a long one to it
    costs some 20 ms; compiling the supervisor costs as much again. So a few lines fetch it from
    standard input, compiled where its Python is known: the container that checks a sandbox does
    that for the image's, and this process for its own.

    Args:
        python: An interpreter inside the place, 3.8 or later. Programs run in the same.
    """
    return [python, "-I", "-S", "-u", "-c", _START]


def supervisor_code(compiled: bytes | None = None) -> bytes:
    """Return what to send to the bootstrap.

    Args:
        compiled: The supervisor as the bootstrap's own Python marshals it, where that is known.
    """
    code = supervisor_script().encode() if compiled is None else compiled
    return (b"s" if compiled is None else b"m") + b"%08d" % len(code) + code


@cache
def compiled_supervisor() -> bytes:
    """Return the supervisor as the Python of this process marshals it."""
    return marshal.dumps(compile(supervisor_script(), "<supervisor>", "exec"))


@cache
def supervisor_script() -> str:
    """Return the supervisor."""
    return _joined(*_SUPERVISOR)


@cache
def launcher_script() -> str:
    """Return what makes a file the main module of an interpreter."""
    return _joined("exceptions", "launcher")


@cache
def kernel_script() -> str:
    """Return the interpreter that runs cells."""
    return _joined("exceptions", "kernel")


def _joined(*names: str) -> str:
    parts = ["from __future__ import annotations"]
    for name in names:
        source = (files(_INSIDE) / f"{name}.py").read_text(encoding="utf-8")
        parts.append(_without_imports(source))
    return "\n\n".join(parts) + "\n"


def _without_imports(source: str) -> str:
    """Drop the imports that the joined script has no use for."""
    kept: list[str] = []
    dropping = False
    for line in source.splitlines():
        dropped = line.startswith(_DROPPED)
        if not dropped and not dropping:
            kept.append(line)
        # An import over several lines ends with its parenthesis.
        dropping = (dropped and line.endswith("(")) or (dropping and line != ")")
    return "\n".join(kept)
