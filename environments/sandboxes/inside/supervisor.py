"""The first process of a place: starts programs, relays and caps what they print, watches the
clock, kills what is left over, and hands files in and out.

In a container it is PID 1 and not dumpable: programs can neither signal nor trace it, nor open
its descriptors. So how a program ended is told by something the program cannot reach. It keeps
to one thread, trusts nothing that programs leave, and ends with all of them when its input ends.
"""  # noqa: D205

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import Any

from langgraft.environments.sandboxes.inside.frames import (
    CELL,
    COLLECT,
    FILE,
    KERNEL,
    PROTOCOL,
    READY,
    RUN,
    SETTINGS,
    FrameError,
    pack_json,
    unpack_json,
)
from langgraft.environments.sandboxes.inside.host_channel import Host, HostGoneError
from langgraft.environments.sandboxes.inside.kernel_manager import Keeper
from langgraft.environments.sandboxes.inside.processes import Processes
from langgraft.environments.sandboxes.inside.removing import remove_tree
from langgraft.environments.sandboxes.inside.running import Programs
from langgraft.environments.sandboxes.inside.starting import Starter
from langgraft.environments.sandboxes.inside.watching import Watch
from langgraft.environments.sandboxes.inside.workspace import Workspace


class Supervisor:
    """Does what the host asks, one thing at a time."""

    def __init__(self, host: Host, settings: dict[str, Any]) -> None:
        limits: dict[str, int] = settings["limits"]
        self._host = host
        self._processes = Processes(
            isolated=settings["isolated"] and os.getpid() == 1,
            file=limits["file"],
            open_files=limits["open_files"],
        )
        self._watch = Watch(host, self._processes)
        self._workspace = Workspace(settings["workspace"], self._watch, limits)
        starter = Starter(self._processes, settings)
        self._programs = Programs(self._watch, starter, limits)
        self._keeper = Keeper(self._watch, starter, limits)

    def serve(self) -> None:
        """Do what is asked until the host is gone.

        Raises:
            HostGoneError: It is.
            FrameError: It sent what no host of ours sends.
        """
        actions: dict[int, Callable[[dict[str, Any]], None]] = {
            FILE: self._workspace.put,
            RUN: self._run,
            KERNEL: self._keeper.open,
            CELL: self._run_cell,
            COLLECT: self._workspace.collect,
        }
        ready = {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "dumpable": self._processes.dumpable,
            "sealed": self._processes.sealed,
            "python": "{}.{}.{}".format(*sys.version_info),
        }
        self._host.send(pack_json(READY, ready))
        while True:
            kind, payload = self._watch.next()
            if kind not in actions:
                raise FrameError(f"a frame of kind {kind} where none of them is expected")
            actions[kind](unpack_json(payload))

    def clear(self) -> None:
        """Kill everything that was started here."""
        kernel = self._watch.kernel
        self._processes.clear(kernel.pid if kernel is not None else 0)

    def _run(self, ask: dict[str, Any]) -> None:
        self._programs.run(ask)
        self._workspace.collect(ask)

    def _run_cell(self, ask: dict[str, Any]) -> None:
        self._keeper.run_cell(ask)
        self._workspace.collect({"patterns": []})


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
