"""Whose a container is: the process that made it, by label; and removing what nobody owns.

A client that is killed leaves its containers behind. Their supervisors notice (their input
ends) and stop, but the containers stay listed until somebody removes them: whoever next opens
a sandbox on the machine of that client.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from langgraft.environments.sandboxes.docker.removal import remove_container

if TYPE_CHECKING:
    from docker import DockerClient

OWNER: Final = "langgraft.sandbox.owner"
"""Label: host, process id and the process's start time, as `host:pid:start`."""
BOOT: Final = "langgraft.sandbox.boot"
"""Label: the boot of the host, and the namespace that the process id is a number of."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that owns containers."""

    host: str
    pid: int
    start: str
    """In clock ticks after boot: another process of the same number has another one."""
    boot: str
    namespace: str

    @classmethod
    def current(cls) -> Self:
        """Return this process."""
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _start(pid) or "", _boot(), _namespace())

    @classmethod
    def of(cls, labels: dict[str, str]) -> Self | None:
        """Return the process named by a container's labels, or `None` where they are not ours."""
        try:
            host, pid, start = labels[OWNER].rsplit(":", 2)
            boot, namespace = labels[BOOT].split("/", 1)
            return cls(host, int(pid), start, boot, namespace)
        except (KeyError, ValueError):
            return None

    def labels(self) -> dict[str, str]:
        """Return the labels that name it."""
        return {
            OWNER: f"{self.host}:{self.pid}:{self.start}",
            BOOT: f"{self.boot}/{self.namespace}",
        }

    def gone(self, *, running: bool) -> bool:
        """Return whether it is certain that the process is no more.

        Nothing is certain of other hosts, nor of a process whose number means something else
        here: that of a client in a container.

        Args:
            running: Whether its container runs, as none does whose owner is gone.
        """
        if self.host != socket.gethostname():
            return False
        if self.boot != _boot():
            # Of this machine before it was booted, or of another one of the same name.
            return not running
        return self.namespace == _namespace() and _start(self.pid) != self.start


def remove_orphans(client: "DockerClient") -> list[str]:
    """Remove the containers of sandboxes whose process on this host is gone.

    Args:
        client: Of the engine.

    Returns:
        The ids of those removed.
    """
    return _remove(client, orphans_only=True)


def remove_all(client: "DockerClient") -> list[str]:
    """Remove every container of every sandbox on this engine, also those in use.

    Args:
        client: Of the engine.

    Returns:
        The ids of those removed.
    """
    return _remove(client, orphans_only=False)


def _remove(client: "DockerClient", *, orphans_only: bool) -> list[str]:
    removed = []
    for container in client.api.containers(all=True, filters={"label": OWNER}):
        owner = Owner.of(container["Labels"])
        running = container["State"] == "running"
        if orphans_only and (owner is None or not owner.gone(running=running)):
            continue
        if remove_container(client.api, container["Id"]):
            removed.append(str(container["Id"]))
    return removed


def _start(pid: int) -> str | None:
    """Return the start time of a process, `None` of one that is gone, "" without `/proc`."""
    if not Path("/proc/self/stat").exists():
        return _answers(pid)
    try:
        # The name, in parentheses, may itself hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie runs nothing and owns nothing any more.
    return None if fields[0] in {"Z", "X"} else fields[19]


def _answers(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return ""


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "unknown"
