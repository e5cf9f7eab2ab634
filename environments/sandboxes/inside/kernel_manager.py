"""Keeping a kernel: an interpreter that lives on between cells, and is replaced when it ends."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from langgraft.environments.sandboxes.inside.channels import KernelChild
from langgraft.environments.sandboxes.inside.frames import DONE, pack_json
from langgraft.environments.sandboxes.inside.processes import oom_kills, pass_on
from langgraft.environments.sandboxes.inside.running import (
    Starter,
    ended_frame,
    open_pipe,
    told_exit,
)
from langgraft.environments.sandboxes.inside.watching import Clock, Output, Watch

GRACE_SECONDS = 3.0
"""From interrupting a cell to killing its kernel."""
KERNEL_SECONDS = 180.0
"""For a kernel's preloaded modules to be imported."""


class Keeper:
    """Starts a kernel, runs cells in it, interrupts and kills it; `Watch.kernel` is the one kept."""

    def __init__(self, watch: Watch, starter: Starter, limits: dict[str, int]) -> None:
        self._watch = watch
        self._processes = watch.processes
        self._starter = starter
        self._limits = limits
        self._ask: dict[str, Any] = {}

    def open(self, ask: dict[str, Any]) -> None:
        """Start the first kernel; later ones are started as this one was."""
        self._ask = ask
        refused = ""
        failed = self._start()
        if failed is not None:
            refused = f"the kernel ended while it started: {failed[1] or failed[0]}"
        self._watch.host.send(pack_json(DONE, {"refused": refused}))

    def run_cell(self, ask: dict[str, Any]) -> None:
        """Run a cell and tell how it ended."""
        oom_before = oom_kills()
        self._watch.begin(ask["id"])
        ended = self._start() if self._watch.kernel is None else None
        kernel = self._watch.kernel
        clock = Clock(ask["seconds"], self._limits["flood"])
        output = Output(self._watch.host, kernel.output if kernel else (), self._limits["output"])
        told: bytes | None = None
        if kernel is not None:
            told = self._run_in(kernel, ask, output, clock)
        clock.stop()
        self._watch.end()
        if kernel is not None and told is None:
            # Before its pipes are closed all that it printed is taken from them.
            ended = self._kill(kernel)
        frame = ended_frame(
            output,
            clock,
            ended or (None, None),
            oom=self._processes.isolated and oom_kills() > oom_before,
            told=told or b"",
            lost=ended is not None,
        )
        self._watch.host.send(frame)
        if kernel is not None and ended is not None:
            self._drop(kernel)

    def _start(self) -> tuple[int, str | None] | None:
        """Start a kernel and wait for its preloaded modules; return how it ended, if it did."""
        report, report_end = open_pipe()
        control_end, control = open_pipe()
        os.set_blocking(control, False)
        os.set_blocking(control_end, True)
        kept = pass_on(control_end), pass_on(report_end)
        argv = [*self._starter.python("kernel"), str(kept[0]), str(kept[1])]
        pid, printed = self._starter.start(argv, self._ask["environment"], kept)
        kernel = self._watch.kernel = KernelChild(pid, control, report, printed)
        kernel.say({"preload": self._ask["preload"]})
        # What modules print while they are imported belongs to no cell.
        output = Output(None, kernel.output, 0)
        if self._attend(kernel, 0, output, Clock(KERNEL_SECONDS, sys.maxsize)) is not None:
            return None
        ended = self._kill(kernel)
        self._drop(kernel)
        return ended

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
        if told is None and clock.stopped is not None:
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
