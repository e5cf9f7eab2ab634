"""Groups of promises as they are measured: one by one, or two at a time where sizes are reduced."""

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Final

from langgraft.benchmarks.acceptance.figure import Figure, Setting
from langgraft.benchmarks.acceptance.promises import Group

AT_ONCE: Final = 2
"""Groups under way at the same time at reduced size; most keep one core busy."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a group."""

    number: int
    """Its place among those that were asked for."""
    title: str
    figures: Sequence[Figure]
    seconds: float
    """Wall time."""


def measure_groups(groups: Sequence[Group], setting: Setting) -> Iterator[Measured]:
    """Measure groups, each in a folder of its own, and yield each when it is done.

    At full size times are judged, so that nothing else may run. At reduced size only groups that
    are `alone` are speeds; the others run two at a time, in processes of their own, before them.
    """
    numbered = list(enumerate(groups))
    if setting.reduced:
        yield from _side_by_side([each for each in numbered if not each[1].alone], setting)
        numbered = [each for each in numbered if each[1].alone]
    for number, group in numbered:
        yield _measured(number, group, setting)


def say(line: str) -> None:
    """Tell of progress; also from a process of its own."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _side_by_side(numbered: Sequence[tuple[int, Group]], setting: Setting) -> Iterator[Measured]:
    if not numbered:
        return
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        started = [pool.submit(_measured, number, group, setting) for number, group in numbered]
        for done in as_completed(started):
            yield done.result()


def _measured(number: int, group: Group, setting: Setting) -> Measured:
    setting.say(f"measuring: {group.title}")
    folder = setting.work / f"{number:02}"
    folder.mkdir()
    began = time.monotonic()
    figures = group.figures(replace(setting, work=folder))
    return Measured(number, group.title, figures, time.monotonic() - began)
