"""What things take: two ways to do one, in turns so that both meet the same machine; the command line."""

import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")
Q = TypeVar("Q")

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)


@dataclass(frozen=True, slots=True)
class Compared:
    """What one thing costs, ours and the floor's."""

    ratio: float
    """Ours over the floor's: median over the questions of each one's own ratio."""
    ours: float
    """CPU milliseconds, median over the questions."""
    floor: float
    """CPU milliseconds, median over the questions."""


def compared(
    ours: Callable[[Q], object],
    floor: Callable[[Q], object],
    questions: Sequence[Q],
    *,
    rounds: int,
) -> Compared:
    """Ask both each question in every round; of each question the best round counts."""
    for ask in (ours, floor):
        ask(questions[0])
    mine = [math.inf] * len(questions)
    theirs = [math.inf] * len(questions)
    for _ in range(rounds):
        for i, question in enumerate(questions):
            mine[i] = min(mine[i], cpu_seconds(partial(ours, question)))
            theirs[i] = min(theirs[i], cpu_seconds(partial(floor, question)))
    return Compared(
        ratio=median(a / b for a, b in zip(mine, theirs, strict=True)),
        ours=median(mine) * 1e3,
        floor=median(theirs) * 1e3,
    )


def cpu_seconds(work: Callable[[], object]) -> float:
    """Measure the CPU time of this process while it does something once."""
    started = time.process_time()
    work()
    return time.process_time() - started


def alone(measure: Callable[..., T], *arguments: Any) -> T:
    """Measure in a process of its own whose numeric libraries have one thread each.

    Those read how many they may start when they are loaded, and what a ratio says must not
    depend on how many processors a machine has.
    """
    with (
        patch.dict(os.environ, _ONE_THREAD),
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
    ):
        return pool.submit(measure, *arguments).result()


def help_seconds(*, rounds: int = 7) -> tuple[float, float]:
    """Measure the wall time of `langgraft --help` and of a bare Python, best of `rounds`."""
    bare = _fastest([sys.executable, "-c", "pass"], rounds)
    full = _fastest([sys.executable, "-m", "langgraft", "--help"], rounds)
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


def _fastest(command: Sequence[str], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (our own command)
        times.append(time.perf_counter() - started)
    return min(times)
