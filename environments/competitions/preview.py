"""What a prompt says of a competition's data: its files, columns and shapes, within a bound.

    Files in ./input:
      sample_submission.csv (720 lines, 5.0 kB)
      test/ (719 files: 719 .png)
        1078.png (160 bytes)
        … 718 more files

    sample_submission.csv: 719 rows, 2 columns
      id: whole numbers, 1078 to 1796, all different
      digit: whole numbers, only 0

It is made anew for each search, so nothing in it differs between two looks at the same files, and
nothing in it takes long: of a large file only the beginning is read, and the preview says so.
Links are named and never followed.
"""

import csv
import io
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.attempts import INPUT
from langgraft.environments.competitions.layout import DESCRIPTION

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

ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
"""Endings of archives, which programs may find unpacked (`archives`)."""

_SHOWN: Final = 8
"""Files of a folder, and folders of it, that are listed by name, as in AIDE."""
_SHOWN_OF_MANY: Final = 4
_MANY: Final = 30
"""A folder with more entries shows fewer of them."""
_READABLE_SHOWN: Final = 12
_DEPTH: Final = 4
"""Folders within folders that are looked into."""
_LISTED: Final = 250_000
"""Entries of a folder that are looked at; the largest of MLE-bench's lite ones has 174,464."""
_COUNTED: Final = 64 * 2**20
"""Bytes of a text up to which its lines are counted."""
_LONGEST_NAME: Final = 60


@dataclass(slots=True)
class Tree:
    """A folder's files, as a preview lists them."""

    lines: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    """Those listed by name that a preview can look into."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What is said of files besides, by their paths."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of a file, as text."""

    text: str
    whole: bool
    """Whether it is all there is."""
    encoding: str


def walk(folder: Path, notes: Mapping[str, str] | None = None) -> Tree:
    """List a folder: names in their natural order, sizes, and lines of texts.

    Args:
        folder: What to list.
        notes: What to say of files besides, by their paths relative to it.

    Raises:
        OSError: The folder cannot be listed; folders in it that cannot be are said to be so.
    """
    tree = Tree(notes={str(folder / name): note for name, note in (notes or {}).items()})
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
        # Of a folder without end it is chance which ones are seen.
        return sorted(islice(found, _LISTED), key=lambda entry: _natural(entry.name))


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
        tree.lines.append(f"{indent}{plain(entry.name)} {_about(entry)}{_noted(tree, entry)}")
        if entry in named and entry.is_file(follow_symlinks=False):
            tree.files.append(folder / entry.name)
    hidden = max(0, len(readable) - _READABLE_SHOWN) + max(0, len(others) - most)
    if hidden:
        tree.lines.append(f"{indent}… {hidden:,} more {'file' if hidden == 1 else 'files'}")
    for entry in folders[:most]:
        _list_inner(tree, folder / entry.name, depth=depth)
    if len(folders) > most:
        tree.lines.append(f"{indent}… {len(folders) - most:,} more folders")


def _noted(tree: Tree, entry: os.DirEntry[str]) -> str:
    """Say of an archive where its content is."""
    if note := tree.notes.get(entry.path):
        return f", {plain(note, 120)}"
    return ", an archive, not unpacked" if entry.name.lower().endswith(ARCHIVES) else ""


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
    parts += ["and more that were not looked at"] if len(entries) == _LISTED else []
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


MOST: Final = 6_000
"""Characters of a preview: AIDE's bound, which it holds to only where its simple form is short."""

_TABLES: Final = (".csv", ".tsv")
_JSON_LINES: Final = (".jsonl", ".ndjson")
_JSON: Final = (".json", ".geojson", *_JSON_LINES)
_DESCRIBED: Final = 12
"""Most files that are looked into; those nearest to the top come first."""
_INLINE: Final = 1_500
"""Bytes of a text that is quoted whole; it must have fewer than 30 lines, as in AIDE."""
_QUOTED_LINES: Final = 30
_NAMES: Final = 15
"""Names of columns in the short form, as in AIDE."""
_CUT: Final = "…"
_TREE_SHARE: Final = 3
"""The list of files takes at most one part in so many."""

Form: TypeAlias = Literal["full", "short"]

_READ: Final = 4 * 2**20
"""Bytes of a file that are read: 40,000 rows of a hundred characters, in about half a second.

A JSON file is read whole or not at all, of JSON lines and tables the beginning.
"""
_ROWS: Final = 50_000
_COLUMNS: Final = 30
"""Columns that are described; of further ones the first and the last are named."""
_FEW: Final = 12
"""So many different values are listed: months and digits are (AIDE lists nine)."""
_COMMON: Final = 4
"""Of more, so many of the most frequent are, as in AIDE."""
_LONGEST_VALUE: Final = 30
_MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]++)([eE][+-]?[0-9]+)?|[+-]?inf")
_SEPARATORS: Final = ",\t;|"

_LINES: Final = 200
"""JSON lines that are looked at."""
_ITEMS: Final = 200
"""Items of a list that are looked at."""
_KEYS: Final = 12
"""Keys of an object that are told."""


def data_preview(folder: Path, *, most: int = MOST, notes: Mapping[str, str] | None = None) -> str:
    """Describe the public data of a competition for a prompt.

    Where the full description is longer than `most`, tables are told by their first columns' names
    alone, and texts are not quoted; where that is longer too, it is cut at the end of a line.

    Args:
        folder: What agents may see: `Competition.input_dir`.
        most: Characters at most.
        notes: What to say of files besides, by their paths: `Unpacked.notes`.

    Raises:
        CompetitionError: There is no such folder, or it cannot be listed.
    """
    if not folder.is_dir():
        msg = "is not there, or no folder; prepare the competition's data first"
        raise CompetitionError(msg, path=folder)
    try:
        tree = walk(folder, notes)
    except OSError as error:
        msg = f"cannot be listed: {error.strerror or error}"
        raise CompetitionError(msg, path=folder) from error
    listed = _bounded([f"Files in ./{INPUT}:", *tree.lines], most // _TREE_SHARE)
    for form in ("full", "short"):
        text = "\n\n".join(["\n".join(listed), *_described(folder, tree, form)])
        if len(text) <= most:
            return text
    return "\n".join(_bounded(text.split("\n"), most))


def _described(folder: Path, tree: Tree, form: Form) -> list[str]:
    """Describe what the listed files hold, as far as they can be looked into."""
    files = sorted(tree.files, key=lambda path: len(path.relative_to(folder).parts))  # stable
    told = (_look(path, path.relative_to(folder).as_posix(), form) for path in files)
    return list(islice(filter(None, told), _DESCRIBED))


def _look(path: Path, name: str, form: Form) -> str:
    """Describe one file; nothing where there is nothing to say."""
    named = plain(name, 120)
    ending = path.suffix.lower()
    try:
        if ending in _TABLES:
            return _described_table(path, named, names_only=None if form == "full" else _NAMES)
        if ending in _JSON:
            return _described_json(path, named, lines=ending in _JSON_LINES)
        return _quoted_text(path, named) if form == "full" else ""
    except OSError as error:
        return f"{named}: cannot be read ({error.strerror or error})"


def _quoted_text(path: Path, named: str) -> str:
    """Quote a short text; not the description, which a prompt holds as its task."""
    if path.name == DESCRIPTION:
        return ""
    beginning = read_beginning(path, _INLINE)
    lines = [plain(line, 120) for line in beginning.text.splitlines()]
    if not beginning.whole or not lines or len(lines) >= _QUOTED_LINES:
        return ""
    return "\n".join([f"{named}:", *(f"  | {line}".rstrip() for line in lines)])


def _bounded(lines: Sequence[str], most: int) -> list[str]:
    """Cut lines where they are too long together, and say so."""
    length = -1
    for at, line in enumerate(lines):
        length += len(line) + 1
        if length > most:
            kept = list(lines[:at])
            while kept and len("\n".join([*kept, _CUT])) > most:
                kept.pop()
            return [*kept, _CUT]
    return list(lines)


@dataclass(frozen=True, slots=True)
class _Table:
    names: list[str]
    rows: list[list[str]]
    notes: list[str]
    whole: bool
    about: int | None = None
    """Rows there may be in all, by the length of those looked at; `None` where that is known."""


def _described_table(path: Path, name: str, *, names_only: int | None) -> str:
    """Describe a table: its rows and columns, and what each column holds, or the first names only."""
    table = _read(read_beginning(path, _READ), path.stat().st_size)
    if not table.names:
        return f"{name}: {'; '.join(['empty', *table.notes])}"
    rows = f"{len(table.rows):,} {'row' if len(table.rows) == 1 else 'rows'}"
    seen = rows if table.whole else f"the first {rows} looked at"
    if table.about is not None:
        seen = f"about {table.about:,} rows by its size, {seen}"
    count = len(table.names)
    head = [seen, f"{count:,} {'column' if count == 1 else 'columns'}", *table.notes]
    if names_only is not None:
        listed = [plain(each) for each in table.names[:names_only]]
        more = [f"… {count - names_only:,} more"] if count > names_only else []
        return f"{name}: {', '.join(head)}: {', '.join(listed + more)}"
    columns = [
        f"  {plain(each)}: {_column([row[at] if at < len(row) else '' for row in table.rows])}"
        for at, each in enumerate(table.names[:_COLUMNS])
    ]
    if count > _COLUMNS:
        first, last = plain(table.names[_COLUMNS]), plain(table.names[-1])
        columns.append(f"  … {count - _COLUMNS:,} more columns, {first} to {last}")
    return "\n".join([f"{name}: {', '.join(head)}", *columns])


def _read(beginning: Beginning, size_: int) -> _Table:
    notes = [] if beginning.encoding == "UTF-8" else [f"in {beginning.encoding}"]
    separator = _separator(beginning.text)
    if separator != ",":
        notes.append(f"separated by {separator!r}")
    stream = io.StringIO(beginning.text, newline="")
    reader = csv.reader(stream, delimiter=separator)
    rows: list[list[str]] = []
    whole = beginning.whole
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) > _ROWS + 1:  # with the line of names
                rows.pop()
                whole = False
                break
    except csv.Error as error:
        notes.append(f"no CSV from line {reader.line_num} on ({error})")
        whole = False
    names = rows[0] if rows else []
    longer = sum(len(row) > len(names) for row in rows)
    if longer:
        notes.append(f"{longer:,} rows with more fields than the first line")
    seen = beginning.text[: stream.tell()].encode(beginning.encoding, "replace")
    about = None if whole else _estimated(len(rows), len(seen), size_)
    return _Table(names, rows[1:], notes, whole, about)


def _estimated(lines: int, seen: int, size_: int) -> int | None:
    """Return how many rows a file may have, to two digits: it is not read for it."""
    if lines < _FEW:
        return None
    rows = size_ * lines // seen
    scale: int = 10 ** max(len(str(rows)) - 2, 0)
    return round(rows / scale) * scale


def _separator(text: str) -> str:
    """Return what separates the fields of the first line: most often, the comma first."""
    line = text.lstrip("\r\n").partition("\n")[0]
    return max(_SEPARATORS, key=line.count)


def _column(values: Sequence[str]) -> str:
    there = [value.strip() for value in values if value.strip().lower() not in _MISSING]
    if not there:
        return "no values" if values else "no rows"
    share = 1 - len(there) / len(values)
    missing = f", {share:.1%} missing" if len(there) < len(values) else ""
    return f"{_told(there)}{missing}"


def _told(values: Sequence[str]) -> str:
    counts = Counter(values)
    if {value.lower() for value in counts} <= {"true", "false"}:
        true = sum(count for value, count in counts.items() if value.lower() == "true")
        return f"true or false, {true / len(values):.1%} true"
    if all(_NUMBER.fullmatch(value) for value in counts):
        return _numbers(counts)
    if len(counts) <= _FEW:
        return f"text, {_few(sorted(counts, key=lambda value: (-counts[value], value)))}"
    if len(counts) == len(values):
        return f"text, all different, such as {_quoted(list(counts)[:2])}"
    common = sorted(counts, key=lambda value: (-counts[value], value))[:_COMMON]
    return f"text, {len(counts):,} different, most often {_quoted(common)}"


def _numbers(counts: Counter[str]) -> str:
    kind = "whole numbers" if all(map(_WHOLE.fullmatch, counts)) else "numbers"
    ordered = sorted(counts, key=lambda value: (float(value), value))
    if len({float(value) for value in ordered}) <= _FEW:
        return f"{kind}, {_few(ordered, plainly=True)}"
    different = ", all different" if max(counts.values()) == 1 else ""
    return f"{kind}, {plain(ordered[0])} to {plain(ordered[-1])}{different}"


def _few(values: Sequence[str], *, plainly: bool = False) -> str:
    listed = ", ".join(map(plain, values)) if plainly else _quoted(values)
    return f"only {listed}" if len(values) == 1 else f"{len(values)} values: {listed}"


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f'"{plain(value, _LONGEST_VALUE)}"' for value in values)


def _described_json(path: Path, name: str, *, lines: bool) -> str:
    """Describe the shape of a JSON file, or of its lines: which keys, and what kinds of values."""
    beginning = read_beginning(path, _READ)
    if lines:
        return _of_lines(beginning.text.splitlines(), name, whole=beginning.whole)
    if not beginning.whole:
        return f"{name}: JSON, too large to look into here"
    try:
        return f"{name}: {_shape([json.loads(beginning.text)], 0)}"
    except (ValueError, RecursionError):
        return f"{name}: cannot be read as JSON"


def _of_lines(lines: Sequence[str], name: str, *, whole: bool) -> str:
    kept = [line for line in lines if line.strip()]
    try:
        values = [json.loads(line) for line in kept[:_LINES]]
    except (ValueError, RecursionError):
        return f"{name}: cannot be read as JSON lines"
    if not values:
        return f"{name}: empty"
    seen = f"{len(values)} lines" if whole and len(kept) <= _LINES else f"first {len(values)} lines"
    return f"{name}: each line ({seen} looked at) {_shape(values, 0)}"


def _shape(values: Sequence[Any], depth: int) -> str:
    """Put into words what values that stand in one place are like."""
    parts: list[str] = []
    objects = [value for value in values if isinstance(value, Mapping)]
    lists = [value for value in values if isinstance(value, list)]
    if objects:
        parts.append(_object(objects, depth))
    if lists:
        parts.append(_items(lists, depth))
    parts += dict.fromkeys(
        _scalar(value) for value in values if not isinstance(value, Mapping | list)
    )
    return " or ".join(parts) or "nothing"


def _object(objects: Sequence[Mapping[str, Any]], depth: int) -> str:
    keys = list(dict.fromkeys(key for each in objects for key in each))
    if not keys:
        return "empty object"
    if depth >= _DEPTH:
        return f"object of {len(keys)} keys"
    told = [
        f"{plain(key, 40)}: {_shape([each[key] for each in objects if key in each], depth + 1)}"
        for key in keys[:_KEYS]
    ]
    more = [f"… {len(keys) - _KEYS:,} more keys"] if len(keys) > _KEYS else []
    return f"object {{{', '.join(told + more)}}}"


def _items(lists: Sequence[list[Any]], depth: int) -> str:
    lengths = [len(each) for each in lists]
    long = f"{lengths[0]:,}" if len(set(lengths)) == 1 else f"{min(lengths):,} to {max(lengths):,}"
    if depth >= _DEPTH:
        return f"list of {long}"
    items = [item for each in lists for item in each[:_ITEMS]][:_ITEMS]
    return f"list of {long}, each {_shape(items, depth + 1)}" if items else "empty list"


def _scalar(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "number"
        case None:
            return "null"
        case _:
            return "text"
