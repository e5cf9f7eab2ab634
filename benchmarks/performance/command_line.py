"""How long `langgraft --help` takes, beyond Python itself."""

import subprocess
import sys
import time
from collections.abc import Sequence


def help_seconds(*, rounds: int = 7) -> tuple[float, float]:
    """Measure the wall time of `langgraft --help` and of a bare Python, best of `rounds`."""
    bare = _best([sys.executable, "-c", "pass"], rounds)
    full = _best([sys.executable, "-m", "langgraft", "--help"], rounds)
    return full - bare, bare


def _best(command: Sequence[str], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (our own command)
        times.append(time.perf_counter() - started)
    return min(times)
