"""The data and the grade: small noisy patches of three surfaces, at any angle."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from langgraft.environments.competitions.shipped.making import (
    TURN,
    UNIT,
    Integers,
    Picture,
    View,
    look,
    noise,
    of_shipped,
    read_picture,
    secret,
    shade,
    skimage_picture,
    split,
    uniforms,
    write_picture,
    write_table,
)
from langgraft.environments.competitions.shipped.metrics import log_loss

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd

SOURCES: Final = (
    skimage_picture("brick", "99a19145a42e52da5b5b773b8119c94ea04cf5c0242e95ffbaa0293713878bb7"),
    skimage_picture("grass", "4893a5041b9268d1c29dcc9cdf6e79f40c66c5c37f3c7a5c0dcfecfa3e73bb50"),
    skimage_picture("gravel", "53724b7da1e0a01104d6e14da4dd2ca65a3ead9a2a69f0eb6f20121f8bb7b2ec"),
)
TEST: Final = 0.4
EACH: Final = 700
"""Patches of each surface."""
SIZE: Final = 20
CLASSES: Final = ("surface_a", "surface_b", "surface_c")


def prepare_split(public: Path, private: Path, name: str) -> None:
    """Write the files of another split of the same source; `shipped` is the competition's own."""
    surfaces = [read_picture(source) for source in SOURCES]
    key = f"textures {name} {secret(*(surface.tobytes() for surface in surfaces))}"
    labels = [label for label in CLASSES for _ in range(EACH)]
    patches = [
        patch
        for label, surface in zip(CLASSES, surfaces, strict=True)
        for patch in _patches(surface, f"{key} {label}")
    ]
    parts = split(key, labels, TEST)
    train = [(number, row) for number, row in enumerate(parts.train)]
    test = [(number, row) for number, row in enumerate(parts.test, len(train))]
    for folder, rows in (("train", train), ("test", test)):
        for number, row in rows:
            write_picture(public / folder / f"{number}.png", patches[row])
    write_table(public / "train.csv", ("id", "surface"), [(n, labels[row]) for n, row in train])
    write_table(
        public / "sample_submission.csv",
        ("id", *CLASSES),
        [(number, "0.334", "0.333", "0.333") for number, _ in test],
    )
    write_table(private / "answers.csv", ("id", "surface"), [(n, labels[row]) for n, row in test])


prepare: Final = of_shipped(prepare_split)


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the multi-class log-loss of the surface on a picture; lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return log_loss(submission, answers, label="surface", classes=CLASSES)


def _patches(surface: Picture, key: str) -> list[Picture]:
    """Cut patches at any place and angle, even out their brightness and contrast, add noise."""
    inside = 512 - 2 * SIZE
    places = uniforms(f"{key} place", 2 * EACH, inside * UNIT // 16) * 16 + SIZE * UNIT
    angles = uniforms(f"{key} angle", EACH, TURN)
    blur = noise(f"{key} noise", EACH * SIZE * SIZE, 24).reshape(EACH, SIZE, SIZE)
    patches = []
    for place in range(EACH):
        view = View(int(places[2 * place]), int(places[2 * place + 1]), int(angles[place]))
        patches.append(shade(128 + _evened(look(surface, view, SIZE)) + blur[place]))
    return patches


def _evened(patch: Integers) -> Integers:
    """Bring a patch to mean 0 and a mean absolute deviation of 32, in integers."""
    centered = patch * patch.size - patch.sum()
    spread = max(1, int(abs(centered).sum()) // patch.size)
    evened: Integers = centered * 32 // spread
    return evened
