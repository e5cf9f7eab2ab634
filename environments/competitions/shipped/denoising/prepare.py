"""The data and the grade: pieces of pictures, with and without noise."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from langgraft.environments.competitions.shipped.making import (
    TURN,
    UNIT,
    Integers,
    Picture,
    View,
    look,
    noise,
    of_shipped,
    order,
    read_picture,
    secret,
    shade,
    skimage_picture,
    uniforms,
    write_picture,
    write_table,
)
from langgraft.environments.competitions.shipped.metrics import rmse

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

SOURCES: Final = (
    skimage_picture(
        "astronaut", "7605af19ba2b975845037d479d9429d3fbc334ff78c7b51f67f112d50f85ed65"
    ),
    skimage_picture("brick", "99a19145a42e52da5b5b773b8119c94ea04cf5c0242e95ffbaa0293713878bb7"),
    skimage_picture("camera", "bf98e824a0e89e0e5fc9883963758bfd21453203a3fb1f22a32c108d939ffac6"),
    skimage_picture("chelsea", "2a48da897e30584d1ae09abf8802730963e97735ab7f4ccede25b412ab11e5dd"),
    skimage_picture("coffee", "013a8175a6f60538e29aa8bee676f3e4b4c9a4388defc9a81368b20fc7b3fe9c"),
    skimage_picture("coins", "8b1c53f5b1e7777136997a7597388c6a234c1306d77175d0de5cbd8ec72b0c20"),
    skimage_picture("gravel", "53724b7da1e0a01104d6e14da4dd2ca65a3ead9a2a69f0eb6f20121f8bb7b2ec"),
    skimage_picture("ihc", "d5e9af0ebdb1dc92a7d75c8ab96cea1d3a319323027d0c7926060f8f4eba9519"),
    skimage_picture("moon", "64ad7f8b5a61c4211375ff1de6d705ad99857ba64c2f26f6d59f0c649c78776d"),
    skimage_picture(
        "motorcycle_left", "6a51b16e82babbafbffdff644108b2085a8ee609f08cfdc0d60bff950e42b6fc"
    ),
    skimage_picture("page", "47d001b9a0da87c9e6477b3aa21680047dd4d31ca3becf5865a51b3aa4af5da1"),
    skimage_picture("text", "09521942bc161daffa90a91b83128a62ba985e5957ae46b93879902ba2e4ac7d"),
)
SIZE: Final = 32
EACH: Final = 10
"""Pieces of each picture."""
TEST: Final = 4
"""Of them for the test."""


def prepare_split(public: Path, private: Path, name: str) -> None:
    """Write the files of another split of the same source; `shipped` is the competition's own."""
    pictures = [read_picture(source) for source in SOURCES]
    key = f"denoising {name} {secret(*(picture.tobytes() for picture in pictures))}"
    clean = [
        piece
        for source, picture in zip(SOURCES, pictures, strict=True)
        for piece in _pieces(picture, f"{key} {source.path}")
    ]
    noisy = _spoiled(np.stack(clean).astype(np.int64), key)
    shown = order(f"{key} order", len(clean))
    is_test = [place % EACH < TEST for place in shown.tolist()]
    train = list(enumerate(shown[[not it for it in is_test]].tolist()))
    test = list(enumerate(shown[is_test].tolist(), len(train)))
    for number, row in train:
        write_picture(public / "train" / f"{number}.png", noisy[row])
        write_picture(public / "train_clean" / f"{number}.png", clean[row])
    for number, row in test:
        write_picture(public / "test" / f"{number}.png", noisy[row])
    write_table(
        public / "sample_submission.csv",
        ("id", "value"),
        [(name, 128) for number, _ in test for name in _names(number)],
    )
    write_table(
        private / "answers.csv",
        ("id", "value"),
        [pixel for number, row in test for pixel in _named(number, clean[row])],
    )


prepare: Final = of_shipped(prepare_split)


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the root mean squared error of shades of gray, 0 to 255; lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return rmse(submission, answers, target="value")


def _pieces(picture: Picture, key: str) -> list[Picture]:
    """Cut pieces at any place, angle and scale from a picture, with new contrast.

    Windows reach at most 0.75 · SIZE · √2 pixels from their center.
    """
    height, width = picture.shape
    reach = 36
    rows = uniforms(f"{key} row", EACH, height - 2 * reach) + reach
    columns = uniforms(f"{key} column", EACH, width - 2 * reach) + reach
    angles = uniforms(f"{key} angle", EACH, TURN)
    scales = uniforms(f"{key} scale", EACH, 700) + 800
    gains = uniforms(f"{key} gain", EACH, 60) + 60
    pieces = []
    for place in range(EACH):
        view = View(
            int(rows[place]) * UNIT,
            int(columns[place]) * UNIT,
            int(angles[place]),
            int(scales[place]),
        )
        values = look(picture, view, SIZE)
        pieces.append(
            shade(128 + (values - int(values.sum()) // values.size) * int(gains[place]) // 100)
        )
    return pieces


def _spoiled(clean: Integers, key: str) -> list[Picture]:
    """Add normal noise, and set every twentieth pixel or so to black or white."""
    noisy = clean + noise(f"{key} noise", clean.size, 22).reshape(clean.shape)
    fate = uniforms(f"{key} fate", clean.size, 40).reshape(clean.shape)
    noisy = np.where(fate == 0, 0, np.where(fate == 1, 255, noisy))
    return [shade(piece) for piece in noisy]


def _named(number: int, picture: Picture) -> Iterable[tuple[str, int]]:
    return zip(_names(number), picture.ravel().tolist(), strict=True)


def _names(number: int) -> list[str]:
    """Name a picture's pixels `<picture>_<row>_<column>`, row by row."""
    return [f"{number}_{row}_{column}" for row in range(SIZE) for column in range(SIZE)]
