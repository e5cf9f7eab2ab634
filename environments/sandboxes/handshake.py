"""The first words with a supervisor: what it is told of its place, and what it must answer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """A folder to remove when the host is gone."""
    parent: int | None = None
    """The host's process id, where the supervisor is its child."""


def greet(channel: Channel, settings: PlaceSettings, *, timeout: float = 30.0) -> str:
    """Tell a started supervisor its settings and wait until it is ready; return its Python.

    Raises:
        TimeoutError: It did not answer within `timeout` seconds.
        ChannelClosedError: It is gone.
        ProtocolError: It answered what none of ours answers, or cannot protect itself.
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
            "remove": settings.remove,
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
    if settings.isolated and (ready.get("pid") != 1 or ready.get("dumpable") is not False):
        raise ProtocolError(
            f"the supervisor is process {ready.get('pid')!r} and dumpable: "
            f"{ready.get('dumpable')!r}; it must be the first process of its container and "
            "closed to programs (an image whose python3 has no ctypes cannot close it)"
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
