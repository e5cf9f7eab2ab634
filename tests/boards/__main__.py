"""Make the boards of the competitions that ship: `make boards`."""

import argparse
import csv
import importlib.metadata
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from boards.boards import Made, enter, make_board, predict
from boards.catalog import IDS, find, prepared
from boards.contests import Contest, Data
from langgraft._core.errors import LanggraftError
from langgraft.environments.competitions import shipped
from langgraft.environments.competitions.competition import medal
from langgraft.environments.competitions.preparing import folder_checksum, folder_checksums

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
        "made by": f"make boards IDS={contest.id}",
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write `leaderboard.csv`, `board.json` and `checksums.yaml` of competitions."""
    parser = argparse.ArgumentParser(prog="boards", description=__doc__)
    parser.add_argument("competitions", nargs="*", metavar="ID", help="all that ship if none is")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(next(iter(shipped.__path__))),
        help="where a folder for each is; the competitions themselves if not said",
    )
    chosen = parser.parse_args(arguments)
    try:
        for competition in chosen.competitions or IDS:
            write(competition, chosen.out / competition)
            sys.stdout.write(f"{competition}: {chosen.out / competition}\n")
    except LanggraftError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def write(competition: str, folder: Path) -> None:
    """Make the board of the split that ships and write what belongs into a folder.

    Raises:
        InputError: If no competition that ships has this id.
        MissingExtraError: If a package that it is made from is not installed.
        CompetitionError: If such a package holds other data than known.
    """
    contest = find(competition)
    folder.mkdir(parents=True, exist_ok=True)
    with prepared(competition) as place:
        data = contest.load(place)
        made = make_board(contest, data)
        sums = checksums(place)
    (folder / "leaderboard.csv").write_text(leaderboard(made))
    (folder / "board.json").write_text(description(contest, data, made))
    (folder / "checksums.yaml").write_text(sums)


if __name__ == "__main__":
    sys.exit(main())
