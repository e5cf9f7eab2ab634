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

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.attempts import INPUT
from langgraft.environments.competitions.layout import DESCRIPTION
from langgraft.environments.competitions.preview_columns import described_table
from langgraft.environments.competitions.preview_files import Tree, plain, read_beginning, walk
from langgraft.environments.competitions.preview_shapes import described_json

MOST: Final = 6_000
"""Characters of a preview: AIDE's bound, which it holds to only where its simple form is short."""

_TABLES: Final = (".csv", ".tsv")
_JSON_LINES: Final = (".jsonl", ".ndjson")
_JSON: Final = (".json", ".geojson", *_JSON_LINES)
_DESCRIBED: Final = 12
"""Most files that are looked into; those nearest to the top come first."""
_INLINE: Final = 1_500
"""Bytes of a text that is quoted whole; it must have fewer than 30 lines, as in AIDE."""
_LINES: Final = 30
_NAMES: Final = 15
"""Names of columns in the short form, as in AIDE."""
_CUT: Final = "…"
_TREE_SHARE: Final = 3
"""The list of files takes at most one part in so many."""

Form: TypeAlias = Literal["full", "short"]


def data_preview(folder: Path, *, most: int = MOST) -> str:
    """Describe the public data of a competition for a prompt.

    Where the full description is longer than `most`, tables are told by their first columns' names
    alone, and texts are not quoted; where that is longer too, it is cut at the end of a line.

    Args:
        folder: What agents may see: `Competition.public_dir`.
        most: Characters at most.

    Raises:
        CompetitionError: There is no such folder, or it cannot be listed.
    """
    if not folder.is_dir():
        msg = "is not there, or no folder; prepare the competition's data first"
        raise CompetitionError(msg, path=folder)
    try:
        tree = walk(folder)
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
            return described_table(path, named, names_only=None if form == "full" else _NAMES)
        if ending in _JSON:
            return described_json(path, named, lines=ending in _JSON_LINES)
        return _quoted(path, named) if form == "full" else ""
    except OSError as error:
        return f"{named}: cannot be read ({error.strerror or error})"


def _quoted(path: Path, named: str) -> str:
    """Quote a short text; not the description, which a prompt holds as its task."""
    if path.name == DESCRIPTION:
        return ""
    beginning = read_beginning(path, _INLINE)
    lines = [plain(line, 120) for line in beginning.text.splitlines()]
    if not beginning.whole or not lines or len(lines) >= _LINES:
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
