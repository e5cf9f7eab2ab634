"""`SubprocessSandbox`: programs as plain processes of this machine."""

import contextlib
import dataclasses
import errno
import functools
import os
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Final

from typing_extensions import override

from langgraft._core.canonical import digest
from langgraft._core.errors import InputError, SandboxUnavailableError
from langgraft.environments.sandboxes.inside.files import remove_tree
from langgraft.environments.sandboxes.places import (
    Channel,
    ChannelClosedError,
    Death,
    Place,
    PlaceSettings,
    bootstrap_command,
    compiled_supervisor,
    greet,
    supervisor_code,
)
from langgraft.environments.sandboxes.requests import check_name
from langgraft.environments.sandboxes.sandbox import ExecutionResult, Limits, ProgramError
from langgraft.environments.sandboxes.supervised import SupervisedSandbox

_ENDING_SECONDS: Final = 20.0
"""For a supervisor to kill what is left and remove its folder."""

_FOR_NOW: Final = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Errors of a machine that is busy: trying again is of use."""


class SubprocessSandbox(SupervisedSandbox):
    """Runs programs as processes of this machine: **it isolates nothing**.

    A program can read, change and delete whatever you can, use the network, and take all of the
    machine's memory and processors. Use it for programs that you wrote or read, and in tests; for
    programs that a model wrote use `DockerSandbox`. Nothing ever falls back to this one.

    | holds | does not |
    |---|---|
    | `seconds`, for the whole tree of processes | `memory`, and no out-of-memory is reported |
    | `output`, `flood` | `cpus` (only as `OMP_NUM_THREADS` and its like), `pids` |
    | `file`, `open_files` (as rlimits, which a root program may raise) | `workspace`, `tmp`, `shm` |
    | `collected`, `collected_files` | |

    Each program gets a fresh folder with its workspace and its `HOME`, which is removed with all
    that the program left running, also when this process is killed. Programs get `PATH`, `LANG`
    and the sandbox's own variables of the environment. In what is told of a program, the random
    name of its folder is left out, so that paths read as relative to the workspace.

    Where there is no /proc (macOS) a process that left its program's process group is not found.

    Args:
        limits: Of every program.
        python: The interpreter, 3.8 or later.
        inputs: Name in the workspace → a folder or file of this machine, linked there. A program
            can write to them.
        environment: Further variables of all programs.
        retries: Fresh processes a program gets after its supervisor was killed.

    Raises:
        InputError: An input is not there, or its name is no single name.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        python: str = sys.executable,
        inputs: Mapping[str, Path | str] | None = None,
        environment: Mapping[str, str] | None = None,
        retries: int = 2,
    ) -> None:
        super().__init__(limits, retries=retries)
        self._python = python
        self._environment = dict(environment or {})
        self._inputs = {
            name: _checked_input(name, Path(path)) for name, path in (inputs or {}).items()
        }

    @functools.cached_property
    def digest(self) -> str:
        """What else decides a result: interpreter, its packages, inputs by path, limits."""
        content: dict[str, Any] = {
            "sandbox": "subprocess",
            "python": [self._python, sys.version],
            "packages": _packages(),
            "inputs": self._inputs,
            "environment": self._environment,
            "limits": self.limits.model_dump(),
        }
        return digest(content)

    def _open(self) -> Place:
        place = _ProcessPlace(self._python)
        try:
            place.greet(self.limits, self._inputs, self._environment)
        except BaseException:
            place.destroy()
            raise
        return place

    def _told(self, place: Place, result: ExecutionResult) -> ExecutionResult:
        assert isinstance(place, _ProcessPlace)
        error = result.error
        return dataclasses.replace(
            result,
            stdout=place.without_path(result.stdout),
            stderr=place.without_path(result.stderr),
            error=error and _without_paths(error, place),
        )


# Reading what each installed package says of itself takes a quarter of a second.
@functools.cache
def _packages() -> list[str]:
    return sorted({f"{each.name} {each.version}" for each in metadata.distributions()})


class _ProcessPlace:
    """A supervisor that is a child of this process, and its folder."""

    channel: Channel

    def __init__(self, python: str) -> None:
        self._folder = Path(tempfile.gettempdir(), f"langgraft-sandbox-{secrets.token_hex(8)}")
        self._ending = threading.Lock()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `destroy`
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the supervisor
                bootstrap_command(python),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._log,
                env={name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            self._log.close()
            if error.errno in _FOR_NOW:
                raise
            raise SandboxUnavailableError(
                f"{python} cannot be started: {error.strerror}; give `python` a Python 3.8 or later"
            ) from error
        finally:
            theirs.close()
        self.channel = SocketChannel(ours)
        self._own_python = python == sys.executable

    def greet(
        self, limits: Limits, inputs: Mapping[str, str], environment: Mapping[str, str]
    ) -> None:
        settings = PlaceSettings(
            limits,
            workspace=str(self._folder / "workspace"),
            home=str(self._folder / "home"),
            isolated=False,
            remove=str(self._folder),
            links=inputs,
            environment=environment,
            parent=os.getpid(),
        )
        compiled = compiled_supervisor() if self._own_python else None
        self.channel.send(supervisor_code(compiled))
        greet(self.channel, settings)

    def without_path(self, text: str) -> str:
        """Return a text in which the workspace's random name does not occur."""
        workspace = str(self._folder / "workspace")
        text = text.replace(f"{workspace}/", "").replace(workspace, ".")
        return text.replace(str(self._folder), "..")

    def post_mortem(self) -> Death:
        """Say how the supervisor ended."""
        try:
            code = self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return Death(oom=False, reason="the supervisor hangs")
        log = ""
        with contextlib.suppress(OSError, ValueError):
            self._log.seek(0)
            log = self._log.read(100_000).decode("utf-8", "replace")
        return Death(oom=False, reason=f"the supervisor ended with {code}", supervisor_log=log)

    def destroy(self) -> None:
        """Make the supervisor kill everything, and wait for it."""
        self.channel.close()
        with self._ending:
            try:
                self._process.wait(_ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            # Only there if the supervisor was killed; its program can do that here.
            with contextlib.suppress(OSError):
                remove_tree(str(self._folder))
            self._log.close()


class SocketChannel(Channel):
    """The byte stream of a connected socket, which it owns."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._closing = threading.Lock()
        self._closed = False

    @override
    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ChannelClosedError(f"the supervisor is gone: {error}") from error

    @override
    def receive(self, size: int, *, timeout: float) -> bytes:
        data = bytearray()
        try:
            while len(data) < size:
                self._wait(timeout)
                more = self._socket.recv(min(size - len(data), 1 << 20))
                if not more:
                    raise ChannelClosedError("the supervisor is gone: its stream has ended")
                data += more
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise ChannelClosedError(f"the supervisor is gone: {error}") from error
        return bytes(data)

    def _wait(self, seconds: float) -> None:
        # The socket's own timeout would bound sending as well.
        until = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            if time.monotonic() >= until:
                raise TimeoutError(f"the supervisor was silent for {seconds:.1f} s")

    @override
    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
        # Whoever waits in `receive` is woken by the shutdown; closing alone would not do it.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _without_paths(error: ProgramError, place: _ProcessPlace) -> ProgramError:
    frames = tuple(
        dataclasses.replace(frame, file=place.without_path(frame.file)) for frame in error.frames
    )
    return ProgramError(error.type, place.without_path(error.message), frames)


def _checked_input(name: str, path: Path) -> str:
    check_name(name)
    if "/" in name:
        raise InputError(f"input {name!r}: give one name, without folders")
    if not path.exists():
        raise InputError(f"input {name!r} is to be {path}, which is not there")
    return str(path.resolve())
