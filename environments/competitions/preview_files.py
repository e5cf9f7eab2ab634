"""The list of a competition's files, for its preview; and the beginning of one of them."""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

READABLE: Final = (
    ".csv",
    ".tsv",
    ".json",
    ".geojson",
    ".jsonl",
    ".ndjson",
    ".txt",
    ".md",
    ".rst",
    ".yaml",
    ".yml",
)
"""Endings of files that a preview looks into; where there are many, the first kinds are listed."""

_SHOWN: Final = 8
"""Files of a folder, and folders of it, that are listed by name, as in AIDE."""
_SHOWN_OF_MANY: Final = 4
_MANY: Final = 30
"""A folder with more entries shows fewer of them."""
_READABLE_SHOWN: Final = 12
_DEPTH: Final = 4
"""Folders within folders that are looked into."""
_COUNTED: Final = 64 * 2**20
"""Bytes of a text up to which its lines are counted."""
_LONGEST_NAME: Final = 60


@dataclass(slots=True)
class Tree:
    """A folder's files, as a preview lists them."""

    lines: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    """Those listed by name that a preview can look into."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of a file, as text."""

    text: str
    whole: bool
    """Whether it is all there is."""
    encoding: str


def walk(folder: Path) -> Tree:
    """List a folder: names in their natural order, sizes, and lines of texts.

    Raises:
        OSError: The folder cannot be listed; folders in it that cannot be are said to be so.
    """
    tree = Tree()
    _list(tree, folder, _entries(folder), depth=1)
    return tree


def plain(text: str, most: int = _LONGEST_NAME) -> str:
    """Return a name or value in one line: white space folded, what is not printable replaced."""
    encodable = " ".join(text.split()).encode("utf-8", "replace").decode("utf-8")
    line = "".join(each if each.isprintable() else "\ufffd" for each in encodable)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def read_beginning(path: Path, most: int) -> Beginning:
    """Read the first bytes of a regular file as text, up to the end of a line.

    UTF-8, UTF-16 where the file begins by saying so, and else Latin-1, which anything can be
    read as.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is no regular file")
        data = file.read(most + 1)
    whole = len(data) <= most
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Beginning(data[:most].decode("utf-16", "replace"), whole, "UTF-16")
    if not whole:
        end = data.rfind(b"\n", 0, most)
        data = data[: end + 1] if end >= 0 else data[:most]
    try:
        return Beginning(data.decode("utf-8-sig"), whole, "UTF-8")
    except UnicodeDecodeError:
        return Beginning(data.decode("latin-1"), whole, "Latin-1")


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: _natural(entry.name))


def _ending(entry: os.DirEntry[str]) -> str:
    return Path(entry.name).suffix.lower()


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Order `2.png` before `10.png`; equal keys fall back on the name."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], name


def _list(tree: Tree, folder: Path, entries: Sequence[os.DirEntry[str]], *, depth: int) -> None:
    """List a folder: what can be looked into first, then other files, then folders."""
    indent = "  " * depth
    most = _SHOWN_OF_MANY if len(entries) > _MANY else _SHOWN
    folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    files = [entry for entry in entries if not entry.is_dir(follow_symlinks=False)]
    readable = [entry for entry in files if _ending(entry) in READABLE]
    others = [entry for entry in files if _ending(entry) not in READABLE]
    first = sorted(readable, key=lambda entry: READABLE.index(_ending(entry)))  # stable
    named = set(first[:_READABLE_SHOWN])
    for entry in (*(each for each in readable if each in named), *others[:most]):
        tree.lines.append(f"{indent}{plain(entry.name)} {_about(entry)}")
        if entry in named and entry.is_file(follow_symlinks=False):
            tree.files.append(folder / entry.name)
    hidden = max(0, len(readable) - _READABLE_SHOWN) + max(0, len(others) - most)
    if hidden:
        tree.lines.append(f"{indent}… {hidden:,} more {'file' if hidden == 1 else 'files'}")
    for entry in folders[:most]:
        _list_inner(tree, folder / entry.name, depth=depth)
    if len(folders) > most:
        tree.lines.append(f"{indent}… {len(folders) - most:,} more folders")


def _list_inner(tree: Tree, folder: Path, *, depth: int) -> None:
    named = f"{'  ' * depth}{plain(folder.name)}/"
    try:
        entries = _entries(folder)
    except OSError as error:
        tree.lines.append(f"{named} (cannot be listed: {error.strerror})")
        return
    tree.lines.append(f"{named} ({_counted(entries)})")
    if depth < _DEPTH:
        _list(tree, folder, entries, depth=depth + 1)


def _counted(entries: Sequence[os.DirEntry[str]]) -> str:
    """Count a folder's files by their endings, and its folders."""
    files = [entry for entry in entries if not entry.is_dir(follow_symlinks=False)]
    folders = len(entries) - len(files)
    kinds = Counter(_ending(entry) or "no ending" for entry in files)
    common = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))[:3]
    listed = ", ".join(f"{count:,} {plain(kind, 12)}" for kind, count in common)
    parts = [f"{len(files):,} {'file' if len(files) == 1 else 'files'}: {listed}"] if files else []
    parts += [f"{folders:,} {'folder' if folders == 1 else 'folders'}"] if folders else []
    return "; ".join(parts) or "empty"


def _about(entry: os.DirEntry[str]) -> str:
    """Say what is known of a file without looking into it, and of a text its lines."""
    if entry.is_symlink():
        return "(a link, not followed)"
    try:
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            return "(no regular file)"
        if _ending(entry) in READABLE and status.st_size <= _COUNTED:
            lines = sum(_pieces(Path(entry.path)))
            return f"({lines:,} {'line' if lines == 1 else 'lines'}, {size(status.st_size)})"
    except OSError as error:
        return f"(cannot be read: {error.strerror})"
    return f"({size(status.st_size)})"


def _pieces(path: Path) -> Iterator[int]:
    """Yield numbers of lines; a last one without an end counts."""
    last = b"\n"
    with path.open("rb") as file:
        while piece := file.read(2**20):
            yield piece.count(b"\n")
            last = piece[-1:]
    yield int(last != b"\n")


def size(count: int) -> str:
    """Write a number of bytes as people do."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} {'byte' if count == 1 else 'bytes'}"
