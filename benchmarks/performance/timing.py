"""What things take: two ways to do one, in turns so that both meet the same machine; the command line."""

import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from statistics import median, quantiles
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")
Q = TypeVar("Q")

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)


@dataclass(frozen=True, slots=True)
class Spread:
    """Figures of one thing, in words: their median and their quartiles."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the median and the quartiles of figures; of one or two, their ends.

        Raises:
            ValueError: There are none.
        """
        if not values:
            msg = "there are no figures to tell the median of"
            raise ValueError(msg)
        low, high = min(values), max(values)
        if len(values) > 2:  # noqa: PLR2004  (fewer have no quartiles)
            low, _, high = quantiles(values, n=4, method="inclusive")
        return cls(median(values), low, high, len(values))


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds that a thing took, one figure a question; both clocks of the same call."""

    cpu: tuple[float, ...]
    """Of this process alone: a database server's own is not in it."""
    wall: tuple[float, ...]


def in_turns(
    asks: Mapping[str, Callable[[Q], object]],
    questions: Sequence[Q],
    *,
    rounds: int,
    seconds: float = math.inf,
) -> dict[str, Times]:
    """Ask all each question in every round, one after the other; of each question the best round counts.

    Args:
        asks: By name. The first question is asked of each beforehand, and does not count.
        questions: What to ask.
        rounds: How often.
        seconds: Of CPU, after which one that is slow is asked no more: it then has figures
            of the first questions alone, of three at least.
    """
    for ask in asks.values():
        ask(questions[0])
    spent = dict.fromkeys(asks, 0.0)
    best: dict[str, dict[int, tuple[float, float]]] = {name: {} for name in asks}
    for _ in range(rounds):
        for i, question in enumerate(questions):
            for name, ask in asks.items():
                if spent[name] > seconds and len(best[name]) >= _FEWEST:
                    continue
                took = _both_clocks(partial(ask, question))
                spent[name] += took[0]
                before = best[name].get(i, (math.inf, math.inf))
                best[name][i] = min(before[0], took[0]), min(before[1], took[1])
    return {
        name: Times(
            tuple(cpu * 1e3 for cpu, _ in found.values()),
            tuple(wall * 1e3 for _, wall in found.values()),
        )
        for name, found in best.items()
    }


_FEWEST = 3
"""Questions that everybody is asked, however long it takes."""


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
    found = in_turns({"ours": ours, "floor": floor}, questions, rounds=rounds)
    mine, theirs = found["ours"].cpu, found["floor"].cpu
    return Compared(
        ratio=median(a / b for a, b in zip(mine, theirs, strict=True)),
        ours=median(mine),
        floor=median(theirs),
    )


def cpu_seconds(work: Callable[[], object]) -> float:
    """Measure the CPU time of this process while it does something once."""
    started = time.process_time()
    work()
    return time.process_time() - started


def _both_clocks(work: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU and the wall seconds that something takes."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def single_threaded() -> AbstractContextManager[object]:
    """Have numeric libraries of processes that are started meanwhile use one thread each."""
    return patch.dict(os.environ, _ONE_THREAD)


def alone(measure: Callable[..., T], *arguments: Any) -> T:
    """Measure in a process of its own whose numeric libraries have one thread each.

    Those read how many they may start when they are loaded, and what a ratio says must not
    depend on how many processors a machine has.
    """
    with (
        single_threaded(),
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
