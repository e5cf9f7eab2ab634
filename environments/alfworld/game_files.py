"""Released games as files: a tree, as `alfworld-download` makes one, in a folder or a `.tar.xz`, or a pack.

A tree is `json_2.1.x/<split>/<task>/<trial>/game.tw-pddl`. What ALFWorld leaves out is left out:
tasks with a movable receptacle or a sliced thing, folders without a game file, unsolvable games.

A pack is all games of a release in one file, `games-*.jsonl.xz`. The first line holds what the games
share (`pddl_domain`, `grammar` with `UNKNOWN GOAL`, and `n`, their number); each further line is one
game (`split`, `task`, `trial`, `desc`, `problem`, `walkthrough`).
"""

import json
import lzma
import os
import re
import tarfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol

from typing_extensions import override

from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld.reading import (
    LARGEST_FILE,
    UNKNOWN_GOAL,
    Folder,
    LeftOutError,
    check_solvable,
    parse_game,
)
from langgraft.environments.alfworld.released import OWN_SPLITS, Entry, Listing, ReleasedLibrary

HOW_TO_GET_GAMES: Final = (
    "get them with `alfworld-download` (of the package alfworld) and set ALFWORLD_DATA to the"
    " folder it fills; generated games (tasks of alfworld-generated) need none"
)

GAME_FILE: Final = "game.tw-pddl"
MOST_MEMBERS: Final = 200_000

RELEASE: Final = re.compile(r"json_\d{1,4}\.\d{1,4}\.\d{1,4}", re.ASCII)
_TRIAL_DEPTH: Final = 4
"""A trial's folder is release / split / task / trial."""
_GAME: Final = (GAME_FILE,)

MOST_GAMES: Final = 50_000
_TEXTS: Final = ("split", "task", "trial", "desc", "problem")


def open_library() -> ReleasedLibrary:
    """Open the released games: of `ALFWORLD_DATA`, else of the folder `alfworld` in `LANGGRAFT_DATA`.

    The first is a folder that `alfworld-download` filled, or a file as the second may hold: a pack
    (`games-*.jsonl.xz`), such a tree, or one in a `games-*.tar.xz`; they are looked for in this
    order, and of several the last by name is taken.

    Raises:
        SettingsError: There are no games.
        GameError: They are damaged.
    """
    path = find_games()
    with _told_of(path):
        return PackLibrary(path) if path.name.endswith(".jsonl.xz") else TreeLibrary(path)


def find_games() -> Path:
    """Find the released games where `open_library` opens them; no game is read.

    Raises:
        SettingsError: There are none.
        GameError: Their folder cannot be listed.
    """
    own, shared = _own(), os.environ.get("LANGGRAFT_DATA")
    if own is not None:
        with _told_of(own):
            if _is_folder(own):
                choose_release(_names_in(own), None, own)
            elif _is_absent(own):
                raise SettingsError(f"there is nothing at {own}")
        return own
    if shared and (found := _in_folder(Path(shared) / "alfworld")):
        return found
    where = "ALFWORLD_DATA or LANGGRAFT_DATA/alfworld"
    raise SettingsError(f"there are no ALFWorld games in {where}: {HOW_TO_GET_GAMES}")


def _own() -> Path | None:
    """Return what `ALFWORLD_DATA` names, unless the package itself set it, to what nobody filled."""
    named = os.environ.get("ALFWORLD_DATA")
    if named and (_holds_tree(Path(named)) or not _set_by_alfworld(named)):
        return Path(named).expanduser()
    return None


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        if path != _own():
            raise
        raise SettingsError(f"ALFWORLD_DATA leads to no games: {error}") from error


def _in_folder(folder: Path) -> Path | None:
    if packs := sorted(folder.glob("games-*.jsonl.xz")):
        return packs[-1]
    if _holds_tree(folder):
        return folder
    return max(folder.glob("games-*.tar.xz"), default=None)


def _holds_tree(folder: Path) -> bool:
    try:
        return any(RELEASE.fullmatch(path.name) for path in folder.iterdir())
    except OSError:  # who reads it says why
        return False


def _set_by_alfworld(folder: str) -> bool:
    """Return whether it may be the package that set the variable: it does when imported."""
    return Path(folder) == Path("~/.cache/alfworld").expanduser()


class _Files(Protocol):
    """The files of a tree."""

    place: str
    """What the release is called in messages."""

    def folders(self) -> Iterable[Folder]:
        """Return the folders of trials, in an order that depends on their names alone."""
        ...

    def source(self, folder: Folder) -> str:
        """Return what a folder's game file is called in messages."""
        ...

    def read(self, folder: Folder) -> bytes | None:
        """Return a folder's game file; `None` where it has none."""
        ...


class TreeLibrary(ReleasedLibrary):
    """The games of a tree.

        games = TreeLibrary("~/.cache/alfworld")  # what alfworld-download filled
        games = TreeLibrary("data/alfworld/games-2.1.1-put.tar.xz")

    A family's files are read when it is first asked for.

    Args:
        path: The folder that holds `json_2.1.x`, or a `.tar.xz` of such a tree.
        release: The name of the `json_2.1.x` folder; `None` takes the newest there is.

    Raises:
        SettingsError: There are no games.
        GameError: The archive is damaged.
    """

    def __init__(self, path: str | Path, release: str | None = None) -> None:
        path = Path(path).expanduser()
        self._files: _Files = (
            _InFolder(path, release) if _is_folder(path) else _InArchive(path, release)
        )
        self._trials: dict[str | None, list[Folder]] = defaultdict(list)
        for folder in self._files.folders():
            self._trials[folder.family].append(folder)
        if not self._trials:
            where, splits = self._files.place, ", ".join(OWN_SPLITS)
            raise SettingsError(
                f"{where} holds no ALFWorld games in {splits}; get them with alfworld-download"
            )
        super().__init__(str(path), {f.split for folders in self._trials.values() for f in folders})

    @override
    def _list(self, family: str | None) -> Listing:
        listing = Listing()
        for folder in self._trials[family]:
            data = partial(self._data, folder)
            entry = Entry(folder.split, self._files.source(folder), data)
            listing.add(folder, entry, partial(self._check, folder))
        return listing

    def _check(self, folder: Folder) -> None:
        file = self._files.read(folder)
        if file is None:
            raise LeftOutError("has no game file")
        check_solvable(parse_game(file, self._files.source(folder)))

    def _data(self, folder: Folder) -> dict[str, Any]:
        source = self._files.source(folder)
        file = self._files.read(folder)
        if file is None:
            raise GameError("the folder has no game file", source=source)
        return parse_game(file, source)


class _InFolder:
    """A tree that lies in a folder."""

    def __init__(self, path: Path, release: str | None) -> None:
        self._path = path / choose_release(_names_in(path), release, path)
        self.place = str(self._path)

    def folders(self) -> Iterator[Folder]:
        for split in OWN_SPLITS:
            for task in _names_in(self._path / split):
                for trial in _names_in(self._path / split / task):
                    yield Folder(split, task, trial)

    def source(self, folder: Folder) -> str:
        return str(self._path / folder.split / folder.task / folder.trial / GAME_FILE)

    def read(self, folder: Folder) -> bytes | None:
        try:
            with Path(self.source(folder)).open("rb") as file:
                return file.read(LARGEST_FILE + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise GameError(f"cannot be read ({error})", source=self.source(folder)) from error


class _InArchive:
    """A tree in a `.tar.xz`; its game files are kept in memory, packed (340 take some 3 MB)."""

    def __init__(self, path: Path, release: str | None) -> None:
        self._path = path
        files: dict[str, dict[Folder, bytes | None]] = defaultdict(dict)
        for parts, data in _members(path):
            folder = Folder(*parts[1:4])
            if data is not None or folder not in files[parts[0]]:
                files[parts[0]][folder] = data
        self._release = choose_release(files, release, path)
        self._files = files[self._release]
        self.place = f"{path}, {self._release}"

    def folders(self) -> list[Folder]:
        return sorted(self._files, key=lambda f: (OWN_SPLITS.index(f.split), f.task, f.trial))

    def source(self, folder: Folder) -> str:
        inside = PurePosixPath(self._release, folder.split, folder.task, folder.trial, GAME_FILE)
        return f"{self._path}, {inside}"

    def read(self, folder: Folder) -> bytes | None:
        packed = self._files[folder]
        return None if packed is None else zlib.decompress(packed)


def choose_release(there: Iterable[str], release: str | None, path: Path) -> str:
    """Return the name of the folder that holds a release's games.

    Raises:
        SettingsError: There is none, or not the one asked for.
    """
    found = sorted((name for name in there if RELEASE.fullmatch(name)), key=_version)
    if release is None and found:
        return found[-1]
    if release is not None and release in found:
        return release
    wanted = "json_2.1.x" if release is None else release
    if found:
        todo = f"it holds {', '.join(found)}"
    elif above := [each.parent for each in (path, *path.parents) if RELEASE.fullmatch(each.name)]:
        todo = f"it is a part of such a folder: give {above[-1]} in its place"
    else:
        todo = "fill it with alfworld-download"
    raise SettingsError(f"{path} holds no folder {wanted} of ALFWorld games; {todo}")


def _version(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # it may not be looked at: who reads it says why
        return False


def _is_absent(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:  # as above
        return False


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise GameError(f"cannot be listed ({error})", source=str(folder)) from error


def _members(path: Path) -> Iterator[tuple[tuple[str, ...], bytes | None]]:
    """Yield the parts of each path below a release, with the file where it is a game's, packed."""
    try:
        with lzma.open(path) as file, tarfile.open(fileobj=file, mode="r|") as archive:
            for count, member in enumerate(archive):
                if count >= MOST_MEMBERS:
                    raise GameError(f"has more than {MOST_MEMBERS} files", source=str(path))
                parts = PurePosixPath(member.name).parts
                if len(parts) < _TRIAL_DEPTH or parts[1] not in OWN_SPLITS:
                    continue
                yield parts, _packed(archive, member) if parts[_TRIAL_DEPTH:] == _GAME else None
            while file.read(1_000_000):  # what is cut off or changed shows at the stream's end
                pass
    except FileNotFoundError as error:
        raise SettingsError(f"there is no tree of ALFWorld games at {path}") from error
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        msg = f"cannot be read as a `.tar.xz` of ALFWorld games ({error}); get it anew"
        raise GameError(msg, source=str(path)) from error


def _packed(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | None:
    file = archive.extractfile(member) if member.isfile() else None
    return zlib.compress(file.read(LARGEST_FILE + 1), 1) if file else None


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


def agentgym_tasks(path: str | Path) -> dict[int, str]:
    """Return item id → task id (`alfworld/<family>/<trial>`) of one of AgentGym's mapping files.

        tasks = agentgym_tasks("mappings_test.json")
        episode = ALFWorld(TreeLibrary("games-2.1.1-put.tar.xz"))(tasks[2420])

    Args:
        path: The file, such as `mappings_test.json`.

    Raises:
        SettingsError: There is no such file.
        GameError: It is not such a mapping.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"no mapping of AgentGym's items at {path} ({error})") from error
    items = parse_game(b'{"items":' + text + b"}", str(path))["items"]
    if not isinstance(items, list):
        raise GameError("is not a list of items", source=str(path))
    return dict(_task(item, f"{path}, item {count}") for count, item in enumerate(items, start=1))


def _task(item: Any, source: str) -> tuple[int, str]:
    match item:
        case {"item_id": int(number), "task_type": str(task), "task_id": str(trial)}:
            folder = Folder("train", task, trial)
        case _:
            raise GameError("is not an item with item_id, task_type and task_id", source=source)
    try:
        folder.check()
    except LeftOutError as reason:
        raise GameError(f"the game {reason}", source=source) from reason
    return number, f"alfworld/{folder.family}/{trial}"
