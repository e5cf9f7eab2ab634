"""Groups of promises, and how they are measured.

No promise is imported here: a process of its own loads only those of the group that it measures.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Final

from acceptance.figure import Figure, Setting


@dataclass(frozen=True, slots=True)
class Group:
    """Promises that are measured together."""

    title: str
    measure: Callable[[Setting], list[Figure]]
    alone: bool = False
    """Whether its figures are speeds, also at reduced size: nothing else of ours may run then."""

    def figures(self, setting: Setting) -> list[Figure]:
        """Measure; what breaks on the way is a promise that does not hold."""
        try:
            return self.measure(setting)
        except Exception as error:  # noqa: BLE001  (the other groups are still to be measured)
            broken = f"{type(error).__name__}: {error}"
            return [Figure(self.title, "", broken, "measured to the end", passed=False)]


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
        # The longest are among the last: begun late, one of them would be under way alone.
        started = [pool.submit(_measured, *each, setting) for each in reversed(numbered)]
        for done in as_completed(started):
            yield done.result()


def _measured(number: int, group: Group, setting: Setting) -> Measured:
    setting.say(f"measuring: {group.title}")
    folder = setting.work / f"{number:02}"
    folder.mkdir()
    began = time.monotonic()
    figures = group.figures(replace(setting, work=folder))
    return Measured(number, group.title, figures, time.monotonic() - began)
