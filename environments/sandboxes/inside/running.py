"""Running one program to its end, whichever end that is."""

from __future__ import annotations

import os
from typing import Any

from langgraft.environments.sandboxes.inside.output import Clock, Output
from langgraft.environments.sandboxes.inside.processes import oom_kills, pass_on
from langgraft.environments.sandboxes.inside.reports import ended_frame, read_report, told_exit
from langgraft.environments.sandboxes.inside.starting import Starter, open_pipe
from langgraft.environments.sandboxes.inside.watching import Watch


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
        exit_code, signal_name = told_exit(self._processes.exits.get(pid))
        self._processes.forget(pid)
        ended = ended_frame(
            output,
            clock,
            exit_code=exit_code,
            signal_name=signal_name,
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
