"""A published figure and what comes of recomputing it; how figures are written."""

from dataclasses import dataclass

from langgraft.benchmarks.continual.published.printed import ROLES, Place, World
from langgraft.benchmarks.continual.wording import MINUS

_TINY = 1e-9
_HALF_DIGIT = 0.05
"""Figures are printed with one digit after the point."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A published figure and what comes of recomputing it."""

    section: str
    """Table, figure or appendix."""
    figure: str
    printed: str
    recomputed: str
    holds: bool | None
    """Whether the printed figure can be had; `None` where nothing is printed, only worked out."""


def change(value: float, digits: int = 1) -> str:
    """Write a difference of percentages with its sign."""
    text = f"{value:+.{digits}f}"
    return text.removeprefix("+") if not float(text) else text.replace("-", MINUS)


def counted(value: int) -> str:
    """Write a difference of counts with its sign."""
    return change(value, 0)


def named(place: Place) -> str:
    """Name a row: world, sequence, condition."""
    sequence, world, role = place
    return f"{world}, {sequence.replace('>', '→')}, {ROLES[role]}"


def tested_on(world: World, task: str) -> str:
    """Name a task."""
    return f"{world}, task {task}"


def count_behind(printed: float, items: int) -> int | None:
    """Return the count of episodes that a printed change of some items' success can come from.

    Args:
        printed: In percentage points, with one digit.
        items: Episodes it is of: test items by runs.

    Returns:
        The count, or `None` where no whole number prints so.
    """
    whole = round(printed * items / 100)
    near = (count for count in (whole - 1, whole, whole + 1) if prints(count, items, printed))
    return next(near, None)


def prints(count: int, items: int, printed: float) -> bool:
    """Say whether a count of some items prints so, in percent with one digit."""
    return abs(100 * count / items - printed) <= _HALF_DIGIT + _TINY
