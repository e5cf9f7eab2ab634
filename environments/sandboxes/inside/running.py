"""Running one program to its end, whichever end that is, and telling how it ended."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from typing import Any

from langgraft.environments.sandboxes.inside.channels import MAX_REPORT
from langgraft.environments.sandboxes.inside.frames import ENDED, pack_json
from langgraft.environments.sandboxes.inside.processes import Processes, Streams, oom_kills, pass_on
from langgraft.environments.sandboxes.inside.watching import PIPE_SIZE, Clock, Output, Watch

_REPORT_FIELDS = 2
_FRAME_FIELDS = 4
_LONGEST_NUMBER = 10
_MAX_FRAMES = 200
_MAX_FIELD = 50_000


class Programs:
    """Runs programs and commands, beside a kernel if there is one."""

    def __init__(self, watch: Watch, starter: Starter, limits: dict[str, int]) -> None:
        self._watch = watch
        self._processes = watch.processes
        self._starter = starter
        self._limits = limits

    def run(self, ask: dict[str, Any]) -> None:
        """Run a program, kill what it leaves running, and tell how it ended."""
        oom_before = oom_kills()
        spared: frozenset[tuple[int, str]] = frozenset()
        if self._watch.kernel is not None:
            spared = self._processes.everyone()
        pid, descriptors, report = self._start(ask)
        output = Output(self._watch.host, descriptors, self._limits["output"])
        clock = Clock(ask["seconds"], self._limits["flood"])
        told = bytearray()
        self._watch.begin(ask["id"])
        self._attend(pid, output, clock, report, told)
        clock.stop()
        self._watch.end()
        cleared = self._processes.clear(pid, spared)
        while read_report(report, told):
            pass
        how = told_exit(self._processes.exits.get(pid))
        self._processes.forget(pid)
        ended = ended_frame(
            output,
            clock,
            how,
            oom=self._processes.isolated and oom_kills() > oom_before,
            told=bytes(told),
            cleared=cleared,
        )
        self._watch.host.send(ended)
        for descriptor in (*descriptors, report):
            os.close(descriptor)

    def _attend(self, pid: int, output: Output, clock: Clock, report: int, told: bytearray) -> None:
        reporting = {report}

        def over(ready: set[int]) -> bool:
            if reporting & ready and not read_report(report, told):
                reporting.clear()
            return pid in self._processes.exits

        self._watch.attend(output, clock, reporting, over)

    def _start(self, ask: dict[str, Any]) -> tuple[int, tuple[int, int], int]:
        """Start a program; return its id, its output and where its exception is reported."""
        report, report_end = open_pipe()
        python = ask.get("python")
        if python is None:
            os.close(report_end)
            return (*self._starter.start(ask["argv"], ask["environment"]), report)
        report_end = pass_on(report_end)
        path = os.path.join(self._starter.workspace, python["name"])
        launcher = [str(report_end), path, python["name"], *python["arguments"]]
        argv = [*self._starter.python("launcher"), *launcher]
        return (*self._starter.start(argv, ask["environment"], (report_end,)), report)


class Starter:
    """Starts children in the workspace, as the host's settings say."""

    def __init__(self, processes: Processes, settings: dict[str, Any]) -> None:
        self.workspace: str = settings["workspace"]
        self._processes = processes
        self._settings = settings

    def start(
        self, argv: list[str], environment: dict[str, str], kept: tuple[int, ...] = ()
    ) -> tuple[int, tuple[int, int]]:
        """Start a process; return its id and where to read what it prints.

        Args:
            argv: The program and its arguments.
            environment: Variables over those that all programs here get.
            kept: Descriptors that it gets under their numbers; closed here.
        """
        stdout, stdout_end = open_pipe()
        stderr, stderr_end = open_pipe()
        whole = {**os.environ, **self._settings["environment"], **environment}
        streams = Streams(stdout_end, stderr_end, kept)
        return self._processes.start(argv, whole, self.workspace, streams), (stdout, stderr)

    def python(self, script: str) -> list[str]:
        """Return the command of one of our scripts."""
        return [sys.executable or "python3", "-c", self._settings[script]]


def open_pipe() -> tuple[int, int]:
    """Open a large pipe, of which the reading end does not block."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        # Fewer wake-ups where much is printed; 1031 is F_SETPIPE_SZ, named since Python 3.10.
        fcntl.fcntl(writing, 1031, PIPE_SIZE)
    except OSError:
        pass
    return reading, writing


def read_report(report: int, told: bytearray) -> bool:
    """Read what a program's launcher reports; return whether there may be more."""
    try:
        data = os.read(report, 1 << 16)
    except BlockingIOError:
        return False
    told += data
    # The program can write here too, and without end.
    return bool(data) and len(told) < MAX_REPORT


def parsed_report(told: bytes) -> dict[str, Any] | None:
    """Return the exception that was told, in the form in which it is passed on.

    Nothing where there is none, or what cannot be one: a program may write anything here.
    """
    fields = [field[:_MAX_FIELD] for field in told.decode("utf-8", "replace").split("\0")[:-1]]
    if len(fields) < _REPORT_FIELDS or not fields[0].strip():
        return None
    kind, message, *rest = fields
    frames = []
    last = min(len(rest), _MAX_FRAMES * _FRAME_FIELDS) - _FRAME_FIELDS
    for start in range(0, last + 1, _FRAME_FIELDS):
        file, line, function, text = rest[start : start + _FRAME_FIELDS]
        number = int(line) if line.isdecimal() and len(line) < _LONGEST_NUMBER else 0
        frames.append({"file": file, "line": number, "function": function, "text": text})
    return {"type": kind, "message": message, "frames": frames}


def told_exit(status: int | None) -> tuple[int, str | None]:
    """Return an exit code as a shell tells it, and the name of a signal."""
    if status is None:
        # It was killed and is stuck in the operating system.
        return 128 + signal.SIGKILL, "SIGKILL"
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status), None
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return 128 + number, name


def ended_frame(
    output: Output,
    clock: Clock,
    how: tuple[int | None, str | None],
    *,
    oom: bool,
    told: bytes,
    cleared: bool = True,
    lost: bool = False,
) -> bytes:
    """Return the frame that tells of an end; takes what is left of the output."""
    stdout_printed, stderr_printed = output.finish()
    result: dict[str, object] = {
        "exit_code": how[0],
        "signal": how[1],
        "stopped": clock.stopped,
        "oom": oom,
        "duration": clock.duration,
        "stdout_printed": stdout_printed,
        "stderr_printed": stderr_printed,
        "error": parsed_report(told),
        "kernel_lost": lost,
        "cleared": cleared,
    }
    return pack_json(ENDED, result)
