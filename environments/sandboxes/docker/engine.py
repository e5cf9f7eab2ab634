"""Reaching a Docker engine, what it must be able to enforce, and removing containers whose use is over.

An engine that cannot hold a limit does not refuse a container that asks for it: it warns, and
runs it without. So what it can do is asked first, and its warnings are refusals to us.

Removing a container takes an engine some 50 ms in which nobody has to wait for it. A client that is killed
leaves its containers behind. Their supervisors notice (their input ends) and stop, but the
containers stay listed until somebody removes them: whoever next opens a sandbox on the machine of
that client. Whose a container is, its labels say.
"""

import contextlib
import logging
import os
import queue
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from langgraft._core.errors import SandboxUnavailableError, causes

if TYPE_CHECKING:
    from docker import APIClient, DockerClient


IMAGE: Final = "langgraft-sandbox:latest"
"""The tag of the image that `langgraft sandbox build` makes."""

_OTHERWISE: Final = "(`SubprocessSandbox` needs no engine, but isolates nothing: it is for code you would run yourself)"
_NO_SSH: Final = (
    "engines over ssh:// are not supported: forward the socket (`ssh -L"
    " /tmp/docker.sock:/var/run/docker.sock HOST`) and set DOCKER_HOST=unix:///tmp/docker.sock"
)
_CONNECTIONS: Final = 64
"""Kept open at most: one for each call that runs at the same time."""
_SECONDS: Final = 60
"""For the engine to answer one call; a busy one takes seconds to start a container."""

_NEEDED: Final = {
    "MemoryLimit": "memory (no memory cgroup: boot with cgroup_enable=memory)",
    "SwapLimit": "memory and swap together (boot with swapaccount=1, or use cgroup v2)",
    "PidsLimit": "the number of processes (no pids cgroup)",
    "CpuCfsQuota": "processor time (no CFS quota; a rootless engine needs the cpu controller delegated)",
}
"""What `docker info` must say yes to, and what it means for the user."""

_NAMES_ITS_FILTER: Final = 23
"""Major version from which an engine's own filter can be asked for by name."""

_HARMLESS: Final = ("requested image's platform",)
"""Of warnings that say nothing of limits."""


def connect() -> "DockerClient":
    """Connect to the engine that the environment names, as Docker's own command does.

    Raises:
        SandboxUnavailableError: None answers, or it may not be asked.
    """
    import docker  # noqa: PLC0415  (slow, and only needed by who uses it)
    from docker.errors import DockerException  # noqa: PLC0415

    if os.environ.get("DOCKER_HOST", "").startswith("ssh://"):
        raise SandboxUnavailableError(_NO_SSH)
    try:
        client = docker.from_env(timeout=_SECONDS, max_pool_size=_CONNECTIONS)
    except (DockerException, ValueError) as error:
        # The second is of an address that cannot be taken apart.
        raise unreachable(error) from error
    if not client.api.base_url.startswith(("http://", "https://")):
        # No proxy leads to a socket: looked for at each request, it fails where a thread changes variables.
        client.api.trust_env = False
    return client


def unreachable(error: BaseException) -> SandboxUnavailableError:
    """Say why no engine could be asked, and what to do about it."""
    if _because(error, PermissionError):
        return SandboxUnavailableError(
            "the Docker engine's socket may not be used by this user: add the user to the group"
            f" `docker` (then log in again), or use a rootless engine {_OTHERWISE}"
        )
    from docker.errors import TLSParameterError  # noqa: PLC0415

    if _because(error, (ssl.SSLError, TLSParameterError)):
        return SandboxUnavailableError(
            f"the Docker engine's TLS was refused ({error}): check DOCKER_HOST, DOCKER_TLS_VERIFY"
            " and DOCKER_CERT_PATH"
        )
    return SandboxUnavailableError(
        f"no Docker engine answers ({_innermost(error)}): install and start one, or set DOCKER_HOST;"
        f" then `langgraft sandbox build` makes the image {_OTHERWISE}"
    )


def check_engine(api: "APIClient") -> dict[str, Any]:
    """Ask the engine whether it can hold every limit.

    Returns:
        What it says of itself.

    Raises:
        SandboxUnavailableError: It cannot hold them all, or cannot be talked to by attaching.
    """
    if api.base_url.startswith("http+docker://ssh"):
        raise SandboxUnavailableError(_NO_SSH)
    info: dict[str, Any] = api.info()
    missing = unenforceable(info)
    if missing:
        raise SandboxUnavailableError(
            f"this Docker engine cannot enforce {'; '.join(missing)}. Without that a program could"
            f" harm the machine; nothing was started {_OTHERWISE}"
        )
    return info


def unenforceable(info: dict[str, Any]) -> list[str]:
    """Return what an engine that describes itself so cannot hold, in words."""
    if info.get("OSType", "linux") != "linux":
        return [f"anything: it runs {info['OSType']} containers, and Linux containers are needed"]
    missing = [words for key, words in _NEEDED.items() if info.get(key) is not True]
    filters = _filters(info)
    version = str(info.get("ServerVersion")).partition(".")[0]
    old = not version.isdecimal() or int(version) < _NAMES_ITS_FILTER
    if not filters or (old and filter_is_off(info)):
        missing.append("its filter of system calls (seccomp is off or unconfined)")
    return missing


def filter_is_off(info: dict[str, Any]) -> bool:
    """Return whether the filter of system calls must be asked for: Docker Desktop has it off."""
    return any("unconfined" in option for option in _filters(info))


def _filters(info: dict[str, Any]) -> list[str]:
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    return [option for option in options if option.startswith("name=seccomp")]


def refusals(warnings: list[str] | None) -> list[str]:
    """Return those of a container's warnings that mean a control was left out."""
    return [
        warning
        for warning in warnings or ()
        if not any(harmless in warning for harmless in _HARMLESS)
    ]


def image_id(api: "APIClient", image: str) -> str:
    """Return the digest of an image.

    Raises:
        SandboxUnavailableError: There is none of that name.
    """
    return str(_inspected(api, image)["Id"])


def image_label(api: "APIClient", image: str, name: str) -> str:
    """Return a label of an image; empty where it has none of that name.

    Raises:
        SandboxUnavailableError: There is no such image.
    """
    labels = (_inspected(api, image).get("Config") or {}).get("Labels") or {}
    return str(labels.get(name, ""))


def _inspected(api: "APIClient", image: str) -> dict[str, Any]:
    from docker.errors import APIError  # noqa: PLC0415

    try:
        found: dict[str, Any] = api.inspect_image(image)  # type: ignore[no-untyped-call]
    except APIError as error:
        if not error.is_client_error():  # not found, or no name of an image at all
            raise
        raise no_image(image) from error
    return found


def no_image(image: str) -> SandboxUnavailableError:
    """Say that there is no such image, and how to get it."""
    return SandboxUnavailableError(
        f"there is no image {image!r} on this engine: `langgraft sandbox build` makes {IMAGE!r},"
        f" and with `--requirements mle --tag NAME` one with MLE-bench's libraries; any other must be"
        f" built or pulled before it is used {_OTHERWISE}"
    )


def is_remote(api: "APIClient") -> bool:
    """Return whether the engine sees another machine's folders."""
    return not api.base_url.startswith(("http+docker://localhost", "http+docker://localnpipe"))


def is_away(error: BaseException) -> bool:
    """Return whether an error means that the engine itself did not answer."""
    import requests  # noqa: PLC0415

    return isinstance(error, requests.RequestException | OSError) and not isinstance(
        error, requests.HTTPError
    )


def wait_for_engine(api: "APIClient", seconds: float) -> bool:
    """Wait until the engine answers; return whether it does."""
    from docker.errors import DockerException  # noqa: PLC0415

    until = time.monotonic() + seconds
    while True:
        try:
            if api.ping():
                return True
        except (DockerException, OSError):
            pass
        if time.monotonic() >= until:
            return False
        time.sleep(0.2)


def _because(
    error: BaseException, kind: type[BaseException] | tuple[type[BaseException], ...]
) -> bool:
    return any(isinstance(one, kind) for one in causes(error))


def _innermost(error: BaseException) -> str:
    """Return what the last cause says: the layers above it wrap its text again and again."""
    said = [one for one in causes(error) if isinstance(one, OSError) and one.strerror]
    return f"{said[-1].strerror}" if said else str(error)


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
            except Exception as error:  # noqa: BLE001  (all others wait for this thread)
                logger.warning("cannot remove the container %s: %r", container[:12], error)
                with self._changed:
                    self._stubborn.add(container)
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
