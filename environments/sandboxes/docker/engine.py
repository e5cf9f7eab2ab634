"""Reaching a Docker engine, and what it must be able to enforce.

An engine that cannot hold a limit does not refuse a container that asks for it: it warns, and
runs it without. So what it can do is asked first, and its warnings are refusals to us.
"""

import os
import ssl
import time
from typing import TYPE_CHECKING, Any, Final

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
        return docker.from_env(timeout=_SECONDS, max_pool_size=_CONNECTIONS)
    except (DockerException, ValueError) as error:
        # The second is of an address that cannot be taken apart.
        raise unreachable(error) from error


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
    from docker.errors import ImageNotFound  # noqa: PLC0415

    try:
        found: dict[str, Any] = api.inspect_image(image)  # type: ignore[no-untyped-call]
    except ImageNotFound as error:
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
