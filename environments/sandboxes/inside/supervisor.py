"""The first process of a place: starts programs, relays and caps what they print, watches the
clock, kills what is left over, and hands files in and out.

In a container it is PID 1 and not dumpable: programs can neither signal nor trace it, nor open
its descriptors. So how a program ended is told by something the program cannot reach. It keeps
to one thread, trusts nothing that programs leave, and ends with all of them when its input ends.
"""  # noqa: D205

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Any

from langgraft.environments.sandboxes.inside.files import (
    MAX_LEFT_OUT,
    MAX_NAME,
    Collecting,
    Puts,
    remove_tree,
)
from langgraft.environments.sandboxes.inside.frames import (
    CELL,
    CHUNK,
    COLLECT,
    DATA,
    DONE,
    FILE,
    FILE_END,
    KERNEL,
    LEFT_OUT,
    PROTOCOL,
    PUT,
    READY,
    RUN,
    SETTINGS,
    FrameError,
    Host,
    HostGoneError,
    pack,
    pack_json,
    unpack_json,
)
from langgraft.environments.sandboxes.inside.processes import Processes
from langgraft.environments.sandboxes.inside.running import Runner
from langgraft.environments.sandboxes.inside.watching import BEAT_SECONDS, Disk, Watch


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
        disk = settings["disk"]
        if disk is not None:
            disk = Disk(settings["workspace"], disk["most"], disk["mounted"])
        self._watch = Watch(host, self._processes, disk)
        self._workspace = Workspace(settings["workspace"], self._watch, limits)
        self._runner = Runner(self._watch, settings)

    def serve(self) -> None:
        """Do what is asked until the host is gone.

        Raises:
            HostGoneError: It is.
            FrameError: It sent what no host of ours sends.
        """
        actions: dict[int, Callable[[dict[str, Any]], None]] = {
            FILE: self._workspace.put,
            RUN: self._run,
            KERNEL: self._runner.open_kernel,
            CELL: self._run_cell,
            COLLECT: self._workspace.collect,
        }
        ready: dict[str, object] = {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "dumpable": self._processes.dumpable,
            "sealed": self._processes.sealed,
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
        self._runner.run(ask)
        self._workspace.collect(ask)

    def _run_cell(self, ask: dict[str, Any]) -> None:
        self._runner.run_cell(ask)
        self._workspace.collect({"patterns": []})


class Workspace:
    """Files in, files out.

    Args:
        path: The folder.
        watch: What waits for the host.
        limits: Of what is taken out: `collected` bytes in `collected_files` files.
    """

    def __init__(self, path: str, watch: Watch, limits: dict[str, int]) -> None:
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._watch = watch
        self._host = watch.host
        self._limits = limits
        self._left_out = 0

    def put(self, first: dict[str, Any]) -> None:
        """Write files, of which the first was named."""
        puts = Puts(self._folder)
        puts.begin(first["path"])
        while True:
            kind, payload = self._watch.next()
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

    def collect(self, ask: dict[str, Any]) -> None:
        """Hand over the files that match patterns."""
        if ask["patterns"]:
            self._left_out = 0
            collecting = Collecting(
                ask["patterns"],
                files=self._limits["collected_files"],
                size=self._limits["collected"],
                leave_out=self._leave_out,
                tick=self._watch.tick,
            )
            for path, descriptor, size in collecting.walk(self._folder):
                self._send_file(path, descriptor, size)
        self._host.send(pack_json(DONE, {"refused": ""}))

    def _leave_out(self, path: str, reason: str) -> None:
        self._left_out += 1
        if self._left_out > MAX_LEFT_OUT:
            return
        if self._left_out == MAX_LEFT_OUT:
            path, reason = ".", "more was left out than is told"
        # Cut: a thousand of the longest paths there can be are a hundred million characters.
        plain = path[:MAX_NAME].encode("utf-8", "backslashreplace").decode("utf-8")
        self._host.send(pack_json(LEFT_OUT, {"path": plain, "reason": reason}))

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
                self._watch.wait((), BEAT_SECONDS)
        self._host.send(pack_json(FILE_END, {"failure": failure}))


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
