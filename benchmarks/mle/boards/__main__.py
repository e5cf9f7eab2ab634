"""Make the boards of the competitions that ship: `python -m langgraft.benchmarks.mle.boards`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.mle.boards.boards import make_board
from langgraft.benchmarks.mle.boards.catalog import IDS, find
from langgraft.benchmarks.mle.boards.splits import prepared
from langgraft.benchmarks.mle.boards.writing import checksums, description, leaderboard
from langgraft.environments.competitions import shipped


def main(arguments: Sequence[str] | None = None) -> int:
    """Write `leaderboard.csv`, `board.json` and `checksums.yaml` of competitions."""
    parser = argparse.ArgumentParser(prog="python -m langgraft.benchmarks.mle.boards")
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
