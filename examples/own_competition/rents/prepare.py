"""Makes the data of the competition: flats and rents, from random numbers."""

from pathlib import Path

import numpy as np
import pandas as pd

DISTRICTS = {"center": 420, "harbor": 260, "hills": 180, "station": 60}
TRAIN, TEST = 600, 300
OLD = 1950
UNKNOWN = 0.1
"""Share of houses whose year nobody knows."""


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Write what everybody may see to `public`, and the answers to `private`."""
    del raw  # nothing was downloaded: the data is drawn
    flats = make_flats(np.random.default_rng(7))
    train, test = flats[:TRAIN], flats[TRAIN:]
    train.to_csv(public / "train.csv", index=False)
    test.drop(columns="rent").to_csv(public / "test.csv", index=False)
    answers = test[["id", "rent"]]
    answers.to_csv(private / "answers.csv", index=False)
    answers.assign(rent=850.0).to_csv(public / "sample_submission.csv", index=False)


def make_flats(random: np.random.Generator) -> pd.DataFrame:
    """Draw flats: what a rent is made of, and a part that nothing tells."""
    count = TRAIN + TEST
    area = random.uniform(22, 140, count).round(1)
    district = random.choice(list(DISTRICTS), count)
    year = random.integers(1890, 2025, count).astype(float)
    rent = 5.5 * area + np.vectorize(DISTRICTS.get)(district)
    rent += np.where(year < OLD, 70, 0) + 0.02 * (area - 80) ** 2 + random.normal(0, 45, count)
    year[random.random(count) < UNKNOWN] = np.nan
    return pd.DataFrame(
        {
            "id": np.arange(count),
            "area": area,
            "rooms": np.maximum(1, (area / 28 + random.normal(0, 0.4, count)).round()).astype(int),
            "floor": random.integers(0, 9, count),
            "district": district,
            "year": year,
            "rent": rent.round(2),
        }
    )
