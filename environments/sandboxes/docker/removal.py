"""Removing containers: by a thread when their programs are dead, and those whose process is gone.

Removing takes an engine some 50 ms in which nobody has to wait for it. A client that is killed
leaves its containers behind. Their supervisors notice (their input ends) and stop, but the
containers stay listed until somebody removes them: whoever next opens a sandbox on the machine of
that client. Whose a container is, its labels say.
"""

import contextlib
import logging
import os
import queue
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from docker import APIClient, DockerClient

logger = logging.getLogger(__name__)

_WAITING: Final = 8
"""Containers that may wait to be removed; beyond it whoever is done with one waits instead."""
_ENDING: Final = 1
"""Seconds for a container to end after its input did."""


def remove_container(api: "APIClient", container: str) -> bool:
    """Kill and remove a container; return whether it is gone. Never raises."""
    import requests  # noqa: PLC0415  (with docker: slow)
    from docker.errors import APIError, DockerException, NotFound  # noqa: PLC0415

    try:
        api.remove_container(container, v=True, force=True)
    except (DockerException, requests.RequestException, OSError) as error:
        busy = isinstance(error, APIError) and error.status_code == 409  # noqa: PLR2004
        if busy or isinstance(error, NotFound):  # somebody else is removing it just now, or has
            return True
        logger.warning("cannot remove the container %s: %s", container[:12], error)
        return False
    return True


def wait_for_end(api: "APIClient", container: str) -> None:
    """Give a container whose input has ended a moment to end by itself. Never raises.

    The engine removes one that has ended in some 7 ms; killing it takes it 45 ms, most of them
    of a processor.
    """
    import requests  # noqa: PLC0415  (with docker: slow)
    from docker.errors import DockerException  # noqa: PLC0415

    # Whatever is wrong, removing it meets the same, and tells.
    with contextlib.suppress(DockerException, requests.RequestException, OSError):
        api.wait(container, timeout=_ENDING)


class Removals:
    """What is to be removed from one engine.

    Args:
        api: Of the engine.
    """

    def __init__(self, api: "APIClient") -> None:
        self._api = api
        self._stubborn: set[str] = set()
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._waiting = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def stubborn(self) -> frozenset[str]:
        """The containers that would not go."""
        with self._changed:
            return frozenset(self._stubborn)

    def now(self, container: str) -> None:
        """Remove a container before returning; one that does not go is remembered."""
        gone = remove_container(self._api, container)
        with self._changed:
            (self._stubborn.discard if gone else self._stubborn.add)(container)

    def soon(self, container: str) -> None:
        """Have a container removed by a thread; after `close`, remove it at once."""
        with self._changed:
            busy = self._closed or self._waiting >= _WAITING
            self._waiting += not busy
            if not busy and self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="sandbox-removal", daemon=True
                )
                self._thread.start()
        if busy:
            self.now(container)
        else:
            self._queue.put(container)

    def retry(self) -> None:
        """Try again to remove those that would not go."""
        for container in self.stubborn:
            self.now(container)

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until nothing is left to the thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0, seconds)

    def close(self) -> None:
        """Remove all there is, and end the thread."""
        with self._changed:
            self._closed = True
        self.settle()
        self.retry()
        with self._changed:
            if self._thread is not None:
                self._queue.put(None)
                self._thread = None

    def _work(self) -> None:
        while (container := self._queue.get()) is not None:
            try:
                wait_for_end(self._api, container)
                self.now(container)
            finally:
                with self._changed:
                    self._waiting -= 1
                    self._changed.notify_all()


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
    """Remove the containers of sandboxes whose process on this host is gone; return their ids."""
    return _remove(client, orphans_only=True)


def remove_all(client: "DockerClient") -> list[str]:
    """Remove every container of every sandbox on this engine, also those in use; return their ids."""
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
