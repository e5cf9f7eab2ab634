"""Tables and pictures on disk, alike to the byte wherever they are made."""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from langgraft.environments.competitions.shipped.making.png import encode
from langgraft.environments.competitions.shipped.making.sources import Picture

WRITTEN: Final = 1_577_836_800
"""Time of last change of every file, in seconds: the first of January 2020."""


def write_table(file: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file; values are texts, integers, or decimals written out beforehand."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    _write(file, text.getvalue().encode())


def write_picture(file: Path, picture: Picture) -> None:
    """Write a gray PNG file."""
    _write(file, encode(picture))


def decimal(value: int, places: int = 2) -> str:
    """Write an integer number of hundredths (or other decimal places) as a decimal."""
    sign, size = "-" if value < 0 else "", 10**places
    return f"{sign}{abs(value) // size}.{abs(value) % size:0{places}d}"


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (WRITTEN, WRITTEN))
