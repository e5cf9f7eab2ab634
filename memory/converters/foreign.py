"""Files of other systems, read and written with a report of what was lost on the way.

What was lost is found, not declared. Of a file that is read, all that became part of no item is named.
What is written is read again, and every field in which an item comes back otherwise is named. A report
therefore holds for the file at hand, whatever the table in the docs says.

```python
read = read_foreign("export.json", "mem0")
losses = write_foreign("memories.json", read.items, "langmem")
```

Of ReMe (arXiv:2512.10696) two spellings are in use: `memory_id` and `memory_type` with dates and author at the top, and
`experience_id` and `experience_type` with these in `metadata` only. An entry says when it helps
(`when_to_use`), which is what it is retrieved by, and what to do (`content`), which is recalled
word for word, in whatever language it is. In the file of a vector store, `unique_id` names an
entry, `content` is when it helps, for that is embedded, and all else is in `metadata`.

===============  ==========================================================================
not in ReMe      what an item says instead
===============  ==========================================================================
success          `None`: no entry tells how the attempts went that it was distilled from
episode_id       empty: not told
source_domain    the workspace; `ImportChoices(remap=…)` puts it to a domain of yours
===============  ==========================================================================

Of an entry's extra information, what is a single value is kept; lists (`tags`, `tools_used`)
are not, for an item's metadata is flat.
"""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from langgraft._core.arguments import did_you_mean
from langgraft._core.canonical import JSON
from langgraft._core.errors import BankFormatError, InputError
from langgraft._core.untrusted import read_most
from langgraft.memory.bank_format import split_lines, write_file
from langgraft.memory.converters.field_map import FieldMap, FieldSource, convert_lines, row_lines
from langgraft.memory.converters.forms import Markdown, load_document
from langgraft.memory.converters.systems import LANGMEM, LETTA, MEM0, REASONING_BANK
from langgraft.memory.model import MemoryItem


def _first(*paths: str, required: bool = False) -> FieldSource:
    return FieldSource(paths=paths, required=required)


def _map(inside: str, *, named: FieldSource, text: FieldSource, key: str) -> FieldMap:
    """Return the map of a form that has what an entry is about `inside` a field."""
    return FieldMap(
        id=named,
        text=text,
        key=_first(key, required=True),
        type=FieldSource(constant="strategic"),
        source_domain=_first("workspace_id"),
        episode_id=FieldSource(constant=""),
        metadata={
            "memory_type": _first(f"{inside}memory_type", f"{inside}experience_type"),
            "score": _first(f"{inside}score"),
            "author": _first(f"{inside}author", f"{inside}metadata.author"),
            "created": _first(
                f"{inside}time_created",
                f"{inside}created_time",
                f"{inside}metadata.created_time",
            ),
            "modified": _first(
                f"{inside}time_modified",
                f"{inside}modified_time",
                f"{inside}metadata.modified_time",
            ),
            "confidence": _first(f"{inside}metadata.extra_info.confidence"),
            "step_type": _first(f"{inside}metadata.extra_info.step_type"),
        },
    )


REME: Final = _map(
    "", named=_first("memory_id", "experience_id"), text=_first("content"), key="when_to_use"
)
"""Field map of ReMe's libraries."""
REME_VECTORS: Final = _map(
    "metadata.",
    named=_first("unique_id"),
    text=_first("metadata.content", "metadata.experience_content"),
    key="content",
)
"""Field map of the files of ReMe's vector stores."""
REME_FORMS: Final[Mapping[str, FieldMap]] = {
    "memory_id": REME,
    "experience_id": REME,
    "unique_id": REME_VECTORS,
}
"""Field that tells a form → its map."""


MOST_BYTES: Final = 64 * 2**20
"""Larger files are refused: one is read as a whole."""


class Form(Protocol):
    """How a system writes memory."""

    @property
    def name(self) -> str:
        """What it is called in commands."""

    def read(self, data: bytes, path: Path) -> tuple[list[MemoryItem], Counter[str]]:
        """Make items of a file's bytes, and count what is not kept by where it stood."""

    def write(self, items: Sequence[MemoryItem]) -> tuple[bytes, list[MemoryItem]]:
        """Return the bytes of items, and those of them that are in it, in its order."""


class _ReMe:
    """ReMe's libraries, by its field maps."""

    name = "reme"

    def read(self, data: bytes, path: Path) -> tuple[list[MemoryItem], Counter[str]]:
        lost: Counter[str] = Counter()
        return convert_lines(split_lines(io.BytesIO(data), path), path, REME_FORMS, lost), lost

    def write(self, items: Sequence[MemoryItem]) -> tuple[bytes, list[MemoryItem]]:
        return row_lines(items, REME), list(items)


FORMS: Final[Mapping[str, Form]] = {
    form.name: form for form in (LANGMEM, MEM0, LETTA, REASONING_BANK, Markdown(), _ReMe())
}
"""Name in commands → form."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A field that did not come through, or came through otherwise: `how`."""

    field: str
    """Of a file that is read: where it stood. Of one that is written: the item's field."""
    count: int
    """How often; of one that is written: of how many items."""
    how: Literal["lost", "changed", "added"] = "lost"
    example: str = ""
    """The first item concerned."""

    def to_json(self) -> dict[str, JSON]:
        """Return the loss as JSON."""
        return {
            "field": self.field,
            "count": self.count,
            "how": self.how,
            "example": self.example,
        }

    def __str__(self) -> str:
        example = f", such as {self.example!r:.60}" if self.example else ""
        return f"{self.how}: {self.field} ({self.count:,}{example})"


@dataclass(frozen=True, slots=True)
class Converted:
    """What was read of a file, and the `losses` on the way."""

    items: list[MemoryItem]
    """In the order of their `order_index`."""
    losses: tuple[Loss, ...] = field(default=())


def read_foreign(path: Path | str, form: str) -> Converted:
    """Make items of a whole file that another system wrote, or of nothing of it.

    Args:
        path: The file, of at most `MOST_BYTES`.
        form: Its form, one of `FORMS`.

    Raises:
        BankFormatError: It cannot be read or is not in that form; the message names the place.
        InputError: There is no such form.
    """
    path = Path(path)
    items, lost = form_called(form).read(_bytes(path), path)
    items.sort(key=lambda item: item.order_index)
    return Converted(items, losses_of(lost))


def losses_of(lost: Mapping[str, int]) -> tuple[Loss, ...]:
    """Return what was counted as losses, by name."""
    return tuple(Loss(name, count) for name, count in sorted(lost.items()) if count)


def write_foreign(path: Path | str, items: Sequence[MemoryItem], form: str) -> tuple[Loss, ...]:
    """Write items as another system does; the file appears whole or not at all.

    Returns:
        What an item holds and the file does not, found by reading it again.

    Raises:
        InputError: There is no such form, or the path cannot be written.
    """
    path = Path(path)
    target = form_called(form)
    data, written = target.write(items)
    again, _ = target.read(data, path)
    losses = _differences(items, written, again)
    write_file(path, data)
    return losses


def form_called(name: str) -> Form:
    """Return the form of a name.

    Raises:
        InputError: There is none.
    """
    if name not in FORMS:
        msg = f"no form is called {name!r:.80}: {did_you_mean(name, FORMS)}"
        raise InputError(msg)
    return FORMS[name]


def detect_form(path: Path | str) -> str:
    """Return the form that a file is in, told by what only that form has.

    Raises:
        BankFormatError: It cannot be read, or could be none of the forms, or several.
    """
    path = Path(path)
    if path.suffix.lower() in (".md", ".markdown"):
        return Markdown.name
    try:
        document = load_document(_bytes(path))
    except ValueError as error:
        raise BankFormatError(str(error), path=path) from error
    found = [name for name, telling in _TELLING.items() if telling(document)]
    if len(found) == 1:
        return found[0]
    known = " or ".join(found) if found else f"none of {', '.join(FORMS)}"
    msg = f"its form cannot be told: it could be {known}; say which with --from"
    raise BankFormatError(msg, path=path)


def _has(*names: str) -> Any:
    def telling(document: JSON) -> bool:
        rows = document
        if isinstance(document, dict):
            lists = (document.get(name) for name in ("results", "memories", "items"))
            rows = next((each for each in lists if isinstance(each, list)), [document])
        row = rows[0] if isinstance(rows, list) and rows else None
        return isinstance(row, dict) and all(
            any(name in row for name in alternatives.split("|")) for alternatives in names
        )

    return telling


_TELLING: Final[Mapping[str, Any]] = {
    LANGMEM.name: _has("namespace", "key", "value"),
    MEM0.name: _has("memory"),
    LETTA.name: lambda value: (
        isinstance(value, dict) and bool({"agents", "core_memory"} & set(value))
    ),
    REASONING_BANK.name: _has("memory_items|title|description", "memory_items|content"),
    _ReMe.name: _has("memory_id|experience_id|unique_id"),
}


def _differences(
    items: Sequence[MemoryItem], written: Sequence[MemoryItem], again: Sequence[MemoryItem]
) -> tuple[Loss, ...]:
    """Compare items with what reading their file gives, field by field."""
    found: dict[tuple[str, str], list[str]] = {}
    kept = {item.id for item in written}
    for item in items:
        if item.id not in kept:
            found.setdefault(("the whole item", "lost"), []).append(item.id)
    for old, new in zip(written, again, strict=True):
        before, after = _fields(old), _fields(new)
        for name in [*before, *(name for name in after if name not in before)]:
            if name not in after:
                how = "lost"
            elif name not in before:
                how = "added"
            elif before[name] != after[name] or type(before[name]) is not type(after[name]):
                how = "changed"
            else:
                continue
            found.setdefault((name, how), []).append(old.id)
    return tuple(
        Loss(name, len(ids), how, ids[0])  # type: ignore[arg-type]
        for (name, how), ids in sorted(found.items())
    )


def _fields(item: MemoryItem) -> dict[str, JSON]:
    """Return what an item holds, field by field; a field that holds nothing is none."""
    values = item.to_json()
    metadata = values.pop("metadata", {})
    assert isinstance(metadata, dict)
    values |= {f"metadata.{name}": value for name, value in metadata.items()}
    return {name: value for name, value in values.items() if value is not None}


def _bytes(path: Path) -> bytes:
    try:
        return read_most(path, MOST_BYTES)
    except OSError as error:
        msg = f"cannot be read: {error.strerror}"
        raise BankFormatError(msg, path=path) from error
    except ValueError as error:
        raise BankFormatError(str(error), path=path) from error
