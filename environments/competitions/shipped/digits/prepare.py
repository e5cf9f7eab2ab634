"""The data and the grade: small pictures of digits written by hand, turned, moved and noisy."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from langgraft.environments.competitions.shipped.making import (
    UNIT,
    Integers,
    Picture,
    Source,
    View,
    look,
    noise,
    of_shipped,
    read_bytes,
    secret,
    shade,
    split,
    uniforms,
    write_picture,
    write_table,
)
from langgraft.environments.competitions.shipped.metrics import accuracy

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

SOURCE: Final = Source(
    package="scikit-learn",
    version="1.9.1",
    module="sklearn",
    path="datasets/data/digits.csv.gz",
    sha256="6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8",
)
TEST: Final = 0.4
SIZE: Final = 16
"""Pixels along each side; the source has 8."""


def prepare_split(public: Path, private: Path, name: str) -> None:
    """Write the files of another split of the same source; `shipped` is the competition's own."""
    source = read_bytes(SOURCE)
    key = f"digits {name} {secret(source)}"
    lines = [line.split(",") for line in source.decode().split()]
    values = np.array([[round(float(value)) for value in line] for line in lines], dtype=np.int64)
    labels = values[:, -1].tolist()
    pictures = _drawn_anew(values[:, :-1].reshape(-1, 8, 8), key)
    parts = split(key, labels, TEST)
    train = [(number, row) for number, row in enumerate(parts.train)]
    test = [(number, row) for number, row in enumerate(parts.test, len(train))]
    for folder, rows in (("train", train), ("test", test)):
        for number, row in rows:
            write_picture(public / folder / f"{number}.png", pictures[row])
    write_table(public / "train.csv", ("id", "digit"), [(n, labels[row]) for n, row in train])
    write_table(
        public / "sample_submission.csv",
        ("id", "digit"),
        [(number, 0) for number, _ in test],
    )
    write_table(private / "answers.csv", ("id", "digit"), [(n, labels[row]) for n, row in test])


prepare: Final = of_shipped(prepare_split)


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the share of pictures whose digit is right; higher is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return accuracy(submission, answers, target="digit")


def _drawn_anew(sources: Integers, key: str) -> list[Picture]:
    """Turn by up to 25 degrees, move by up to a pixel of the source, and add strong noise."""
    count = len(sources)
    angles = uniforms(f"{key} angle", count, 11) - 5
    moves = uniforms(f"{key} move", 2 * count, 2 * UNIT) - UNIT
    scales = uniforms(f"{key} scale", count, 160) + 520
    blur = noise(f"{key} noise", count * SIZE * SIZE, 34).reshape(count, SIZE, SIZE)
    middle = 7 * UNIT // 2
    return [
        shade(
            30
            + 10
            * look(
                np.pad(source, 2),
                View(
                    2 * UNIT + middle + int(moves[2 * place]),
                    2 * UNIT + middle + int(moves[2 * place + 1]),
                    int(angles[place]),
                    int(scales[place]),
                ),
                SIZE,
            )
            + blur[place]
        )
        for place, source in enumerate(sources)
    ]
