"""Writes what a competition's folder holds of its board and of its data."""

import csv
import importlib.metadata
import io
import json
from pathlib import Path
from typing import Final

from langgraft.benchmarks.mle.boards.boards import Made, enter, predict
from langgraft.benchmarks.mle.boards.contests import Contest, Data
from langgraft.environments.competitions.checksums import folder_checksum, folder_checksums
from langgraft.environments.competitions.medals import medal

PACKAGES: Final = ("numpy", "scipy", "scikit-learn", "pandas", "pillow")
"""That scores depend on."""


def leaderboard(made: Made) -> str:
    """Return a `leaderboard.csv`: teams and scores, best first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("teamName", "score"))
    writer.writerows((entry.team, f"{entry.score:.5f}") for entry in made.entries)
    return text.getvalue()


def description(contest: Contest, data: Data, made: Made) -> str:
    """Return a `board.json`: how the board was made."""
    teams = {team.name: team for team in contest.teams}
    blends = {blend.name: blend for blend in contest.blends}
    held = contest.held_out
    score = enter(contest, data, held.name, predict(contest, data, held)).score
    found = {
        "made by": f"python -m langgraft.benchmarks.mle.boards {contest.id}",
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "training rows": len(data.labels),
        "test rows": len(data.truth),
        "teams": [
            {"team": entry.team, "score": entry.score}
            | (
                {"blend of": list(blends[entry.team].of)}
                if entry.team in blends
                else {"view": teams[entry.team].view, "share": teams[entry.team].share}
            )
            for entry in made.entries
        ],
        "held out": {"team": held.name, "score": score, "medal": medal(score, made.board)},
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def checksums(folder: Path) -> str:
    """Return a `checksums.yaml` of a prepared folder: its tables, and its folders of pictures."""
    lines = []
    for part in ("public", "private"):
        found = folder_checksums(folder / part)
        lines += [f"{part}:", *(f"  {name}: {checksum}" for name, checksum in found.items())]
    pictures = sorted(path for path in folder.glob("*/*") if path.is_dir())
    if pictures:
        named = [(path.relative_to(folder).as_posix(), folder_checksum(path)) for path in pictures]
        lines += ["folders:", *(f"  {name}: {checksum}" for name, checksum in named)]
    return "\n".join(lines) + "\n"
