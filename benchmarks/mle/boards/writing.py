"""Writes what a competition's folder holds of its board and of its data."""

import csv
import hashlib
import importlib.metadata
import io
import json
from pathlib import Path
from typing import Final

from langgraft.benchmarks.mle.boards.boards import Made, enter, predict
from langgraft.benchmarks.mle.boards.contests import Contest, Data
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
    """Return a `checksums.yaml` of all files of a prepared folder, those in folders as well."""
    lines = []
    for part in ("public", "private"):
        files = [path for path in (folder / part).rglob("*") if path.is_file()]
        named = {path.relative_to(folder / part).as_posix(): path for path in files}
        lines += [f"{part}:", *(f"  {name}: {_md5(named[name])}" for name in sorted(named))]
    return "\n".join(lines) + "\n"


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
