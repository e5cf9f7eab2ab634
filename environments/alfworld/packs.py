"""A pack: the games of a release in one file, `games-*.jsonl.xz`.

The first line holds what the games share (`pddl_domain`, `grammar` with `UNKNOWN GOAL`, and `n`,
their number); each further line is one game (`split`, `task`, `trial`, `desc`, `problem`,
`walkthrough`).
"""

import json
import lzma
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld.reading import LARGEST_FILE, Folder, parse_game
from langgraft.environments.alfworld.released import OWN_SPLITS, Entry, Listing, ReleasedLibrary
from langgraft.environments.alfworld.rules import UNKNOWN_GOAL

MOST_GAMES: Final = 50_000
_TEXTS: Final = ("split", "task", "trial", "desc", "problem")


class PackLibrary(ReleasedLibrary):
    """The games of a pack; reading one takes a second or two, and then some 30 MB.

        games = PackLibrary("data/alfworld/games-2.1.2.jsonl.xz")
        game = games.find("pick_and_place", games.names("pick_and_place", "test")[0])

    Raises:
        SettingsError: There is no such file.
        GameError: It is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path).expanduser()
        self._lists: dict[str | None, Listing] = defaultdict(Listing)
        splits = set()
        for folder, entry in _entries(path):
            splits.add(folder.split)
            self._lists[folder.family].add(folder, entry)
        super().__init__(str(path), splits)

    @override
    def _list(self, family: str | None) -> Listing:
        return self._lists[family]


def _entries(path: Path) -> Iterator[tuple[Folder, Entry]]:
    lines = _lines(path)
    header = _header(next(lines, b""), f"{path}, row 1")
    count = 0
    for count, line in enumerate(lines, start=1):
        source = f"{path}, row {count + 1}"
        if count > MOST_GAMES:
            raise GameError(f"has more than {MOST_GAMES} games", source=str(path))
        row = parse_game(line, source)
        _check_row(row, source)
        data = partial(_unpack, header, zlib.compress(line, 1))
        folder = Folder(row["split"], row["task"], row["trial"])
        yield folder, Entry(row["split"], source, data)
    if count != header["n"]:
        raise GameError(f"holds {count} of {header['n']} games; get it anew", source=str(path))


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with lzma.open(path) as file:
            while line := file.readline(LARGEST_FILE + 1):
                yield line
    except FileNotFoundError as error:
        raise SettingsError(f"there is no pack of ALFWorld games at {path}") from error
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise GameError(f"cannot be read ({error}); get it anew", source=str(path)) from error


def _header(line: bytes, source: str) -> dict[str, Any]:
    header = parse_game(line, source)
    texts = all(isinstance(header.get(key), str) for key in ("pddl_domain", "grammar"))
    if not texts or type(header.get("n")) is not int:
        raise GameError("does not begin with a domain, a grammar and `n`", source=source)
    return header


def _check_row(row: Mapping[str, Any], source: str) -> None:
    for key in _TEXTS:
        if not isinstance(row.get(key), str):
            raise GameError(f"the game has no text under {key!r}", source=source)
    if row["split"] not in OWN_SPLITS:
        raise GameError(
            f"the game's split is {row['split'][:40]!r}, none of {', '.join(OWN_SPLITS)}",
            source=source,
        )


def _unpack(header: Mapping[str, Any], packed: bytes) -> dict[str, Any]:
    row = json.loads(zlib.decompress(packed))
    return {
        "pddl_domain": header["pddl_domain"],
        "grammar": header["grammar"].replace(UNKNOWN_GOAL, row["desc"]),
        "pddl_problem": row["problem"],
        "solvable": True,
        "walkthrough": row.get("walkthrough", []),
    }
