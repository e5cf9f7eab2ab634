"""The first process of a place: starts programs, relays and caps what they print, watches the
clock, kills what is left over, and hands files in and out.

In a container it is PID 1 and not dumpable: programs can neither signal nor trace it, nor open
its descriptors. So how a program ended is told by something the program cannot reach. It keeps
to one thread, trusts nothing that programs leave, and ends with all of them when its input ends.
"""  # noqa: D205

# Descriptors instead of paths, and few modules, for a quick start.
# ruff: noqa: PTH102, PTH118, PTH211, SIM105

from __future__ import annotations

import fcntl
import os
import platform
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from langgraft.environments.sandboxes.inside.collecting import MAX_LEFT_OUT, Collecting
from langgraft.environments.sandboxes.inside.frames import (
    BEAT,
    CELL,
    CHUNK,
    COLLECT,
    DATA,
    DONE,
    ENDED,
    FILE,
    FILE_END,
    INTERRUPT,
    KERNEL,
    LEFT_OUT,
    PROTOCOL,
    PUT,
    READY,
    RUN,
    SETTINGS,
    FrameError,
    pack,
    pack_json,
    unpack_json,
)
from langgraft.environments.sandboxes.inside.kernel_child import MAX_REPORT, KernelChild
from langgraft.environments.sandboxes.inside.output import PIPE_SIZE, Clock, Output
from langgraft.environments.sandboxes.inside.processes import (
    Processes,
    Streams,
    oom_kills,
    pass_on,
)
from langgraft.environments.sandboxes.inside.putting import Puts
from langgraft.environments.sandboxes.inside.removing import remove_tree
from langgraft.environments.sandboxes.inside.talking import Host, HostGoneError

BEAT_SECONDS = 1.0
GRACE_SECONDS = 3.0
"""From interrupting a cell to killing its kernel."""
KERNEL_SECONDS = 180.0
"""For a kernel's preloaded modules to be imported."""

_REPORT_FIELDS = 2
_FRAME_FIELDS = 4
_LONGEST_NUMBER = 10
_MAX_FRAMES = 200
_MAX_FIELD = 50_000


class Supervisor:
    """Does what the host asks, one thing at a time."""

    def __init__(self, host: Host, settings: dict[str, Any]) -> None:
        self._host = host
        self._settings = settings
        self._limits: dict[str, int] = settings["limits"]
        self._path: str = settings["workspace"]
        self._workspace = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        self._processes = Processes(
            isolated=settings["isolated"] and os.getpid() == 1,
            file=self._limits["file"],
            open_files=self._limits["open_files"],
        )
        self._asked: list[tuple[int, bytes]] = []
        self._running: object = None
        self._cancelled = False
        self._beat = 0.0
        self._kernel: KernelChild | None = None
        self._kernel_ask: dict[str, Any] = {}

    def serve(self) -> None:
        """Do what is asked until the host is gone.

        Raises:
            HostGoneError: It is.
            FrameError: It sent what no host of ours sends.
        """
        actions: dict[int, Callable[[dict[str, Any]], None]] = {
            FILE: self._put,
            RUN: self._run,
            KERNEL: self._open_kernel,
            CELL: self._run_cell,
            COLLECT: self._collect,
        }
        ready = {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "dumpable": self._processes.dumpable,
            "sealed": self._processes.sealed,
            "python": platform.python_version(),
        }
        self._host.send(pack_json(READY, ready))
        while True:
            kind, payload = self._next()
            if kind not in actions:
                raise FrameError(f"a frame of kind {kind} where none of them is expected")
            actions[kind](unpack_json(payload))

    def clear(self) -> None:
        """Kill everything that was started here."""
        self._processes.clear(self._kernel.pid if self._kernel is not None else 0)

    # Waiting

    def _next(self) -> tuple[int, bytes]:
        while not self._asked:
            self._wait((), 2.0)
        return self._asked.pop(0)

    def _wait(self, descriptors: Iterable[int], seconds: float) -> set[int]:
        """Wait until a descriptor can be read, the host speaks, a process ends, or time is up."""
        host, kernel = self._host, self._kernel
        poll = select.poll()
        for descriptor in (host.source, self._processes.wakeup, *descriptors):
            poll.register(descriptor, select.POLLIN)
        if host.unsent:
            poll.register(host.sink, select.POLLOUT)
        if kernel is not None and kernel.unsent:
            poll.register(kernel.control, select.POLLOUT)
        # Rounded up, or the last millisecond before a deadline would be spent waiting for 0.
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000 + 0.5)}
        self._processes.reap()
        host.push()
        if kernel is not None:
            kernel.push()
        self._hear(ready)
        return ready

    def _hear(self, ready: set[int]) -> None:
        if self._host.source in ready:
            self._host.hear()
        self._host.check()
        while True:
            frame = self._host.next()
            if frame is None:
                return
            if frame[0] != INTERRUPT:
                self._asked.append(frame)
            elif self._running is not None:
                self._cancelled |= unpack_json(frame[1]).get("id") == self._running

    def _tick(self) -> None:
        """Show a sign of life now and then."""
        now = time.monotonic()
        if now >= self._beat + BEAT_SECONDS:
            self._beat = now
            self._hear({self._host.source})
            if not self._host.unsent:
                self._host.send(pack(BEAT))

    def _attend(
        self, output: Output, clock: Clock, reports: set[int], over: Callable[[set[int]], bool]
    ) -> None:
        """Relay a run's output until it is over or has to be ended."""
        ready: set[int] = set()
        while not over(ready):
            if self._cancelled and clock.stopped is None:
                clock.stopped = "cancelled"
                return
            if clock.check(output.count):
                return
            self._tick()
            left = min(clock.deadline - time.monotonic(), BEAT_SECONDS)
            ready = self._wait(output.open | reports, left)
            for descriptor in output.open & ready:
                output.read(descriptor)

    # Files

    def _put(self, first: dict[str, Any]) -> None:
        puts = Puts(self._workspace)
        puts.begin(first["path"])
        while True:
            kind, payload = self._next()
            if kind == DATA:
                puts.write(payload)
            elif kind == FILE:
                puts.begin(unpack_json(payload)["path"])
            elif kind == PUT:
                break
            else:
                raise FrameError(f"a frame of kind {kind} between files")
        puts.finish()
        self._host.send(pack_json(DONE, {"refused": puts.refused}))

    def _collect(self, ask: dict[str, Any]) -> None:
        if ask["patterns"]:
            self._collect_matching(ask["patterns"])
        self._host.send(pack_json(DONE, {"refused": ""}))

    def _collect_matching(self, patterns: list[str]) -> None:
        left_out = 0

        def leave_out(path: str, reason: str) -> None:
            nonlocal left_out
            left_out += 1
            if left_out > MAX_LEFT_OUT:
                return
            if left_out == MAX_LEFT_OUT:
                path, reason = ".", "more was left out than is told"
            plain = path.encode("utf-8", "backslashreplace").decode("utf-8")
            self._host.send(pack_json(LEFT_OUT, {"path": plain, "reason": reason}))

        collecting = Collecting(
            patterns,
            files=self._limits["collected_files"],
            size=self._limits["collected"],
            leave_out=leave_out,
            tick=self._tick,
        )
        for path, descriptor, size in collecting.walk(self._workspace):
            self._send_file(path, descriptor, size)

    def _send_file(self, path: str, descriptor: int, size: int) -> None:
        self._host.send(pack_json(FILE, {"path": path, "size": size}))
        left, failure = size, ""
        while left > 0:
            try:
                data = os.read(descriptor, min(left, CHUNK))
            except OSError as error:
                failure = f"unreadable: {os.strerror(error.errno or 0)}"
                break
            if not data:
                failure = "it became shorter while it was read"
                break
            left -= len(data)
            self._host.send(pack(DATA, data))
            while self._host.unsent:
                self._wait((), BEAT_SECONDS)
        self._host.send(pack_json(FILE_END, {"failure": failure}))

    # Programs

    def _run(self, ask: dict[str, Any]) -> None:
        oom_before = oom_kills()
        spared: frozenset[tuple[int, str]] = frozenset()
        if self._kernel is not None:
            spared = self._processes.everyone()
        pid, descriptors, report = self._start(ask)
        output = Output(self._host, descriptors, self._limits["output"])
        clock = Clock(ask["seconds"], self._limits["flood"])
        told = bytearray()
        self._running, self._cancelled = ask["id"], False
        reporting = {report}

        def over(ready: set[int]) -> bool:
            if reporting & ready and not _read_report(report, told):
                reporting.clear()
            return pid in self._processes.exits

        self._attend(output, clock, reporting, over)
        duration = time.monotonic() - clock.begun
        self._running = None
        cleared = self._processes.clear(pid, spared)
        while _read_report(report, told):
            pass
        exit_code, signal_name = _told_exit(self._processes.exits.get(pid))
        self._processes.forget(pid)
        self._end(
            output,
            clock,
            duration=duration,
            exit_code=exit_code,
            signal_name=signal_name,
            oom=self._oom_since(oom_before),
            error=_parsed_report(bytes(told)),
            cleared=cleared,
        )
        for descriptor in (*descriptors, report):
            os.close(descriptor)
        self._collect(ask)

    def _start(self, ask: dict[str, Any]) -> tuple[int, tuple[int, int], int]:
        """Start a program; return its id, its output and where its exception is reported."""
        stdout, stdout_end = _pipe()
        stderr, stderr_end = _pipe()
        report, report_end = _pipe()
        report_end = pass_on(report_end)
        kept: tuple[int, ...] = (report_end,)
        python = ask.get("python")
        if python is None:
            argv, kept = ask["argv"], ()
            os.close(report_end)
        else:
            path = os.path.join(self._path, python["name"])
            launcher = [str(report_end), path, python["name"], *python["arguments"]]
            argv = [*self._python("launcher"), *launcher]
        streams = Streams(stdout_end, stderr_end, kept)
        pid = self._processes.start(argv, self._environment(ask), self._path, streams)
        return pid, (stdout, stderr), report

    def _python(self, script: str) -> list[str]:
        return [sys.executable or "python3", "-c", self._settings[script]]

    def _environment(self, ask: dict[str, Any]) -> dict[str, str]:
        return {**os.environ, **self._settings["environment"], **ask["environment"]}

    def _oom_since(self, before: int) -> bool:
        return self._processes.isolated and oom_kills() > before

    def _end(
        self,
        output: Output,
        clock: Clock,
        *,
        duration: float,
        exit_code: int | None,
        signal_name: str | None,
        oom: bool,
        error: dict[str, Any] | None,
        cleared: bool = True,
        lost: bool = False,
    ) -> None:
        stdout_printed, stderr_printed = output.finish()
        result: dict[str, object] = {
            "exit_code": exit_code,
            "signal": signal_name,
            "stopped": clock.stopped,
            "oom": oom,
            "duration": duration,
            "stdout_printed": stdout_printed,
            "stderr_printed": stderr_printed,
            "error": error,
            "kernel_lost": lost,
            "cleared": cleared,
        }
        self._host.send(pack_json(ENDED, result))

    # The kernel

    def _open_kernel(self, ask: dict[str, Any]) -> None:
        self._kernel_ask = ask
        refused = ""
        failed = self._start_kernel()
        if failed is not None:
            exit_code, signal_name = failed
            refused = f"the kernel ended while it started: {signal_name or exit_code}"
        self._host.send(pack_json(DONE, {"refused": refused}))

    def _start_kernel(self) -> tuple[int, str | None] | None:
        """Start a kernel and wait for its preloaded modules; return how it ended, if it did."""
        stdout, stdout_end = _pipe()
        stderr, stderr_end = _pipe()
        report, report_end = _pipe()
        control_end, control = _pipe()
        os.set_blocking(control, False)
        os.set_blocking(control_end, True)
        kept = pass_on(control_end), pass_on(report_end)
        argv = [*self._python("kernel"), str(kept[0]), str(kept[1])]
        streams = Streams(stdout_end, stderr_end, kept)
        environment = self._environment(self._kernel_ask)
        pid = self._processes.start(argv, environment, self._path, streams)
        kernel = self._kernel = KernelChild(pid, control, report, (stdout, stderr))
        kernel.say({"preload": self._kernel_ask["preload"]})
        # What modules print while they are imported belongs to no cell.
        output = Output(None, kernel.output, 0)
        clock = Clock(KERNEL_SECONDS, sys.maxsize)
        if self._attend_kernel(kernel, 0, output, clock) is not None:
            return None
        ended = self._kill_kernel(kernel)
        self._drop_kernel(kernel)
        return ended

    def _attend_kernel(
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

        self._attend(output, clock, {kernel.report}, over)
        return told

    def _run_cell(self, ask: dict[str, Any]) -> None:
        oom_before = oom_kills()
        self._running, self._cancelled = ask["id"], False
        clock = Clock(ask["seconds"], self._limits["flood"])
        output = Output(self._host, (), 0)
        told: bytes | None = None
        ended = self._start_kernel() if self._kernel is None else None
        kernel = self._kernel
        if kernel is not None:
            output = Output(self._host, kernel.output, self._limits["output"])
            clock = Clock(ask["seconds"], self._limits["flood"])
            told = self._run_in(kernel, ask, output, clock)
        duration = time.monotonic() - clock.begun
        self._running = None
        if kernel is not None and told is None:
            # Before its pipes are closed all that it printed is taken from them.
            ended = self._kill_kernel(kernel)
        exit_code, signal_name = ended or (None, None)
        self._end(
            output,
            clock,
            duration=duration,
            exit_code=exit_code,
            signal_name=signal_name,
            oom=self._oom_since(oom_before),
            error=_parsed_report(told or b""),
            lost=ended is not None,
        )
        if kernel is not None and ended is not None:
            self._drop_kernel(kernel)
        self._collect({"patterns": []})

    def _run_in(
        self, kernel: KernelChild, ask: dict[str, Any], output: Output, clock: Clock
    ) -> bytes | None:
        """Run a cell; return its report, or nothing where the kernel has to be or was ended."""
        number = ask["id"]
        kernel.say({"number": number, "code": ask["code"]})
        told = self._attend_kernel(kernel, number, output, clock)
        if told is None and clock.stopped is not None:
            told = self._interrupt(kernel, number, output)
        return told

    def _kill_kernel(self, kernel: KernelChild) -> tuple[int, str | None]:
        """Kill it with all that cells started; return how it ended."""
        self._processes.clear(kernel.pid)
        return _told_exit(self._processes.exits.get(kernel.pid))

    def _drop_kernel(self, kernel: KernelChild) -> None:
        self._processes.forget(kernel.pid)
        kernel.close()
        self._kernel = None

    def _interrupt(self, kernel: KernelChild, number: int, output: Output) -> bytes | None:
        """Interrupt a cell; return its report, or nothing where it does not stop."""
        try:
            # Its children too: `os.system` lets them alone take the interrupt.
            os.killpg(kernel.pid, signal.SIGINT)
        except (ProcessLookupError, PermissionError):
            pass
        self._cancelled = False
        return self._attend_kernel(kernel, number, output, Clock(GRACE_SECONDS, sys.maxsize))


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        # Fewer wake-ups where much is printed; 1031 is F_SETPIPE_SZ, named since Python 3.10.
        fcntl.fcntl(writing, 1031, PIPE_SIZE)
    except OSError:
        pass
    return reading, writing


def _read_report(report: int, told: bytearray) -> bool:
    """Read what a program's launcher reports; return whether there may be more."""
    try:
        data = os.read(report, 1 << 16)
    except BlockingIOError:
        return False
    if len(told) < MAX_REPORT:
        told += data
    return bool(data)


def _parsed_report(told: bytes) -> dict[str, Any] | None:
    """Return the exception that was told, in the form in which it is passed on."""
    fields = [field[:_MAX_FIELD] for field in told.decode("utf-8", "replace").split("\0")[:-1]]
    if len(fields) < _REPORT_FIELDS:
        return None
    kind, message, *rest = fields
    frames = []
    last = min(len(rest), _MAX_FRAMES * _FRAME_FIELDS) - _FRAME_FIELDS
    for start in range(0, last + 1, _FRAME_FIELDS):
        file, line, function, text = rest[start : start + _FRAME_FIELDS]
        number = int(line) if line.isdecimal() and len(line) < _LONGEST_NUMBER else 0
        frames.append({"file": file, "line": number, "function": function, "text": text})
    return {"type": kind, "message": message, "frames": frames}


def _told_exit(status: int | None) -> tuple[int, str | None]:
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


def _make_place(settings: dict[str, Any]) -> None:
    """Make the folders that go when the host goes; so none is left, whenever that is."""
    os.mkdir(settings["remove"], 0o700)
    for folder in (settings["workspace"], settings["home"]):
        os.mkdir(folder, 0o700)
    for name, target in settings["links"].items():
        os.symlink(target, os.path.join(settings["workspace"], name))


def main() -> None:
    """Supervise this place until the host is gone; then kill all, and remove what it says."""
    host = Host(0, 1)
    settings: dict[str, Any] | None = None
    supervisor = None
    try:
        while True:
            frame = host.next()
            if frame is not None:
                break
            select.select([host.source], [], [])
            host.hear()
        if frame[0] != SETTINGS:
            raise FrameError(f"a frame of kind {frame[0]} before the settings")
        settings = unpack_json(frame[1])
        host.parent = settings["parent"]
        if settings["remove"] is not None:
            _make_place(settings)
        supervisor = Supervisor(host, settings)
        supervisor.serve()
    except HostGoneError:
        pass
    finally:
        if supervisor is not None:
            supervisor.clear()
        if settings is not None and settings["remove"] is not None:
            os.chdir("/")
            remove_tree(settings["remove"])


if __name__ == "__main__":
    main()
