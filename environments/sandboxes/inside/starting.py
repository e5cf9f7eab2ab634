"""Starting a child with pipes of the supervisor in place of its streams."""

from __future__ import annotations

import fcntl
import os
import sys
from typing import Any

from langgraft.environments.sandboxes.inside.output import PIPE_SIZE
from langgraft.environments.sandboxes.inside.processes import Processes, Streams


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
