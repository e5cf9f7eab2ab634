"""The forms in which other systems keep memory, read and written: JSON by one table a form, and Markdown.

A form has *parts*: lists of rows in one file, such as Letta's blocks, passages and messages. A part says
which field of a row is which field of a `MemoryItem`, and which fields stand at the top of a row; all
else that a row holds becomes metadata of the item, and goes back to where it was. A list or an object
is kept as JSON text, as `NAME:json`, for metadata is flat. Fields of ours that a form has no place for go
where it lets anybody write (mem0's `metadata`), as `langgraft_NAME`. What is not plain fields (a namespace
of labels, content in pieces) a part folds into fields first, and unfolds where it is written.

In Markdown a list item is one memory, and so is a paragraph or a block of code outside of lists; headings, joined
by ` > `, are the domain of what stands below them. Lines that belong to a list item are indented, so
that a list within it stays part of its text. A file holds texts and headings and nothing else: it is
read by a model as it is, and a comment for us would cost every reader tokens.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import BankFormatError, InputError
from langgraft._core.untrusted import MOST_VALUES, check_depth
from langgraft.memory.bank_format import BUNDLE_START, parse_json
from langgraft.memory.model import MemoryItem

Row: TypeAlias = dict[str, JSON]
Fold: TypeAlias = Callable[[Row], Row]

PART: Final = "part"
"""Metadata: the part of a form that an item is of, where it is not the first."""
OURS: Final = "langgraft_"
"""Begins the names of our own fields in rows of others."""
_ODD: Final = f"{OURS}metadata"
"""Metadata whose names would mean something else in the row."""
_AS_JSON: Final = ":json"
_FIELDS: Final = frozenset(MemoryItem.model_fields) - {"metadata"}


def _same(row: Row) -> Row:
    return row


@dataclass(frozen=True, slots=True)
class Part:
    """One list of rows of a form."""

    name: str
    """What its items say in their metadata as `part`; those of a form's first part do not."""
    places: Mapping[str, str]
    """Field of an item → field of a folded row. A row without an id gets one of its text and
    domain, the same at every reading."""
    rest: str | None = None
    """The field of a row that holds what anybody likes; `None`: the row itself does."""
    top: frozenset[str] = frozenset()
    """Fields of a row that stand beside `rest`."""
    derived: frozenset[str] = frozenset()
    """Fields that follow from the others and are made again, such as vectors: not kept."""
    defaults: Mapping[str, JSON] = field(default_factory=dict)
    """Field of an item → its value where a row does not say."""
    folded: frozenset[str] = frozenset()
    """Names in `rest` that a text was folded from: metadata of these names is kept apart."""
    anonymous: bool = False
    """Whether rows go without the ids that follow from their texts."""
    text_from: str = ""
    """What messages call the field that a text is folded from."""
    fold: Fold = _same
    unfold: Fold = _same
    holds: Callable[[MemoryItem], bool] = lambda _: True
    """Whether it would be read again from a row of this part; others go to a form's first part."""

    def standing(self, number: int) -> Row:
        """Return what an item holds where its row, the `number`th of its file, does not say."""
        return {"episode_id": "", "success": None, "order_index": number, **self.defaults}

    def has_other_use_of(self, name: str, value: JSON) -> bool:
        """Say whether a name would be read as something else than metadata."""
        return (
            name.startswith(OURS)
            or name in {self.rest, *self.places.values(), *self.derived}
            or (name in self.folded and not isinstance(value, dict | list))
        )


@dataclass(frozen=True, slots=True)
class JsonForm:
    """A form of JSON: which lists of a document are which parts."""

    name: str
    parts: tuple[Part, ...]
    take: Callable[[JSON, Counter[str]], Iterator[tuple[str, str, JSON]]]
    """Yields part, place and row of what a document holds, and counts what it holds besides."""
    put: Callable[[Mapping[str, list[Row]]], JSON]
    """Returns the document of rows by part."""

    def read(self, data: bytes, path: Path) -> tuple[list[MemoryItem], Counter[str]]:
        """Make items of a file's bytes, in its order, and count what is not kept by where it stood.

        Raises:
            BankFormatError: It is no JSON, out of bounds, or a row is none of this form; the
                message names the place.
        """
        lost: Counter[str] = Counter()
        named = {part.name: part for part in self.parts}
        items: list[MemoryItem] = []
        try:
            rows = list(self.take(load_document(data), lost))
        except (InputError, ValueError) as error:
            raise BankFormatError(str(error), path=path) from error
        for number, (part, place, row) in enumerate(rows):
            try:
                items.append(self._item(named[part], row, number, lost))
            except (InputError, ValueError) as error:
                raise BankFormatError(f"{place}: {error}", path=path) from error
        return unique(items, lost), lost

    def write(self, items: Sequence[MemoryItem]) -> tuple[bytes, list[MemoryItem]]:
        """Return the file of items, and these in the order in which they stand in it."""
        first = self.parts[0]
        named = {part.name: part for part in self.parts}
        of_part: dict[str, list[MemoryItem]] = {name: [] for name in named}
        for item in items:
            part = named.get(str(item.metadata.get(PART)), first)
            of_part[(part if part.holds(item) else first).name].append(item)
        rows: dict[str, list[Row]] = {part.name: [] for part in self.parts}
        written: list[MemoryItem] = []
        for part in self.parts:
            for item in of_part[part.name]:
                rows[part.name].append(self._row(part, item, len(written)))
                written.append(item)
        text = json.dumps(self.put(rows), ensure_ascii=False, indent=2, allow_nan=False)
        return f"{text}\n".encode(), written

    def _mark(self, value: JSON) -> JSON:
        """Return the part that a value of `PART` names, or nothing."""
        return value if value in [part.name for part in self.parts[1:]] else None

    def _means(self, part: Part, name: str, value: JSON) -> bool:
        """Say whether metadata of a name is told from what stands in `rest` under it."""
        return name in part.top or (name == PART and self._mark(value) is not None)

    def _item(self, part: Part, row: JSON, number: int, lost: Counter[str]) -> MemoryItem:
        if not isinstance(row, dict):
            msg = f"expected an object, got {row!r:.80}"
            raise InputError(msg)
        row = part.fold(dict(row))
        values = part.standing(number)
        for name, place in part.places.items():
            value = row.pop(place, None)
            if value is not None:
                values[name] = value
        if "text" not in values:
            place = part.text_from or part.places["text"]
            msg = f"field {place!r} is missing or empty, which the text comes from"
            raise InputError(msg)
        rest = (row.pop(part.rest, None) if part.rest else None) or {}
        if not isinstance(rest, dict):
            msg = f"field {part.rest!r} must be an object (got {rest!r:.80})"
            raise InputError(msg)
        metadata: Row = {}
        for name, value in row.items():
            if name in part.derived and value is not None:
                lost[f"{part.name}.{name}"] += 1
            else:
                _read_field(name, name, value, values, metadata)
        for name, value in rest.items():
            clash = name in metadata or self._means(part, name, value)
            _read_field(name, f"{part.rest}.{name}" if clash else name, value, values, metadata)
        if part is not self.parts[0]:
            metadata[PART] = part.name
        values["metadata"] = metadata
        values.setdefault("id", _derived_id(part, values))
        return MemoryItem.from_json(values)

    def _row(self, part: Part, item: MemoryItem, number: int) -> Row:
        values = item.to_json()
        metadata = cast("Row", values.pop("metadata", {}))
        if self._mark(metadata.get(PART)):
            del metadata[PART]
        standing = part.standing(number)
        if part.anonymous:
            standing["id"] = _derived_id(part, values)
        row: Row = {}
        rest: Row = {}
        for name, value in values.items():
            if name == "text" or value != standing.get(name):
                place = part.places.get(name)
                (rest if place is None else row)[place or f"{OURS}{name}"] = value
        self._place_metadata(part, metadata, row, rest)
        if part.rest is None:
            row |= rest
        elif rest:
            row[part.rest] = rest
        return part.unfold(row)

    def _place_metadata(self, part: Part, metadata: Row, row: Row, rest: Row) -> None:
        odd: Row = {}
        for kept, value in metadata.items():
            name, whole = _restored(kept, value, metadata)
            inner = name.removeprefix(f"{part.rest}.")
            if name in part.top:
                row[name] = whole
            elif inner != name and self._means(part, inner, whole):
                rest[inner] = whole
            elif inner != name or part.has_other_use_of(name, whole):
                odd[kept] = value
            else:
                rest[name] = whole
        if odd:
            rest[_ODD] = odd


def _read_field(name: str, kept: str, value: JSON, values: Row, metadata: Row) -> None:
    """Keep what a row holds besides its places: a field of ours, or metadata called `kept`."""
    if name == _ODD and isinstance(value, dict):
        metadata |= value
    elif name.startswith(OURS) and name.removeprefix(OURS) in _FIELDS:
        values[name.removeprefix(OURS)] = value
    elif isinstance(value, dict | list):
        metadata[kept + _AS_JSON] = _json_text(value)
    elif value is not None:
        metadata[kept] = value


def unique(items: Sequence[MemoryItem], lost: Counter[str]) -> list[MemoryItem]:
    """Return items of which no two have one id: a later one gets a number behind it.

    Ids of others may be unique within a user or a namespace only, and a file may hold several.
    """
    seen: set[str] = set()
    times: Counter[str] = Counter()
    renamed: list[MemoryItem] = []
    for item in items:
        name = item.id
        while name in seen:
            times[item.id] += 1
            name = f"{item.id}~{times[item.id] + 1}"
        seen.add(name)
        if name != item.id:
            lost["id, where it stands twice"] += 1
        renamed.append(item if name == item.id else item.model_copy(update={"id": name}))
    return renamed


def load_document(data: bytes) -> JSON:
    """Read a JSON document, or lines of JSON as a list.

    Some write a document as a text within JSON: that is read, too.

    Raises:
        ValueError: It is neither, or deeper or of more values than is good for memory.
    """
    if data.startswith(BUNDLE_START):
        msg = "this is a bundle of langgraft's, which no other system writes"
        raise ValueError(msg)
    lines = [line for line in data.split(b"\n") if line.strip()]
    value: JSON
    if len(lines) > 1 and lines[0].strip().startswith(b"{") and lines[0].strip().endswith(b"}"):
        value = [_line(line, number) for number, line in enumerate(lines, 1)]
    else:
        value = parse_json(data, MOST_VALUES)
    if isinstance(value, str):
        value = parse_json(value.encode(), MOST_VALUES)
    check_depth(value)
    return value


def _line(line: bytes, number: int) -> JSON:
    try:
        return parse_json(line)
    except ValueError as error:
        msg = f"line {number}: {error}"
        raise ValueError(msg) from error


def _restored(name: str, value: JSON, metadata: Row) -> tuple[str, JSON]:
    """Return what a row is to hold for a field of metadata: a list or an object for its text."""
    whole = name.removesuffix(_AS_JSON)
    if whole != name and whole not in metadata and isinstance(value, str) and value[:1] in "[{":
        try:
            parsed = parse_json(value.encode())
        except ValueError:
            return name, value
        if isinstance(parsed, dict | list) and _json_text(parsed) == value:
            return whole, parsed
    return name, value


def _json_text(value: JSON) -> str:
    """Write a list or an object in a line; its fields keep their order, which may say something."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _derived_id(part: Part, values: Mapping[str, Any]) -> str:
    told: list[JSON] = [values.get("text"), values.get("source_domain")]
    return f"{part.name}-{digest(told)[:12]}"


DOMAIN: Final = "agents_md"
"""The domain of what stands below no heading."""
MOST_MEMORIES: Final = 50_000
"""Of a Markdown file: an item takes some thousand times the memory of the sign that makes one."""
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*)$")
_BULLET: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|)$")
_FENCE: Final = re.compile(r"(`{3,}|~{3,})")
_BETWEEN: Final = " > "


class Markdown:
    """The form of headed lists."""

    name = "agents_md"

    def read(self, data: bytes, path: Path) -> tuple[list[MemoryItem], Counter[str]]:
        """Make items of a file's bytes, in its order; front matter and comments are not kept.

        Raises:
            BankFormatError: It is not UTF-8, a text is none that an item can have, or there are
                more than `MOST_MEMORIES`.
        """
        lost: Counter[str] = Counter()
        try:
            text = data.decode("utf-8").replace("\r\n", "\n").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            msg = f"not UTF-8 at byte {error.start}"
            raise BankFormatError(msg, path=path) from error
        items: list[MemoryItem] = []
        for row, domain, memory in _memories(_without_front_matter(text, lost), lost):
            if len(items) == MOST_MEMORIES:
                msg = f"holds more than {MOST_MEMORIES:,} memories: split it into several files"
                raise BankFormatError(msg, path=path, row=row)
            try:
                items.append(_item(memory, domain, len(items)))
            except InputError as error:
                raise BankFormatError(str(error), path=path, row=row) from error
        return unique(items, lost), lost

    def write(self, items: Sequence[MemoryItem]) -> tuple[bytes, list[MemoryItem]]:
        """Return the file of items, and those of them that are in it: all that have a text."""
        written = [item for item in items if item.text.strip()]
        lines: list[str] = []
        domain = DOMAIN
        for item in written:
            if item.source_domain != domain:
                domain = item.source_domain
                lines += ["", f"## {' '.join(domain.split())}", ""]
            first, *others = item.text.split("\n")
            lines.append(f"- {first}")
            lines += [f"  {line}" if line else "" for line in others]
        return ("\n".join(lines).lstrip("\n") + "\n").encode(), written


def _item(text: str, domain: str, number: int) -> MemoryItem:
    return MemoryItem.from_json(
        {
            "id": f"md-{digest([text, domain])[:12]}",
            "text": text,
            "type": "other",
            "source_domain": domain,
            "episode_id": "",
            "success": None,
            "order_index": number,
        }
    )


def _without_front_matter(text: str, lost: Counter[str]) -> list[str]:
    """Return the lines; those of YAML at the beginning, which says how a file is used, are blank."""
    lines = text.split("\n")
    if lines[0] == "---" and "---" in lines[1:]:
        end = lines.index("---", 1)
        lost["front matter"] += 1
        lines[: end + 1] = [""] * (end + 1)
    return lines


def _memories(lines: Sequence[str], lost: Counter[str]) -> Iterator[tuple[int, str, str]]:
    """Yield row, domain and text of each memory."""
    path: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        domain = _BETWEEN.join(name for _, name in path) or DOMAIN
        if not line.strip():
            at += 1
        elif heading := _HEADING.match(line):
            depth = len(heading[1])
            path = [(level, name) for level, name in path if level < depth]
            if name := _without_closing(heading[2]):
                path.append((depth, name))
            at += 1
        elif line.startswith("<!--"):
            lost["comments"] += 1
            while at < len(lines) and "-->" not in lines[at]:
                at += 1
            at += 1
        else:
            bullet = _BULLET.match(line)
            end = _item_end(lines, at) if bullet else _paragraph_end(lines, at)
            first = (bullet[1] or "") if bullet else line
            others = lines[at + 1 : end]
            text = "\n".join([first, *(map(_outdented, others) if bullet else others)]).rstrip("\n")
            if text.strip():
                yield at + 1, domain, text
            at = end


def _without_closing(heading: str) -> str:
    """Return a heading without the `#` that may close it, after a blank."""
    bare = heading.rstrip(" \t")
    name = bare.rstrip("#")
    return name.rstrip(" \t") if name.endswith((" ", "\t")) else bare


def _item_end(lines: Sequence[str], at: int) -> int:
    """Return where a list item ends: blank lines belong to it where an indented one follows."""
    end = at + 1
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.startswith((" ", "\t")):
            if number == end and not (_HEADING.match(line) or _BULLET.match(line)):
                end = number + 1  # a line that goes on without being indented
                continue
            break
        if line.strip():
            end = number + 1
    return end


def _paragraph_end(lines: Sequence[str], at: int) -> int:
    """Return where a paragraph or a block of code ends."""
    if fence := _FENCE.match(lines[at]):
        for number in range(at + 1, len(lines)):
            if lines[number].startswith(fence[1]) and not lines[number].strip("`~ "):
                return number + 1
        return len(lines)
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if not line.strip() or _HEADING.match(line) or _BULLET.match(line) or _FENCE.match(line):
            return number
    return len(lines)


def _outdented(line: str) -> str:
    if line.startswith("\t"):
        return line[1:]
    return line[min(2, len(line) - len(line.lstrip(" "))) :]
