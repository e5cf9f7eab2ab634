"""What runs commands as jobs: each waited for a while, and then let go on.

Run as a cell of a workspace's interpreter, which the jobs belong to: they end with it. The name `ASK`
holds what is asked, and a line of JSON is printed behind `MARK`. What a job prints lies in the
workspace, `.jobs/<number>`, and is read on from where it was read last.
"""

# Few modules, for a quick start. Names come from nowhere but a cell.
# ruff: noqa: PTH103, PTH107, PTH118, PTH123, PTH208, S603, S607

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

MARK = "\x1ejob\x1e"
FOLDER = ".jobs"
MOST = 64_000
"""Bytes of new output that are told: its beginning and its end."""
GRACE = 3.0
"""Seconds that an interrupted job has to end in."""
JOBS = "_langgraft_jobs"
"""Key of `sys.modules` under which the interpreter keeps the jobs that go on."""


class Job:
    """A command that was started."""

    def __init__(self, number: int, line: str, limit: float) -> None:
        self.number = number
        self.line = line
        self.path = os.path.join(FOLDER, str(number))
        self.read = 0
        self.began = time.monotonic()
        self.timed_out = False
        with open(self.path, "wb") as output:
            self.process = subprocess.Popen(
                ["bash", "-c", line],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.timer = threading.Timer(limit, self._end)
        self.timer.daemon = True
        self.timer.start()

    def _end(self) -> None:
        self.timed_out = self.process.poll() is None
        self.kill(signal.SIGKILL)

    def kill(self, number: int) -> None:
        """Send a signal to it and all that it started in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def wait(self, seconds: float) -> bool:
        """Wait for its end, and return whether it has ended; what it left running is killed then."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self.timer.cancel()
        self.kill(signal.SIGKILL)
        return True

    def say(self, text: str | None) -> None:
        """Write a line to its standard input."""
        if text is None or self.process.stdin is None:
            return
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{text}\n".encode("utf-8", "replace"))
            self.process.stdin.flush()

    def printed(self) -> str:
        """Return what it printed since this was asked last."""
        try:
            with open(self.path, "rb") as output:
                size = output.seek(0, os.SEEK_END)
                new = size - self.read
                output.seek(self.read)
                data = output.read(new if new <= MOST else MOST // 2)
                if new > MOST:
                    output.seek(size - MOST // 2)
                    left_out = f"\n[{new - MOST:,} bytes left out]\n".encode()
                    data += left_out + output.read(MOST // 2)
                self.read = size
        except OSError:
            return ""
        return data.decode("utf-8", "replace")


def main(ask: dict[str, Any]) -> dict[str, Any]:
    """Start a job or look at one; return what there is to tell."""
    kept: Any = sys.modules
    jobs: dict[int, Job] = kept.setdefault(JOBS, {})
    if "line" in ask:
        os.makedirs(FOLDER, exist_ok=True)
        known = [int(name) for name in os.listdir(FOLDER) if name.isdecimal()]
        job = Job(max(known, default=0) + 1, ask["line"], ask["limit"])
    elif ask["job"] in jobs:
        job = jobs[ask["job"]]
        job.say(ask.get("input"))
    else:
        return {"unknown": sorted(jobs)}
    if ask.get("interrupt"):
        job.kill(signal.SIGINT)
        ended = job.wait(GRACE)
        if not ended:
            job.kill(signal.SIGKILL)
            ended = job.wait(GRACE)
    else:
        ended = job.wait(ask["wait"])
    told = {"job": job.number, "line": job.line, "printed": job.printed(), "ended": ended}
    if not ended:
        jobs[job.number] = job
        return told
    known_before = jobs.pop(job.number, None) is not None
    if not known_before:  # so that numbers count the jobs that went on, and no others
        os.remove(job.path)
    seconds = time.monotonic() - job.began
    code = job.process.returncode
    return {**told, "code": code, "timed_out": job.timed_out, "seconds": seconds}


if (asked := globals().get("ASK")) is not None:
    said = f"{MARK}{json.dumps(main(asked))}\n".encode()
    sys.stdout.flush()
    while said:
        said = said[os.write(1, said) :]
