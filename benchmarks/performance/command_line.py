"""How long the command line takes: `langgraft --help` beyond Python itself, `plans` in CPU time."""

import resource
import subprocess
import sys
import time
from collections.abc import Sequence


def help_seconds(*, rounds: int = 7) -> tuple[float, float]:
    """Measure the wall time of `langgraft --help` and of a bare Python, best of `rounds`."""
    bare = _best([sys.executable, "-c", "pass"], rounds)
    full = _best([sys.executable, "-m", "langgraft", "--help"], rounds)
    return full - bare, bare


def plans_cpu_seconds(*, rounds: int = 3) -> float:
    """Measure the CPU time of `langgraft plans`, Python's start included, best of `rounds`."""
    times = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "langgraft", "plans"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (our own command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def _best(command: Sequence[str], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (our own command)
        times.append(time.perf_counter() - started)
    return min(times)
