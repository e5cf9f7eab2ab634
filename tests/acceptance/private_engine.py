"""A Docker engine of our own, beside the machine's, which may be killed."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import docker
from docker.errors import DockerException

_PATIENCE: Final = 30.0
"""Seconds for an engine to answer, or to end."""

_GRACE: Final = 2
"""Seconds the engine leaves to containers when it is told to end."""


def why_none() -> str:
    """Say why no engine can be started here; empty where one can."""
    for program in ("dockerd", "containerd"):
        if shutil.which(program) is None:
            return f"no `{program}` is installed here: install Docker Engine (Debian: docker.io)"
    if os.geteuid() != 0:
        return "an engine of one's own can be started by root only"
    return ""


class PrivateEngine:
    """A `dockerd` with a folder, a socket and a branch of control groups of its own.

    It has no network, and knows nothing of the images and containers of any other engine. Its
    `containerd` is a process beside it, as in the usual installation, and outlives it.

    Args:
        folder: For all it keeps; its path must be short, for a socket lies in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/docker.sock"
        self.branch = f"langgraft-chaos-{os.getpid()}"
        """Of the control groups: every process in its containers is below it."""
        self._dockerd: subprocess.Popen[bytes] | None = None
        self._containerd: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            RuntimeError: It does not.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._containerd is None:
            config = self.folder / "containerd.toml"
            config.write_text(_CONTAINERD.format(folder=self.folder))
            self._containerd = self._spawn(["containerd", "--config", str(config)])
            self._await(self._containerd, (self.folder / "containerd.sock").exists)
        # What a kill left would keep it from starting.
        (self.folder / "dockerd.pid").unlink(missing_ok=True)
        self._dockerd = self._spawn(self._command())
        self._await(self._dockerd, self._answers)

    def client(self) -> docker.DockerClient:
        """Return a client of it."""
        return docker.DockerClient(base_url=self.url, timeout=60)

    def restart(self, how: signal.Signals) -> None:
        """End it by a signal, and start it again."""
        _end(self._dockerd, how)
        self.start()

    def processes(self) -> dict[int, str]:
        """Return the processes in its containers: command lines by process id."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    groups = (folder / "cgroup").read_text()
                    line = (folder / "cmdline").read_bytes()
                except OSError:  # it ended meanwhile
                    continue
                if f"/{self.branch}/" in groups and line:
                    found[int(folder.name)] = line.replace(b"\0", b" ").decode(errors="replace")
        return found

    def close(self) -> None:
        """End it with all that runs in it, and remove what it mounted and kept."""
        _end(self._dockerd, signal.SIGTERM)
        _end(self._containerd, signal.SIGTERM)
        for process in [*self._shims(), *self.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for mounted in self._mounts():
            subprocess.run(["umount", "-l", mounted], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._remove_branch()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _command(self) -> list[str]:
        name = self.branch
        return [
            # In a network of its own: without a bridge it deletes the one that another engine uses.
            "unshare",
            "--net",
            "dockerd",
            f"--host={self.url}",
            f"--data-root={self.folder}/data",
            f"--exec-root={self.folder}/run",
            f"--pidfile={self.folder}/dockerd.pid",
            f"--containerd={self.folder}/containerd.sock",
            f"--containerd-namespace={name}",
            f"--containerd-plugins-namespace={name}-plugins",
            f"--cgroup-parent=/{name}",
            "--exec-opt=native.cgroupdriver=cgroupfs",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            f"--shutdown-timeout={_GRACE}",
        ]

    def _answers(self) -> bool:
        try:
            client = docker.DockerClient(base_url=self.url, timeout=5)
        except DockerException:
            return False
        try:
            return bool(client.ping())
        except (DockerException, OSError):
            return False
        finally:
            client.close()

    def _spawn(self, command: list[str]) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await(self, process: "subprocess.Popen[bytes]", ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "log").read_text(errors="replace")
                msg = f"the private engine did not start: {' '.join(log.splitlines()[-3:])}"
                raise RuntimeError(msg)
            time.sleep(0.05)

    def _shims(self) -> list[int]:
        """Return the processes of containerd that name this engine's folder: one a container."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    ours = any(word.startswith(f"{self.folder}/") for word in words)
                    if ours and Path(words[0]).name.startswith("containerd-shim"):
                        found.append(int(folder.name))
        return found

    def _mounts(self) -> list[str]:
        lines = Path("/proc/mounts").read_text().splitlines()
        places = (line.split()[1] for line in lines)
        return sorted((place for place in places if place.startswith(f"{self.folder}/")), key=len)[
            ::-1
        ]

    def _remove_branch(self) -> None:
        for root in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*")):
            branch = root / self.branch
            if branch.is_dir() and not root.is_symlink():
                folders = [Path(folder) for folder, _, _ in os.walk(branch, topdown=False)]
                # A process in it may be just ending; an empty group costs nothing.
                with contextlib.suppress(OSError):
                    for folder in folders:
                        folder.rmdir()


def _end(process: "subprocess.Popen[bytes] | None", how: signal.Signals) -> None:
    if process is None:
        return
    process.send_signal(how)
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_CONTAINERD: Final = """\
version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{folder}/containerd.sock"
[ttrpc]
address = "{folder}/containerd.sock.ttrpc"
"""
