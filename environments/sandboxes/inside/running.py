"""Running programs and cells to their end, whichever end that is, and telling how they ended."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from typing import Any

from langgraft.environments.sandboxes.inside.frames import (
    DONE,
    ENDED,
    MAX_REPORT,
    KernelChild,
    pack_json,
)
from langgraft.environments.sandboxes.inside.processes import Streams, oom_kills, pass_on
from langgraft.environments.sandboxes.inside.watching import PIPE_SIZE, Clock, Output, Watch

GRACE_SECONDS = 3.0
"""From interrupting a cell to killing its kernel."""
KERNEL_SECONDS = 180.0
"""For a kernel's preloaded modules to be imported."""

ON_DISK = ("disk", "full")
"""Why a run is ended that must not write on until it likes to end."""

_REPORT_FIELDS = 2
_FRAME_FIELDS = 4
_LONGEST_NUMBER = 10
_MAX_FRAMES = 200
_MAX_FIELD = 50_000


class Runner:
    """Runs programs and commands, and keeps a kernel: an interpreter that lives on between cells.

    A kernel is replaced when it ends; `Watch.kernel` is the one kept.

    Args:
        watch: What waits for all at once.
        settings: Of the host: environment, workspace, scripts, limits.
    """

    def __init__(self, watch: Watch, settings: dict[str, Any]) -> None:
        self._watch = watch
        self._processes = watch.processes
        self._settings = settings
        self._limits: dict[str, int] = settings["limits"]
        self._kernel_ask: dict[str, Any] = {}

    def run(self, ask: dict[str, Any]) -> None:
        """Run a program, kill what it leaves running, and tell how it ended."""
        oom_before = oom_kills()
        spared: frozenset[tuple[int, str]] = frozenset()
        if self._watch.kernel is not None:
            spared = self._processes.everyone()
        pid, descriptors, report = self._start_program(ask)
        output = Output(self._watch.host, descriptors, self._limits["output"])
        clock = Clock(ask["seconds"], self._limits["flood"])
        told = bytearray()
        reporting = {report}

        def over(ready: set[int]) -> bool:
            if reporting & ready and not read_report(report, told):
                reporting.clear()
            return pid in self._processes.exits

        self._watch.begin(ask["id"])
        self._watch.attend(output, clock, reporting, over)
        clock.stop()
        self._watch.end()
        if clock.stopped in ON_DISK:
            spared = frozenset()  # what a kernel left running may be what writes
        cleared = self._processes.clear(pid, spared)
        while read_report(report, told):
            pass
        how = told_exit(self._processes.exits.get(pid))
        self._processes.forget(pid)
        oom = self._processes.isolated and oom_kills() > oom_before
        ended = ended_frame(output, clock, how, oom=oom, told=bytes(told), cleared=cleared)
        self._watch.host.send(ended)
        for descriptor in (*descriptors, report):
            os.close(descriptor)

    def open_kernel(self, ask: dict[str, Any]) -> None:
        """Start the first kernel; later ones are started as this one was."""
        self._kernel_ask = ask
        refused = ""
        failed = self._start_kernel()
        if failed is not None:
            refused = f"the kernel ended while it started: {failed[1] or failed[0]}"
        self._watch.host.send(pack_json(DONE, {"refused": refused}))

    def run_cell(self, ask: dict[str, Any]) -> None:
        """Run a cell and tell how it ended."""
        oom_before = oom_kills()
        self._watch.begin(ask["id"])
        ended = self._start_kernel() if self._watch.kernel is None else None
        kernel = self._watch.kernel
        clock = Clock(ask["seconds"], self._limits["flood"])
        output = Output(self._watch.host, kernel.output if kernel else (), self._limits["output"])
        told: bytes | None = None
        if kernel is not None:
            told = self._run_in(kernel, ask, output, clock)
        clock.stop()
        self._watch.end()
        if told is None and self._watch.overfull:
            clock.stopped = self._watch.overfull
        self._watch.overfull = ""
        if kernel is not None and told is None:
            # Before its pipes are closed all that it printed is taken from them.
            ended = self._kill(kernel)
        oom = self._processes.isolated and oom_kills() > oom_before
        how, lost = ended or (None, None), ended is not None
        self._watch.host.send(ended_frame(output, clock, how, oom=oom, told=told or b"", lost=lost))
        if kernel is not None and ended is not None:
            self._drop(kernel)

    def _start_program(self, ask: dict[str, Any]) -> tuple[int, tuple[int, int], int]:
        """Start a program; return its id, its output and where its exception is reported."""
        report, report_end = open_pipe()
        python = ask.get("python")
        if python is None:
            os.close(report_end)
            return (*self._start(ask["argv"], ask["environment"]), report)
        report_end = pass_on(report_end)
        path = os.path.join(self._settings["workspace"], python["name"])
        launcher = [str(report_end), path, python["name"], *python["arguments"]]
        argv = [*self._python("launcher"), *launcher]
        return (*self._start(argv, ask["environment"], (report_end,)), report)

    def _start_kernel(self) -> tuple[int, str | None] | None:
        """Start a kernel and wait for its preloaded modules; return how it ended, if it did."""
        report, report_end = open_pipe()
        control_end, control = open_pipe()
        os.set_blocking(control, False)
        os.set_blocking(control_end, True)
        kept = pass_on(control_end), pass_on(report_end)
        argv = [*self._python("kernel"), str(kept[0]), str(kept[1])]
        pid, printed = self._start(argv, self._kernel_ask["environment"], kept)
        kernel = self._watch.kernel = KernelChild(pid, control, report, printed)
        kernel.say({"preload": self._kernel_ask["preload"]})
        # What modules print while they are imported belongs to no cell.
        output = Output(None, kernel.output, 0)
        if self._attend(kernel, 0, output, Clock(KERNEL_SECONDS, sys.maxsize)) is not None:
            return None
        ended = self._kill(kernel)
        self._drop(kernel)
        return ended

    def _start(
        self, argv: list[str], environment: dict[str, str], kept: tuple[int, ...] = ()
    ) -> tuple[int, tuple[int, int]]:
        """Start a process in the workspace; return its id and where to read what it prints.

        Args:
            argv: The program and its arguments.
            environment: Variables over those that all programs here get.
            kept: Descriptors that it gets under their numbers; closed here.
        """
        stdout, stdout_end = open_pipe()
        stderr, stderr_end = open_pipe()
        whole = {**os.environ, **self._settings["environment"], **environment}
        streams = Streams(stdout_end, stderr_end, kept)
        pid = self._processes.start(argv, whole, self._settings["workspace"], streams)
        return pid, (stdout, stderr)

    def _python(self, script: str) -> list[str]:
        """Return the command of one of our scripts."""
        return [sys.executable or "python3", "-c", self._settings[script]]

    def _attend(
        self, kernel: KernelChild, number: int, output: Output, clock: Clock
    ) -> bytes | None:
        """Wait for a report; return it, or nothing where the time or the kernel ended before."""
        told: bytes | None = None

        def over(ready: set[int]) -> bool:
            nonlocal told
            if kernel.report in ready:
                kernel.hear()
                told = kernel.told(number)
            return told is not None or kernel.broken or kernel.pid in self._processes.exits

        self._watch.attend(output, clock, {kernel.report}, over)
        return told

    def _run_in(
        self, kernel: KernelChild, ask: dict[str, Any], output: Output, clock: Clock
    ) -> bytes | None:
        """Run a cell; return its report, or nothing where the kernel has to be or was ended."""
        number = ask["id"]
        kernel.say({"number": number, "code": ask["code"]})
        told = self._attend(kernel, number, output, clock)
        if told is None and clock.stopped is not None and clock.stopped not in ON_DISK:
            told = self._interrupt(kernel, number, output)
        return told

    def _interrupt(self, kernel: KernelChild, number: int, output: Output) -> bytes | None:
        """Interrupt a cell; return its report, or nothing where it does not stop."""
        try:
            # Its children too: `os.system` lets them alone take the interrupt.
            os.killpg(kernel.pid, signal.SIGINT)
        except (ProcessLookupError, PermissionError):
            pass
        self._watch.cancelled = False
        return self._attend(kernel, number, output, Clock(GRACE_SECONDS, sys.maxsize))

    def _kill(self, kernel: KernelChild) -> tuple[int, str | None]:
        """Kill it with all that cells started; return how it ended."""
        self._processes.clear(kernel.pid)
        return told_exit(self._processes.exits.get(kernel.pid))

    def _drop(self, kernel: KernelChild) -> None:
        self._processes.forget(kernel.pid)
        kernel.close()
        self._watch.kernel = None


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
