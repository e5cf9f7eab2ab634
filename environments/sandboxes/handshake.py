"""The first words with a supervisor: what it is told of its place, and what it must answer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from langgraft._core.errors import SandboxUnavailableError
from langgraft.environments.sandboxes.inside.frames import PROTOCOL, READY, SETTINGS
from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.places import Channel
from langgraft.environments.sandboxes.scripts import kernel_script, launcher_script
from langgraft.environments.sandboxes.wire import (
    ProtocolError,
    parse_json,
    receive_frame,
    send_json,
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
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of programs, over the supervisor's own environment and what `greet` sets."""
    remove: str | None = None
    """A folder that the supervisor makes, with `workspace` and `home` in it, and removes when the
    host is gone."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Links to make in such a workspace: name to target."""
    parent: int | None = None
    """The host's process id, where the supervisor is its child."""


def greet(channel: Channel, settings: PlaceSettings, *, timeout: float = 30.0) -> str:
    """Tell a started supervisor its settings and wait until it is ready; return its Python.

    Raises:
        TimeoutError: It did not answer within `timeout` seconds.
        ChannelClosedError: It is gone.
        ProtocolError: It answered what none of ours answers.
        SandboxUnavailableError: It cannot be kept from the programs of an isolated place.
    """
    limits = settings.limits
    send_json(
        channel,
        SETTINGS,
        {
            "protocol": PROTOCOL,
            "isolated": settings.isolated,
            "workspace": settings.workspace,
            "environment": {**_environment(settings), **settings.environment},
            "home": settings.home,
            "remove": settings.remove,
            "links": dict(settings.links),
            "parent": settings.parent,
            "launcher": launcher_script(),
            "kernel": kernel_script(),
            "limits": {
                "output": limits.output,
                "flood": limits.flood,
                "file": limits.file,
                "open_files": limits.open_files,
                "collected": limits.collected,
                "collected_files": limits.collected_files,
            },
        },
    )
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
    return str(ready.get("python"))


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
    }
