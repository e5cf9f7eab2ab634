"""Reads prepared competitions as their competitors do: tables and pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langgraft._core.extras import require

Floats = NDArray[np.float64]


def read_table(file: Path) -> Any:
    """Read a CSV file."""
    pandas = require("pandas", extra="mle", purpose="Making a board")
    return pandas.read_csv(file)


def read_pictures(folder: Path, numbers: Sequence[int]) -> Floats:
    """Read gray pictures `<number>.png`, as shades from 0 to 255: picture, row, column."""
    pillow = require("PIL.Image", extra="mle", purpose="Making a board")
    pictures = []
    for number in numbers:
        with pillow.open(folder / f"{number}.png") as picture:
            pictures.append(np.asarray(picture, dtype=np.float64))
    return np.stack(pictures)


def places(values: Sequence[str], classes: Sequence[str]) -> NDArray[np.int64]:
    """Return classes as their positions."""
    known = {name: place for place, name in enumerate(classes)}
    return np.array([known[str(value)] for value in values], dtype=np.int64)
