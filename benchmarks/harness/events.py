"""`events.jsonl`: what may differ between two repetitions of a run.

Clocks, durations, hosts and failed attempts, for people and dashboards, in lines with a checksum as
those of `items.jsonl`. The file is not synced line by line, and nothing is ever decided from it.
"""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from langgraft._core.canonical import JSON
from langgraft._core.clock import Clock
from langgraft._core.errors import RunDirectoryError
from langgraft._core.files import write_all
from langgraft.benchmarks.harness.files import disk_errors, each_whole_line, read_bytes, whole_lines
from langgraft.benchmarks.harness.records import checked_line, read_checked


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
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            # A crash may have cut the last event.
            os.ftruncate(self._descriptor, len(whole_lines(path.read_bytes())))

    def write(self, kind: str, fields: Mapping[str, JSON]) -> None:
        """Append one event.

        Raises:
            RunDirectoryError: The event cannot be written.
        """
        event = {"event": kind, "time": self._clock.time(), **fields}
        line = checked_line(json.dumps(event, default=str, separators=(",", ":")))
        with disk_errors("write", self._path):
            write_all(self._descriptor, line)

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


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a run; one that a crash cut short is left out.

    Raises:
        RunDirectoryError: A line is damaged, or the file cannot be read.
    """
    data = read_bytes(path) if path.exists() else b""
    for number, line in enumerate(each_whole_line(data), start=1):
        event = read_checked(line)
        if event is None:
            msg = f"line {number} is damaged"
            raise RunDirectoryError(msg, path=path)
        yield event
