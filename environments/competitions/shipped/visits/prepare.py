"""The data and the grade: how often people see a doctor, by what their insurance pays and their health."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Final

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
from langgraft.environments.competitions.shipped.metrics import rmsle

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

SOURCE: Final = Source(
    package="statsmodels",
    version="0.15.0",
    module="statsmodels",
    path="datasets/randhie/randhie.csv",
    sha256="9f6c87d05aef087a82cc4465310c8cd3f38327be6eafa43bd81fb98c4f3d088c",
)
TEST: Final = 0.4
FEATURES: Final = (
    "plan_level",
    "deductible",
    "incentive",
    "spending_cap",
    "limited",
    "illness",
    "health",
)
HEALTH: Final = {"000": "excellent", "100": "good", "010": "fair", "001": "poor"}


def prepare_split(public: Path, private: Path, name: str) -> None:
    """Write the files of another split of the same source; `shipped` is the competition's own."""
    source = read_bytes(SOURCE)
    key = f"visits {name} {secret(source)}"
    lines = list(csv.DictReader(source.decode().splitlines()))
    rows = _features(lines, key)
    visits = [int(line["mdvis"]) for line in lines]
    parts = split(key, [min(count, 8) for count in visits], TEST)
    train = [(number, *rows[row], visits[row]) for number, row in enumerate(parts.train)]
    test = [(number, row) for number, row in enumerate(parts.test, len(train))]
    write_table(public / "train.csv", ("id", *FEATURES, "visits"), train)
    write_table(public / "test.csv", ("id", *FEATURES), [(n, *rows[row]) for n, row in test])
    write_table(
        public / "sample_submission.csv", ("id", "visits"), [(number, 0) for number, _ in test]
    )
    write_table(
        private / "answers.csv", ("id", "visits"), [(number, visits[row]) for number, row in test]
    )


prepare: Final = of_shipped(prepare_split)


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the root mean squared logarithmic error of visits in a year, as ln(1 + visits); lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return rmsle(submission, answers, target="visits")


def _features(lines: list[dict[str, str]], key: str) -> list[tuple[object, ...]]:
    """Write features coarser than in the source, and with noise, so that no row is its own key."""
    levels = sorted({line["lncoins"] for line in lines}, key=float)
    incentive = _blurred(_thousandths(lines, "lpi"), f"{key} incentive", 300, 50)
    cap = _blurred(_thousandths(lines, "fmde"), f"{key} cap", 300, 50)
    illness = _blurred(_thousandths(lines, "disea"), f"{key} illness", 1200, 250)
    return [
        (
            levels.index(line["lncoins"]),
            line["idp"],
            decimal(incentive[place] if float(line["lpi"]) else 0),
            decimal(cap[place] if float(line["fmde"]) else 0),
            int(float(line["physlm"]) >= 0.5),  # noqa: PLR2004  (imputed values lie between)
            decimal(illness[place]),
            HEALTH[line["hlthg"] + line["hlthf"] + line["hlthp"]],
        )
        for place, line in enumerate(lines)
    ]


def _thousandths(lines: list[dict[str, str]], column: str) -> list[int]:
    return [round(1000 * float(line[column])) for line in lines]


def _blurred(values: list[int], key: str, deviation: int, grid: int) -> list[int]:
    """Add noise to thousandths, round them to a grid above zero, and return hundredths."""
    blur: Integers = noise(key, len(values), deviation)
    return [
        max(grid, (value + int(more) + grid // 2) // grid * grid) // 10
        for value, more in zip(values, blur, strict=True)
    ]
