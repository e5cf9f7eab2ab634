"""What a container may do: every control of `Limits`, and those that nobody may turn off.

| control | against |
|---|---|
| no network | talking to the internet, and to services of this machine (the default bridge reaches them) |
| uid 10001 without capabilities, `no-new-privileges`, the engine's own seccomp filter | getting rights |
| read-only root; sized tmpfs for `/workspace`, `/tmp` and `/dev/shm` | filling the disk; they count as memory |
| memory and swap as one figure | swapping the machine to a halt |
| processes, processor time, size of a file, open files, no core dumps | the rest of what can be used up |
| no log of the engine's | output that fills the host's disk |
| own IPC namespace; a fixed host name | meeting other containers; results that differ by it |
| no health checks, no init | programs of the image's beside ours; the supervisor is PID 1 |
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from langgraft.environments.sandboxes.docker.gpus import device_requests
from langgraft.environments.sandboxes.limits import Limits

if TYPE_CHECKING:
    from docker import APIClient

USER: Final = 10001
"""The uid and gid of every program: nobody's on the usual machine, and not root's anywhere."""
WORKSPACE: Final = "/workspace"


def container_config(
    api: "APIClient",
    image: str,
    limits: Limits,
    *,
    command: Sequence[str],
    cpus: int,
    labels: Mapping[str, str],
    inputs: Mapping[str, Path],
    filtered: bool = True,
    gpus: "Literal['all'] | int | tuple[str, ...] | None" = None,
    runtime: str | None = None,
) -> dict[str, Any]:
    """Return what to send an engine to create a container.

    Args:
        api: For the version of the API that the engine speaks.
        image: Tag or digest.
        limits: What its program may use.
        command: Run as PID 1, whatever the image would start.
        cpus: Processors of the engine, which refuses to grant more than it has.
        labels: Of the container.
        inputs: Names under the workspace to folders of the engine's machine.
        filtered: Whether the engine filters system calls unless told otherwise.
        gpus: Graphics processors.
        runtime: The engine's runtime, in place of its default.
    """
    from docker.types import Healthcheck, LogConfig, Mount  # noqa: PLC0415  (slow)

    # Not as `binds`: of those an engine makes a folder that is not there, and mounts it empty.
    mounts = [
        Mount(f"{WORKSPACE}/{name}", str(folder), type="bind", read_only=True)
        for name, folder in inputs.items()
    ]

    host = api.create_host_config(
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges", *([] if filtered else ["seccomp=builtin"])],
        read_only=True,
        tmpfs={path: ",".join(options) for path, options in _tmpfs(limits).items()},
        mounts=mounts or None,
        shm_size=limits.shm,
        mem_limit=limits.memory,
        memswap_limit=limits.memory,
        nano_cpus=int(min(limits.cpus, cpus) * 1e9),
        pids_limit=limits.pids,
        ulimits=_ulimits(limits),
        ipc_mode="private",
        init=False,
        log_config=LogConfig(type="none"),
        runtime=runtime,
        device_requests=None if gpus is None else device_requests(gpus),
    )
    config: dict[str, Any] = api.create_container_config(
        image,
        [],
        user=f"{USER}:{USER}",
        working_dir=WORKSPACE,
        # In place of the image's own entry point, which could be anything.
        entrypoint=list(command),
        stdin_open=True,
        tty=False,
        hostname="sandbox",
        healthcheck=Healthcheck(test=["NONE"]),
        # A first process drops SIGTERM: an engine that stops would wait 10 s for each container.
        stop_signal="SIGKILL",
        labels=dict(labels),
        host_config=host,
    )
    return config


def unapplied(asked: Mapping[str, Any], inspected: Mapping[str, Any]) -> list[str]:
    """Return in which settings a container differs from what was asked for.

    Args:
        asked: What was sent.
        inspected: What the engine says of the container.
    """
    settings = ("User", "Entrypoint", "OpenStdin", "StdinOnce", "Tty", "Healthcheck", "WorkingDir")
    different = [
        f"{name} is {inspected['Config'].get(name)!r}, not {asked[name]!r}"
        for name in settings
        if _ordered(inspected["Config"].get(name)) != _ordered(asked[name])
    ]
    host = inspected["HostConfig"]
    different += [
        f"{name} is {host.get(name)!r}, not {value!r}"
        for name, value in asked["HostConfig"].items()
        if _ordered(host.get(name)) != _ordered(value)
    ]
    volumes = [m["Destination"] for m in inspected["Mounts"] if m["Type"] == "volume"]
    if volumes:
        different.append(f"the image declares volumes, which no limit holds: {', '.join(volumes)}")
    return different


def tmpfs_sizes(limits: Limits) -> dict[str, int]:
    """Return the folders that can be written to, and their sizes in bytes."""
    return {WORKSPACE: limits.workspace, "/tmp": limits.tmp, "/dev/shm": limits.shm}  # noqa: S108


def _tmpfs(limits: Limits) -> dict[str, list[str]]:
    # A tmpfs is `noexec` unless told otherwise, and compiled extensions are loaded from it.
    common = ["rw", "exec", "nosuid", "nodev"]
    mine = [f"uid={USER}", f"gid={USER}", "mode=755"]
    return {
        WORKSPACE: [*common, f"size={limits.workspace}", *mine],
        "/tmp": [*common, f"size={limits.tmp}", "mode=1777"],  # noqa: S108
    }


def ulimits(limits: Limits) -> dict[str, int]:
    """Return the limits of one process."""
    return {"core": 0, "nofile": limits.open_files, "fsize": limits.file}


def _ulimits(limits: Limits) -> list[Any]:
    from docker.types import Ulimit  # noqa: PLC0415  (slow)

    return [Ulimit(name=name, soft=value, hard=value) for name, value in ulimits(limits).items()]


def _ordered(value: Any) -> Any:
    """Return a value so that lists that differ in order, or records in empty fields, are equal."""
    if isinstance(value, list):
        return sorted(map(_ordered, value), key=repr)
    if isinstance(value, dict):
        return {key: _ordered(one) for key, one in sorted(value.items()) if one is not None}
    return value
