"""A small competition of one's own: prices of 40 houses."""

from pathlib import Path
from typing import Any

import yaml

ID = "house-prices"

GRADE = """\
from langgraft.environments.competitions.graders import root_mean_squared_error

grade = root_mean_squared_error(id_column="id", target="price")
"""

PREPARE = """\
from pathlib import Path


def prepare(raw: Path, public: Path, private: Path) -> None:
    rows = [(n, n % 7, 10 * (n % 7) + n % 3) for n in range(100)]
    train, test = rows[:60], rows[60:]
    (public / "train.csv").write_text(table("id,rooms,price", train))
    (public / "test.csv").write_text(table("id,rooms", [row[:2] for row in test]))
    (public / "sample_submission.csv").write_text(table("id,price", [(row[0], 0) for row in test]))
    (private / "answers.csv").write_text(table("id,price", [(row[0], row[2]) for row in test]))


def table(header, rows):
    return "\\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\\n"
"""

CHECKSUMS = {
    "public": {
        "train.csv": "68bf908935316fbbb16a6c4c9da53301",
        "test.csv": "6ea3d321cc4bdc3db5db83c440840c44",
        "sample_submission.csv": "f921ba6a2e1b55af95d2da84bc7481a6",
    },
    "private": {"answers.csv": "bd4933b8ab3aa7c44a237a659f6d260b"},
}


def config(**changes: Any) -> dict[str, Any]:
    """Return what `config.yaml` holds; a change of `None` leaves a key out."""
    held: dict[str, Any] = {
        "id": ID,
        "name": "House prices",
        "competition_type": "simple",
        "description": "description.md",
        "dataset": {
            "answers": f"{ID}/prepared/private/answers.csv",
            "sample_submission": f"{ID}/prepared/public/sample_submission.csv",
        },
        "grader": {"name": "rmse", "grade_fn": "grade:grade"},
        "preparer": "prepare:prepare",
    }
    return {key: value for key, value in (held | changes).items() if value is not None}


def write_competition(place: Path, **changes: Any) -> Path:
    """Write the competition into a folder of competitions; return its own folder."""
    folder = place / ID
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config(**changes)))
    (folder / "description.md").write_text("# House prices\n\nTell what a house costs.\n")
    (folder / "grade.py").write_text(GRADE)
    (folder / "prepare.py").write_text(PREPARE)
    scores = [round(0.5 + 0.1 * team, 2) for team in range(20)]
    (folder / "leaderboard.csv").write_text("\n".join(["score", *map(str, scores)]) + "\n")
    return folder


def predictions(*, error: float = 0.0) -> str:
    """Return a submission that is off by so much in every row."""
    rows = [f"{n},{10 * (n % 7) + n % 3 + error}" for n in range(60, 100)]
    return "\n".join(["id,price", *rows]) + "\n"
