"""What a container may do: every control of `Limits`, and those that nobody may turn off.

| control | against |
|---|---|
| no network | talking to the internet, and to services of this machine (the default bridge reaches them) |
| uid 10001 without capabilities, `no-new-privileges`, the engine's own seccomp filter | getting rights |
| read-only root; sized tmpfs for `/workspace`, `/tmp` and `/dev/shm` | filling the disk; they count as memory |
| a workspace on disk, if asked for: a volume of its own, watched (`inside/watching.py`) | filling the disk, beyond what is written between two looks |
| memory and swap as one figure | swapping the machine to a halt |
| processes, processor time, size of a file, open files, no core dumps | the rest of what can be used up |
| no log of the engine's | output that fills the host's disk |
| own IPC namespace; a fixed host name | meeting other containers; results that differ by it |
| no health checks, no init | programs of the image's beside ours; the supervisor is PID 1 |
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from langgraft._core.canonical import digest
from langgraft._core.errors import InputError
from langgraft._core.file_digests import FileDigests, file_digest
from langgraft.environments.sandboxes.sandbox import Limits

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import DeviceRequest

USER: Final = 10001
"""The uid and gid of every program: nobody's on the usual machine, and not root's anywhere."""
WORKSPACE: Final = "/workspace"

Gpus = Literal["all"] | int | Sequence[str]
"""All of them, how many, or which (indices or UUIDs)."""
CheckedGpus = Literal["all"] | int | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Wish:
    """What containers are to be like."""

    image: str
    """The tag, for messages."""
    image_id: str
    limits: Limits
    cpus: int
    """Processors of the engine, which refuses to grant more than it has."""
    filtered: bool = True
    """Whether the engine filters system calls unless told otherwise."""
    inputs: Mapping[str, Path] = field(default_factory=dict)
    """Names under the workspace to folders of the engine's machine."""
    gpus: CheckedGpus = None
    runtime: str | None = None
    """The engine's runtime, in place of its default."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables of all programs."""

    @property
    def granted(self) -> float:
        """Processors of each container."""
        return min(self.limits.cpus, self.cpus)


def container_config(
    api: "APIClient", wish: Wish, *, command: Sequence[str], labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return what to send an engine to create a container.

    Args:
        api: For the version of the API that the engine speaks.
        wish: What it is to be like.
        command: Run as PID 1, whatever the image would start.
        labels: Of the container.
    """
    from docker.types import Healthcheck, LogConfig, Mount, Ulimit  # noqa: PLC0415  (slow)

    limits, gpus = wish.limits, wish.gpus
    # Not as `binds`: of those an engine makes a folder that is not there, and mounts it empty.
    mounts = [
        Mount(f"{WORKSPACE}/{name}", str(folder), type="bind", read_only=True)
        for name, folder in wish.inputs.items()
    ]
    if limits.workspace_on == "disk":
        # Without a name it goes with its container; it belongs to whom the image's folder does.
        volume = Mount(WORKSPACE, None, type="volume")
        del volume["ReadOnly"]  # an engine tells of it only where it is set
        mounts.append(volume)

    host = api.create_host_config(
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges", *([] if wish.filtered else ["seccomp=builtin"])],
        read_only=True,
        tmpfs={path: ",".join(options) for path, options in _tmpfs(limits).items()},
        mounts=mounts or None,
        shm_size=limits.shm,
        mem_limit=limits.memory,
        memswap_limit=limits.memory,
        nano_cpus=int(wish.granted * 1e9),
        pids_limit=limits.pids,
        ulimits=[Ulimit(name=name, soft=most, hard=most) for name, most in ulimits(limits).items()],
        ipc_mode="private",
        init=False,
        log_config=LogConfig(type="none"),
        runtime=wish.runtime,
        device_requests=None if gpus is None else device_requests(gpus),
    )
    config: dict[str, Any] = api.create_container_config(
        wish.image_id,
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
    mine = {mount["Target"] for mount in asked["HostConfig"].get("Mounts") or ()}
    volumes = [
        mount["Destination"]
        for mount in inspected["Mounts"]
        if mount["Type"] == "volume" and mount["Destination"] not in mine
    ]
    if volumes:
        different.append(f"the image declares volumes, which no limit holds: {', '.join(volumes)}")
    return different


def tmpfs_sizes(limits: Limits) -> dict[str, int]:
    """Return the folders in memory that can be written to, and their sizes in bytes."""
    sizes = {"/tmp": limits.tmp, "/dev/shm": limits.shm}  # noqa: S108
    return sizes if limits.workspace_on == "disk" else {WORKSPACE: limits.workspace, **sizes}


def _tmpfs(limits: Limits) -> dict[str, list[str]]:
    # A tmpfs is `noexec` unless told otherwise, and compiled extensions are loaded from it.
    common = ["rw", "exec", "nosuid", "nodev"]
    mine = [f"uid={USER}", f"gid={USER}", "mode=755"]
    folders = {"/tmp": [*common, f"size={limits.tmp}", "mode=1777"]}  # noqa: S108
    if limits.workspace_on == "memory":
        folders[WORKSPACE] = [*common, f"size={limits.workspace}", *mine]
    return folders


def ulimits(limits: Limits) -> dict[str, int]:
    """Return the limits of one process."""
    return {"core": 0, "nofile": limits.open_files, "fsize": limits.file}


def _ordered(value: Any) -> Any:
    """Return a value so that lists that differ in order, or records in empty fields, are equal."""
    if isinstance(value, list):
        return sorted(map(_ordered, value), key=repr)
    if isinstance(value, dict):
        return {key: _ordered(one) for key, one in sorted(value.items()) if one is not None}
    return value


def check_gpus(gpus: Gpus | None) -> CheckedGpus:
    """Return `gpus` in one form.

    Raises:
        InputError: They are none of the ways to name GPUs.
    """
    if gpus is None or gpus == "all":
        return gpus
    if isinstance(gpus, int) and not isinstance(gpus, bool) and gpus > 0:
        return gpus
    # A text would fall apart into letters.
    names = () if isinstance(gpus, int | str) else tuple(gpus)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"gpus is {gpus!r}: give 'all', how many, or a list of their ids")
    return names


def device_requests(gpus: Literal["all"] | int | tuple[str, ...]) -> "list[DeviceRequest]":
    """Return what is asked of an engine that has GPUs."""
    from docker.types import DeviceRequest  # noqa: PLC0415  (slow)

    kind = [["gpu"]]
    if isinstance(gpus, tuple):
        return [DeviceRequest(device_ids=list(gpus), capabilities=kind)]
    return [DeviceRequest(count=-1 if gpus == "all" else gpus, capabilities=kind)]


def check_inputs(inputs: Mapping[str, Path]) -> dict[str, Path]:
    """Return the folders by name, resolved, in the order of their names.

    Raises:
        InputError: A name leaves or hides the workspace; or a folder is not there, cannot be read
            by programs, or holds what leads them out: a socket, pipe or device.
    """
    names = sorted(inputs)
    for name in names:
        _check_name(name)
    for name in names:
        for parent in PurePosixPath(name).parents:
            if str(parent) in inputs:
                raise InputError(f"inputs: {name!r} would lie in {str(parent)!r}: it is read-only")
    return {name: _folder(name, Path(inputs[name])) for name in names}


def inputs_digest(inputs: Mapping[str, Path], digests: FileDigests | None = None) -> str:
    """Return a digest of what the folders hold: names, sizes, contents, and where links lead.

    Args:
        inputs: The folders.
        digests: Known digests of files; `None`: every file is read.
    """
    read = file_digest if digests is None else digests.digest
    return digest(
        [
            [name, path.relative_to(folder).as_posix(), *_content(path, read)]
            for name, folder in sorted(inputs.items())
            for path in sorted(_entries(folder))
        ]
    )


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    plain = name and not any(sign in name for sign in ":,\\\0\n")
    if not plain or path.is_absolute() or ".." in path.parts or str(path) in {".", ""}:
        raise InputError(
            f"inputs: {name!r} is no name of a folder inside {WORKSPACE}: give one like 'input'"
        )
    if str(path) != name:
        raise InputError(f"inputs: write {name!r} as {str(path)!r}")


def _folder(name: str, path: Path) -> Path:
    if not path.is_dir():
        what = "no folder" if path.exists() else "not there"
        raise InputError(f"inputs: {name!r} is {path}, which is {what}")
    folder = path.resolve()
    for one, wanted in _needs(folder):
        mode = one.lstat()
        if not stat.S_ISDIR(mode.st_mode) and not stat.S_ISREG(mode.st_mode):
            # That it is mounted read-only keeps nobody from talking through it.
            raise InputError(
                f"inputs: {one} is a socket, pipe or device, by which programs could talk to this"
                " machine: give a folder without it"
            )
        if not _allowed(mode, wanted):
            letters = "rx" if stat.S_ISDIR(mode.st_mode) else "r"
            raise InputError(
                f"inputs: programs run as uid {USER}, which cannot read {one} (mode"
                f" {stat.S_IMODE(mode.st_mode):04o}). If they are to: `chmod o+{letters} {one}`, or for the"
                f" whole folder `chmod -R o+rX {folder}`"
            )
    return folder


def _needs(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield what must be readable. What lies above the folder need not be: a mount bypasses it."""
    yield folder, stat.S_IROTH | stat.S_IXOTH
    for where, folders, files in os.walk(folder):
        for name in sorted(folders):
            if not (Path(where) / name).is_symlink():
                yield Path(where) / name, stat.S_IROTH | stat.S_IXOTH
        for name in sorted(files):
            if not (Path(where) / name).is_symlink():
                yield Path(where) / name, stat.S_IROTH


def _allowed(mode: os.stat_result, wanted: int) -> bool:
    """Return whether the user of programs has the wanted rights, given as those of others."""
    if mode.st_uid == USER:
        wanted <<= 6
    elif mode.st_gid == USER:
        wanted <<= 3
    return mode.st_mode & wanted == wanted


def _entries(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(where) / name


def _content(path: Path, read: Callable[[Path], str]) -> tuple[str | int, ...]:
    if path.is_symlink():
        # Inside it leads to what is there in the container, not to a file of this machine.
        return "link", str(path.readlink())
    if not path.is_file():
        return ("folder" if path.is_dir() else "other",)
    return path.stat().st_size, read(path)
