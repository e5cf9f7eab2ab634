"""Pictures turned, moved, scaled and blurred with noise, in integer arithmetic throughout."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from langgraft.environments.competitions.shipped.making.draws import Integers
from langgraft.environments.competitions.shipped.making.sources import Picture

UNIT: Final = 1024
"""One pixel of the source, and the number one, in fixed-point arithmetic."""

SINES: Final = (0, 89, 178, 265, 350, 433, 512, 587, 658, 724, 784, 839, 887, 928, 962, 989, 1008)
"""1024 sin of 0, 5, 10 … 80 degrees."""

TURN: Final = 72
"""Steps of 5 degrees in a full turn."""


@dataclass(frozen=True, slots=True)
class View:
    """Where a window lies on a picture."""

    row: int
    """Of the window's center on the source, in 1/1024 pixels."""
    column: int
    angle: int
    """In steps of 5 degrees."""
    scale: int = UNIT
    """Pixels of the source per pixel of the window, in 1/1024."""


def sine(angle: int) -> int:
    """Return 1024 times the sine of an angle in steps of 5 degrees."""
    quarter, step = divmod(angle % TURN, 18)
    table = (*SINES, 1020, UNIT)
    rising = table[step] if quarter % 2 == 0 else table[18 - step]
    return rising if quarter < 2 else -rising  # noqa: PLR2004  (the half turn below zero)


def look(picture: NDArray[np.generic], view: View, size: int) -> Integers:
    """Return a square window of a picture, interpolated between its pixels.

    Beyond the picture's edge its edge goes on.

    Args:
        picture: Height by width.
        view: Where the window lies.
        size: Pixels along each side of the window.
    """
    steps = (2 * np.arange(size, dtype=np.int64) - (size - 1)) * view.scale // 2
    down, right = np.meshgrid(steps, steps, indexing="ij")
    cosine, slant = sine(view.angle + 18), sine(view.angle)
    rows = view.row + (down * cosine - right * slant) // UNIT
    columns = view.column + (down * slant + right * cosine) // UNIT
    return _between(picture.astype(np.int64), rows, columns)


def shade(values: Integers) -> Picture:
    """Cut values to shades of gray, 0 to 255."""
    return np.clip(values, 0, 255).astype(np.uint8)


def _between(picture: Integers, rows: Integers, columns: Integers) -> Integers:
    height, width = picture.shape
    top, left = rows // UNIT, columns // UNIT
    down, right = rows % UNIT, columns % UNIT
    y, below = np.clip(top, 0, height - 1), np.clip(top + 1, 0, height - 1)
    x, beside = np.clip(left, 0, width - 1), np.clip(left + 1, 0, width - 1)
    upper: Integers = picture[y, x] * (UNIT - right) + picture[y, beside] * right
    lower: Integers = picture[below, x] * (UNIT - right) + picture[below, beside] * right
    twice: Integers = upper * (UNIT - down) + lower * down
    rounded: Integers = (twice + UNIT * UNIT // 2) // (UNIT * UNIT)
    return rounded
