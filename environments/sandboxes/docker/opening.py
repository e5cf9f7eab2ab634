"""Opening places on one engine: created, attached, started, greeted, and the first one verified.

Asking for a control is not having it: an engine may be configured otherwise, a runtime may not
know it. So a sandbox's first container runs a probe, which reports what a program would find,
and nothing else is run where a control does not hold.
"""

import json
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from langgraft._core.errors import SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes.docker.container import Container
from langgraft.environments.sandboxes.docker.controls import (
    USER,
    WORKSPACE,
    Wish,
    container_config,
    tmpfs_sizes,
    ulimits,
    unapplied,
)
from langgraft.environments.sandboxes.docker.engine import (
    Owner,
    Removals,
    is_away,
    no_image,
    refusals,
    remove_container,
    wait_for_engine,
)
from langgraft.environments.sandboxes.inside.watching import reserve
from langgraft.environments.sandboxes.places import (
    TAKING,
    Channel,
    ChannelClosedError,
    Death,
    PlaceSettings,
    bootstrap_command,
    greet,
    supervisor_code,
    supervisor_script,
)
from langgraft.environments.sandboxes.result_text import size_text
from langgraft.environments.sandboxes.sandbox import Limits

if TYPE_CHECKING:
    from docker import APIClient
    from docker.errors import APIError

_PROBE: Final = (
    TAKING
    + """
import json, resource, sys

def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None

def cgroup(version_1, version_2):
    text = read("/sys/fs/cgroup/" + version_1)
    return read("/sys/fs/cgroup/" + version_2) if text is None else text

def mount(line):
    path = line.split(" ")[4].encode().decode("unicode_escape")
    rest = line.split(" - ")[1].split(" ")
    found = {"path": path, "kind": rest[0], "options": line.split(" ")[5].split(",")}
    try:
        size = os.statvfs(path)
        found["size"] = size.f_blocks * size.f_frsize
        found["left"] = size.f_bavail * size.f_frsize
    except OSError:
        pass
    # The engine hides files of the kernel behind /dev/null, which anybody may write to.
    found["writable"] = os.access(path, os.W_OK) and (os.path.isdir(path) or os.path.isfile(path))
    return found

status = dict(line.split(":", 1) for line in (read("/proc/self/status") or "").splitlines())
names = os.listdir("/sys/class/net") if os.path.isdir("/sys/class/net") else ["?"]
up = [n for n in names if n != "lo" and int(read("/sys/class/net/" + n + "/flags") or "1", 16) & 1]
report = {
    "python": list(sys.version_info[:2]),
    "pid": os.getpid(),
    "ids": [*os.getresuid(), *os.getresgid(), *os.getgroups()],
    "status": {name: value.strip() for name, value in status.items()},
    "interfaces": up,
    "mounts": [mount(line) for line in (read("/proc/self/mountinfo") or "").splitlines()],
    "limits": {
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
        "fsize": resource.getrlimit(resource.RLIMIT_FSIZE),
    },
    "memory": cgroup("memory/memory.limit_in_bytes", "memory.max"),
    "memory_and_swap": read("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"),
    "swap": read("/sys/fs/cgroup/memory.swap.max"),
    "pids": cgroup("pids/pids.max", "pids.max"),
    "cpu": [
        cgroup("cpu/cpu.cfs_quota_us", "cpu.max"),
        read("/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    ],
}
code = marshal.dumps(compile(take(int(take(8))), "<supervisor>", "exec"))
for part in (json.dumps(report).encode(), code):
    part = b"%08d" % len(part) + part
    while part:
        part = part[os.write(1, part):]
"""
)

_WRITABLE: Final = frozenset({"/dev/mqueue"})
"""What programs may write to besides the sized folders: bounded by the kernel itself."""
_PAGE: Final = 65_536
"""Sizes are rounded to pages, whose own size depends on the processor."""
_OLDEST: Final = [3, 8]


def probe_command() -> list[str]:
    """Return the command that reports what it finds in its container."""
    return ["python3", "-I", "-S", "-c", _PROBE]


def read_report(channel: Channel, *, timeout: float) -> tuple[dict[str, Any], bytes]:
    """Read what the probe reports, and the supervisor as the image's Python compiles it.

    Raises:
        TimeoutError: It says nothing.
        ChannelClosedError: It ended without a report.
    """
    source = supervisor_script().encode()
    channel.send(b"%08d" % len(source) + source)
    report: dict[str, Any] = json.loads(_part(channel, timeout))
    return report, _part(channel, timeout)


def failures(report: Mapping[str, Any], wish: Wish) -> list[str]:
    """Return which controls do not hold, in words.

    Where another runtime than the engine's own was asked for, by name, what it does not show
    (gVisor has no cgroups and a kernel of its own) is taken as it is.

    Args:
        report: Of the probe.
        wish: What was asked for.
    """
    foreign = wish.runtime is not None
    return [
        *_identity(report, foreign=foreign),
        *_mounts(report, wish.limits, tuple(wish.inputs)),
        *_processes(report, wish.limits),
        *_cgroup(report, wish, foreign=foreign),
    ]


def _part(channel: Channel, timeout: float) -> bytes:
    return channel.receive(int(channel.receive(8, timeout=timeout)), timeout=timeout)


def _identity(report: Mapping[str, Any], *, foreign: bool) -> Iterator[str]:
    if report["python"] < _OLDEST:
        yield f"Python {'.'.join(map(str, report['python']))} is too old: 3.8 or later is needed"
    if report["pid"] != 1:
        yield f"the supervisor would be process {report['pid']}, not 1"
    if set(report["ids"]) != {USER}:
        yield f"programs run as {sorted(set(report['ids']))}, not as {USER} alone"
    status = report["status"]
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(status.get(name, "0" if foreign else "1"), 16):
            yield f"capabilities are left ({name} {status.get(name)})"
    if status.get("NoNewPrivs", "1" if foreign else None) != "1":
        yield "programs can gain rights (NoNewPrivs is not 1)"
    if not foreign and status.get("Seccomp") != "2":
        yield f"system calls are not filtered (Seccomp {status.get('Seccomp')}, not 2)"
    if report["interfaces"]:
        yield f"there is a network: {', '.join(report['interfaces'])}"


def _mounts(report: Mapping[str, Any], limits: Limits, inputs: Sequence[str]) -> Iterator[str]:
    # Of several mounts on one path the last is what programs see.
    mounts = {mount["path"]: mount for mount in report["mounts"]}
    sizes = tmpfs_sizes(limits)
    for path, size in sizes.items():
        found = mounts.get(path)
        if found is None or found["kind"] != "tmpfs" or not found["writable"]:
            yield f"{path} is no tmpfs that can be written to"
            continue
        if abs(found.get("size", 0) - size) > _PAGE:
            yield f"{path} holds {found.get('size')} bytes, not {size}"
        yield from (
            f"{path} is not {option}"
            for option in ("nosuid", "nodev")
            if option not in found["options"]
        )
    if limits.workspace_on == "disk":
        sizes = {**sizes, WORKSPACE: limits.workspace}
        yield from _on_disk(mounts.get(WORKSPACE), limits.workspace)
    if "/" not in mounts or "ro" not in mounts["/"]["options"]:
        yield "the root folder is not read-only"
    for path in (f"{WORKSPACE}/{name}" for name in inputs):
        # What is mounted inside an input comes along, on older engines with its own rights.
        inside = [one for one in mounts if one.startswith(f"{path}/")]
        yield from (
            f"{one} is not mounted read-only"
            for one in (path, *inside)
            if one not in mounts or "ro" not in mounts[one]["options"]
        )
    writable = {path for path, mount in mounts.items() if mount["writable"]}
    extra = writable - sizes.keys() - _WRITABLE
    if extra:
        yield f"more can be written to than should be: {', '.join(sorted(extra))}"


def _on_disk(mount: Mapping[str, Any] | None, most: int) -> Iterator[str]:
    if mount is None or not mount["writable"]:
        yield (
            f"programs may not write to {WORKSPACE} on its disk: the image needs such a folder of user"
            f" {USER}, as `langgraft sandbox build --base IMAGE` makes it"
        )
    elif mount["kind"] == "tmpfs":
        yield f"{WORKSPACE} lies in memory, not on disk"
    elif mount.get("left", 0) < most + reserve(mount.get("size", 0)):
        yield (
            f"its disk has {size_text(mount.get('left', 0))} left, and a workspace on disk may take"
            f" {size_text(most)}: make room, or lower `workspace` of the limits"
        )


def _processes(report: Mapping[str, Any], limits: Limits) -> Iterator[str]:
    for name, value in ulimits(limits).items():
        if report["limits"][name] != [value, value]:
            yield f"the limit {name} is {report['limits'][name]}, not {value}"


def _cgroup(report: Mapping[str, Any], wish: Wish, *, foreign: bool) -> Iterator[str]:
    sizes = {"memory": wish.limits.memory, "pids": wish.limits.pids}
    if report["swap"] is None:
        sizes["memory_and_swap"] = wish.limits.memory
    elif report["swap"] != "0":
        yield f"swap is {report['swap']}, not 0"
    for name, value in sizes.items():
        found = report[name]
        if found is None:
            if not foreign:
                yield f"{name} is not bounded by a cgroup that can be seen"
        elif found == "max" or not value - _PAGE <= int(found) <= value:
            yield f"{name} is bounded by {found}, not by {value}"
    granted = _processors(report["cpu"])
    if granted is None:
        if not foreign:
            yield "processor time is not bounded"
    elif granted > wish.granted * 1.01:
        yield f"{granted:g} processors are granted, not {wish.granted:g}"


def _processors(cpu: Sequence[str | None]) -> float | None:
    """Return the processors granted: version 1 tells quota and period apart, 2 in one line."""
    quota, period = cpu
    if quota is None:
        return None
    if period is None:
        quota, _, period = quota.partition(" ")
    if quota in {"-1", "max"} or not period:
        return None
    return int(quota) / int(period)


logger = logging.getLogger(__name__)

SANDBOX: Final = "langgraft.sandbox.id"
"""Label: which sandbox of its process a container belongs to."""
_PATIENCE: Final = 20.0
"""Seconds in which an engine that was restarted answers again."""
_READY: Final = 60.0
"""Seconds for a supervisor, or the probe, to answer on a busy machine."""


class Opening:
    """Opens the containers of one sandbox.

    Args:
        api: Of the engine, which has been checked.
        wish: What they are to be like.
        removals: Who removes them.
        patience: Seconds to wait for an engine that does not answer.

    Attributes:
        label: What all its containers carry, as `name=value`.
    """

    def __init__(
        self, api: "APIClient", wish: Wish, removals: Removals, *, patience: float = _PATIENCE
    ) -> None:
        self._api = api
        self._wish = wish
        self._removals = removals
        self._patience = patience
        self._sandbox = uuid.uuid4().hex
        self.label = f"{SANDBOX}={self._sandbox}"
        self._config = self._configure(bootstrap_command())
        self._supervisor = supervisor_code()
        self._settings = PlaceSettings(
            wish.limits, mounted=tuple(wish.inputs), environment=wish.environment
        )

    def open(self) -> Container:
        """Start a container and greet its supervisor.

        Raises:
            SandboxUnavailableError: The engine cannot, and will not when asked again.
            SandboxFailureError: It did not this time.
            TimeoutError, ProtocolError: The supervisor did not answer as it should.
        """
        self._removals.retry()
        container = self._started(self._config)
        try:
            container.channel.send(self._supervisor)
            greet(container.channel, self._settings, timeout=_READY)
        except ChannelClosedError as error:
            death = container.post_mortem()
            container.destroy()
            raise _stillborn(death) from error
        except BaseException:
            container.destroy()
            raise
        return container

    def verify(self) -> None:
        """Start a container that reports what holds inside, and compare.

        Raises:
            SandboxUnavailableError: A control does not hold.
            SandboxFailureError, TimeoutError: It failed this time.
        """
        config = self._configure(probe_command())
        container = self._started(config)
        try:
            wrong = unapplied(config, self._api.inspect_container(container.id))
            report, compiled = read_report(container.channel, timeout=_READY)
        except ChannelClosedError as error:
            raise _stillborn(container.post_mortem()) from error
        finally:
            container.destroy()
        wrong += failures(report, self._wish)
        self._refuse(wrong)
        self._supervisor = supervisor_code(compiled)

    def sweep(self) -> None:
        """Remove what was created without our learning of it: calls that timed out."""
        try:
            left = self._api.containers(all=True, filters={"label": self.label})
        except Exception as error:  # noqa: BLE001  (what is left is an orphan soon)
            logger.warning("cannot ask which containers are left: %s", error)
            return
        for container in left:
            remove_container(self._api, container["Id"])

    def _configure(self, command: Sequence[str]) -> dict[str, Any]:
        labels = {**Owner.current().labels(), SANDBOX: self._sandbox}
        return container_config(self._api, self._wish, command=command, labels=labels)

    def _started(self, config: dict[str, Any]) -> Container:
        """Start a container; wait for an engine that is away, once."""
        waited = False
        while True:
            try:
                return self._start(config)
            except Exception as error:
                if not is_away(error):
                    raise
                if waited or not wait_for_engine(self._api, self._patience):
                    raise SandboxFailureError(
                        f"the Docker engine has not answered for {self._patience:g} s: {error}"
                    ) from error
                waited = True

    def _start(self, config: dict[str, Any]) -> Container:
        from docker.errors import APIError  # noqa: PLC0415  (slow)

        created = None
        try:
            answer = self._api.create_container_from_config(config)  # type: ignore[no-untyped-call]
            created = str(answer["Id"])
            self._refuse(refusals(answer.get("Warnings")))
            return Container.start(self._api, created, self._removals)
        except BaseException as error:
            if created is not None:
                self._removals.now(created)
            if isinstance(error, APIError) and not is_away(error):
                raise _explained(error, self._wish) from error
            raise

    def _refuse(self, wrong: Sequence[str]) -> None:
        if wrong:
            raise SandboxUnavailableError(
                "the Docker engine does not hold what was asked of it, so no program was started: "
                + "; ".join(wrong)
            )


def _stillborn(death: Death) -> SandboxFailureError:
    log = death.supervisor_log.strip()
    said = f"; it wrote: {log[-2000:]}" if log else ""
    return SandboxFailureError(f"a container ended before it was ready: {death.reason}{said}")


def _explained(error: "APIError", wish: Wish) -> Exception:
    """Return what an engine's refusal means: for good, or this time."""
    text = str(error.explanation or error)
    if error.status_code == 404 and "No such image" in text:  # noqa: PLR2004
        return no_image(wish.image)
    if "could not select device driver" in text or "nvidia-container" in text:
        return SandboxUnavailableError(
            f"this Docker engine cannot give containers GPUs (gpus={wish.gpus!r}): install the"
            " NVIDIA Container Toolkit, run `nvidia-ctk runtime configure --runtime=docker` and"
            f" restart the engine; or leave `gpus` out to run without. It said: {text}"
        )
    if "executable file not found" in text or "no such file or directory: unknown" in text:
        return SandboxUnavailableError(
            f"the image {wish.image!r} has no `python3` in its path, which every sandbox needs: take"
            " one that `langgraft sandbox build` makes, or add Python 3.8 or later to it"
        )
    if "nknown runtime" in text or "nvalid runtime" in text:
        return SandboxUnavailableError(
            f"this Docker engine has no runtime {wish.runtime!r}: `docker info` lists those it has;"
            " leave `runtime` out to use its default"
        )
    if "bind source path does not exist" in text:
        return SandboxUnavailableError(f"a folder of `inputs` is there no longer: {text}")
    if error.status_code == 400:  # noqa: PLR2004
        return SandboxUnavailableError(f"the Docker engine refuses such a container: {text}")
    return SandboxFailureError(f"the Docker engine did not start a container: {text}")
