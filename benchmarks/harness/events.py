"""`events.jsonl`: what may differ between two repetitions of a run.

Clocks, durations, hosts and failed attempts, as plain JSON lines for people and dashboards.
The file is not synced line by line, and nothing is ever decided from it.
"""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langgraft._core.canonical import JSON
from langgraft._core.clock import Clock
from langgraft.benchmarks.harness.files import disk_errors, write_all


class EventWriter:
    """Appends events of one run.

    Args:
        path: The file.
        clock: Stamps each event.

    Raises:
        RunDirectoryError: The file cannot be opened for writing.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        with disk_errors("open for writing", path):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            self._descriptor = os.open(path, flags, 0o644)
            size = os.fstat(self._descriptor).st_size
            if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
                write_all(self._descriptor, b"\n")  # a crash cut the last event

    def write(self, kind: str, fields: Mapping[str, JSON]) -> None:
        """Append one event.

        Raises:
            RunDirectoryError: The event cannot be written.
        """
        event = {"event": kind, "time": self._clock.time(), **fields}
        line = json.dumps(event, ensure_ascii=True, default=str, separators=(",", ":"))
        with disk_errors("write", self._path):
            write_all(self._descriptor, line.encode() + b"\n")

    def write_opened(self, committed: int, dropped: int) -> None:
        """Note that a process took up the run, and from where."""
        self.write(
            "opened",
            {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "committed": committed,
                "dropped_bytes": dropped,
            },
        )

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read_events(path: Path) -> list[dict[str, Any]]:
    """Read the events of a run; lines a crash cut short are left out."""
    events = []
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        events.append(event)
    return events
