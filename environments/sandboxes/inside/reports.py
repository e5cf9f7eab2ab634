"""How a program ended: what its parent knows, and what its own interpreter reports."""

from __future__ import annotations

import os
import signal
from typing import Any

from langgraft.environments.sandboxes.inside.frames import ENDED, pack_json
from langgraft.environments.sandboxes.inside.kernel_child import MAX_REPORT
from langgraft.environments.sandboxes.inside.output import Clock, Output

_REPORT_FIELDS = 2
_FRAME_FIELDS = 4
_LONGEST_NUMBER = 10
_MAX_FRAMES = 200
_MAX_FIELD = 50_000


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
    *,
    exit_code: int | None,
    signal_name: str | None,
    oom: bool,
    told: bytes,
    cleared: bool = True,
    lost: bool = False,
) -> bytes:
    """Return the frame that tells of an end; takes what is left of the output."""
    stdout_printed, stderr_printed = output.finish()
    result: dict[str, object] = {
        "exit_code": exit_code,
        "signal": signal_name,
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
