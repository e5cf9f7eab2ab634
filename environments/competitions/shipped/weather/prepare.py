"""The data and the grade: the weather of a day, by temperature, wind and rain."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from langgraft.environments.competitions.shipped.making import (
    Integers,
    Source,
    decimal,
    noise,
    of_shipped,
    read_bytes,
    secret,
    split,
    write_table,
)
from langgraft.environments.competitions.shipped.metrics import log_loss

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

SOURCE: Final = Source(
    package="vega_datasets",
    version="0.9.0",
    module="vega_datasets",
    path="_data/seattle-weather.csv",
    sha256="62f0609f787158128aa2bd102967173a4953122dd4f872bf1d502cae1037df0b",
)
TEST: Final = 0.6
"""Of the days. With fewer, too few have fog or snow to tell the best teams from those in the middle."""
KINDS: Final = ("drizzle", "fog", "rain", "snow", "sun")
FEATURES: Final = ("month", "warmest", "coldest", "wind", "wetness")
WETNESS: Final = (("dry", 0.0), ("trace", 1.0), ("light", 5.0), ("heavy", 1000.0))
"""Names of wetness, and up to how many millimeters of rain each goes."""


def prepare_split(public: Path, private: Path, name: str) -> None:
    """Write the files of another split of the same source; `shipped` is the competition's own."""
    source = read_bytes(SOURCE)
    key = f"weather {name} {secret(source)}"
    days = list(csv.DictReader(source.decode().splitlines()))
    rows = _features(days, key)
    kinds = [day["weather"] for day in days]
    parts = split(key, kinds, TEST)
    train = [(number, *rows[row], kinds[row]) for number, row in enumerate(parts.train)]
    test = [(number, row) for number, row in enumerate(parts.test, len(train))]
    write_table(public / "train.csv", ("id", *FEATURES, "weather"), train)
    write_table(public / "test.csv", ("id", *FEATURES), [(n, *rows[row]) for n, row in test])
    write_table(
        public / "sample_submission.csv", ("id", *KINDS), [(n, *(["0.2"] * 5)) for n, _ in test]
    )
    write_table(
        private / "answers.csv", ("id", "weather"), [(number, kinds[row]) for number, row in test]
    )


prepare: Final = of_shipped(prepare_split)


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the multi-class log-loss of the day's weather; lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return log_loss(submission, answers, label="weather", classes=KINDS)


def _features(days: list[dict[str, str]], key: str) -> list[tuple[object, ...]]:
    """Write features with noise of about a third of their own spread, so that no day is found."""
    count = len(days)
    shift = noise(f"{key} date", count, 28)
    warmest = noise(f"{key} warmest", count, 600) + _hundredths(days, "temp_max")
    coldest = noise(f"{key} coldest", count, 480) + _hundredths(days, "temp_min")
    wind = noise(f"{key} wind", count, 150) + _hundredths(days, "wind")
    return [
        (
            _month(day["date"], int(shift[place])),
            decimal(int(warmest[place]) // 50 * 50),
            decimal(int(coldest[place]) // 50 * 50),
            decimal(max(0, int(wind[place])) // 20 * 20),
            next(word for word, most in WETNESS if float(day["precipitation"]) <= most),
        )
        for place, day in enumerate(days)
    ]


def _hundredths(days: list[dict[str, str]], column: str) -> Integers:
    return np.array([round(100 * float(day[column])) for day in days], dtype=np.int64)


def _month(date: str, shift: int) -> int:
    """Return the month, 1 to 12, of a date moved by some days, with months of 30 days."""
    _, month, day = map(int, date.split("/"))
    return ((month - 1) * 30 + min(day, 30) - 1 + shift) // 30 % 12 + 1
