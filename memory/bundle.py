"""The bundle: a bank's content in one file with where it comes from.

A bundle is a ZIP file of three members, stored without compression and in this order:

===============  =============================================================================
`manifest.json`  versions, architecture, counts, size and SHA-256 of the other two, provenance
`items.jsonl`    the items as bare canonical JSONL: byte for byte what a transplant reads
`notes.jsonl`    notes on items (votes, uses, tier …), for information; never imported
===============  =============================================================================

The same content gives the same bytes, always: entries carry a fixed time, and nothing of the
machine. Reading believes nothing. Names, sizes and checksums are compared before a line is
parsed, and at the end the bundle is put together again and must be the file that was read, so
that nothing can hide between the members, before them or behind them.

A bundle is never read where bare content is asked for, as in a transplant: what stands beside
the content must not reach a condition.
"""

import io
import struct
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

import langgraft
from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory.bank_format import (
    BUNDLE_START,
    item_line,
    parse_items,
    parse_json,
    parse_line,
    read_items,
    split_lines,
    write_file,
)
from langgraft.memory.model import BankContent, MemoryItem

FORMAT: Final = "langgraft-bundle"
FORMAT_VERSION: Final = 1
MAX_BUNDLE_BYTES: Final = 2**30
"""Larger bundles are refused: one is read as a whole. 1 GiB is about a million items."""

_MANIFEST: Final = "manifest.json"
_ITEMS: Final = "items.jsonl"
_NOTES: Final = "notes.jsonl"
_NAMES: Final = (_MANIFEST, _ITEMS, _NOTES)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class Provenance(_Part):
    """Where a bank comes from, as far as the exporter knows; what is empty is not known.

    `study` and `run` are the names that made it.
    """

    study: str = ""
    run: str = ""
    model: str = ""
    """The model whose experience the bank holds."""
    prompts: Mapping[str, str] = Field(default_factory=dict)
    """Name of a prompt → its SHA-256."""
    parents: tuple[str, ...] = Field(default=(), strict=False)
    """SHA-256 of the `items.jsonl` that the bank was built on."""
    text: str = ""
    """Anything else, for a reader."""


class Member(_Part):
    """What the manifest says of a member."""

    bytes: int = Field(ge=0)
    sha256: str


class Manifest(_Part):
    """What a bundle says of itself. `format` and `format_version` of the file; `provenance` of the bank."""

    format: Literal["langgraft-bundle"] = FORMAT
    format_version: Literal[1] = FORMAT_VERSION
    langgraft: str
    """Version of the langgraft that wrote it."""
    architecture: Mapping[str, Any] = Field(default_factory=dict)
    """`describe()` of the provider; empty where none was at hand."""
    items: int = Field(ge=0)
    """How many items there are."""
    notes: int = Field(ge=0)
    """How many of them have notes."""
    members: Mapping[str, Member]
    """Name → size and checksum of the members beside this one."""
    provenance: Provenance = Provenance()


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was read from a bundle. Its `manifest` and `items`."""

    manifest: Manifest
    items: tuple[MemoryItem, ...]
    notes: Mapping[str, Mapping[str, JSON]]
    """Id → notes, of those items that have any."""


def write_bundle(
    path: Path | str,
    content: BankContent,
    *,
    architecture: Mapping[str, JSON] | None = None,
    provenance: Provenance | None = None,
) -> Manifest:
    """Write a bank as a bundle; the file appears whole or not at all.

    Args:
        path: The file; one that is there is replaced.
        content: The bank: its items, in `order_index` order, and the notes on them.
        architecture: `describe()` of the provider.
        provenance: Where the bank comes from.

    Raises:
        InputError: The path cannot be written, or the bank is too large for a bundle.
    """
    items = _item_lines(content.items.values())
    notes = {name: held for name, held in content.notes.items() if held}
    lines = _note_lines(notes)
    manifest = Manifest(
        langgraft=langgraft.__version__,
        architecture=architecture or {},
        items=len(content.items),
        notes=len(notes),
        members={_ITEMS: _member(items), _NOTES: _member(lines)},
        provenance=provenance or Provenance(),
    )
    data = _encoded(manifest, items, lines)
    if len(data) > MAX_BUNDLE_BYTES:
        msg = f"{path}: {len(data):,} bytes; a bundle holds up to {MAX_BUNDLE_BYTES:,}"
        raise InputError(msg)
    write_file(Path(path), data)
    return manifest


def read_bundle(path: Path | str) -> Bundle:
    """Read a bundle, all of it checked, or nothing.

    Raises:
        BankFormatError: The file is no bundle, or is torn, altered or too large; one line says
            which member and what.
    """
    path = Path(path)
    data = _bytes(path)
    parts = unpack(path, data, _NAMES)
    manifest = _manifest(path, parts)
    items = parse_items(io.BytesIO(parts[_ITEMS]), path / _ITEMS)
    notes = _notes(path / _NOTES, parts[_NOTES], {item.id for item in items})
    bundle = Bundle(manifest, tuple(items), notes)
    _check_counts(path, bundle)
    _check_bytes(path, bundle, data)
    return bundle


def is_bundle(path: Path | str) -> bool:
    """Say whether a file begins as a bundle does; it may still turn out to be damaged.

    Raises:
        BankFormatError: The file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(len(BUNDLE_START)) == BUNDLE_START
    except OSError as error:
        msg = f"cannot be read: {error.strerror}"
        raise BankFormatError(msg, path=Path(path)) from error


def read_bank_file(path: Path | str) -> Bundle | tuple[MemoryItem, ...]:
    """Read a bundle, or the items of bare canonical JSONL, whichever the file is.

    Raises:
        BankFormatError: It is neither, or damaged.
    """
    return read_bundle(path) if is_bundle(path) else tuple(read_items(Path(path)))


def _encoded(manifest: Manifest, items: bytes, notes: bytes) -> bytes:
    said = _line(manifest.model_dump(mode="json"))
    return pack({_MANIFEST: said, _ITEMS: items, _NOTES: notes})


def _item_lines(items: Iterable[MemoryItem]) -> bytes:
    return b"".join(map(item_line, sorted(items, key=lambda item: (item.order_index, item.id))))


def _note_lines(notes: Mapping[str, Mapping[str, JSON]]) -> bytes:
    lines = (_line({"id": name, "notes": notes[name]}) for name in sorted(notes))
    return b"".join(lines)


def _line(value: JSON) -> bytes:
    try:
        return (canonical_json(value) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"a bundle cannot hold this: {error}"
        raise InputError(msg) from error


def _member(data: bytes) -> Member:
    return Member(bytes=len(data), sha256=sha256(data).hexdigest())


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BUNDLE_BYTES + 1)
    except OSError as error:
        msg = f"cannot be read: {error.strerror}"
        raise BankFormatError(msg, path=path) from error
    if len(data) > MAX_BUNDLE_BYTES:
        msg = f"larger than the {MAX_BUNDLE_BYTES:,} bytes of a bundle"
        raise BankFormatError(msg, path=path)
    if not data.startswith(BUNDLE_START):
        msg = "this is no bundle, which is what `langgraft memory export --bundle` writes"
        raise BankFormatError(msg, path=path)
    return data


def _manifest(path: Path, parts: Mapping[str, bytes]) -> Manifest:
    """Read the manifest, and hold the members to it before they are parsed."""
    manifest = _parsed_manifest(path / _MANIFEST, parts[_MANIFEST])
    found = {name: _member(parts[name]) for name in (_ITEMS, _NOTES)}
    for name in sorted(found.keys() | manifest.members.keys()):
        if manifest.members.get(name) != found.get(name):
            msg = f"{name!a:.80} is not what the manifest says: size or SHA-256 differ"
            raise BankFormatError(msg, path=path)
    return manifest


def _parsed_manifest(path: Path, data: bytes) -> Manifest:
    try:
        value = parse_json(data)
    except ValueError as error:
        raise BankFormatError(str(error), path=path) from error
    known = FORMAT_VERSION
    version = value.get("format_version", known) if isinstance(value, dict) else known
    if type(version) is not int or version != known:  # `True` and 1.0 equal 1
        msg = f"format_version {version!r:.80} is not supported; this langgraft reads {known}"
        raise BankFormatError(msg, path=path)
    with validation_as(partial(BankFormatError, path=path)):
        return Manifest.model_validate_json(data)


def _notes(path: Path, data: bytes, known: AbstractSet[str]) -> dict[str, Mapping[str, JSON]]:
    notes: dict[str, Mapping[str, JSON]] = {}
    for row, line in split_lines(io.BytesIO(data), path):
        match parse_line(path, row, line):
            case {"id": str(identity), "notes": dict(held), **rest} if held and not rest:
                if identity not in known:
                    msg = f"notes on {identity!r:.80}, which is none of the items"
                    raise BankFormatError(msg, path=path, row=row)
                if identity in notes:
                    msg = f"notes on {identity!r:.80} stand twice"
                    raise BankFormatError(msg, path=path, row=row)
                notes[identity] = cast("Mapping[str, JSON]", held)
            case other:
                msg = f"expected an id and its notes, got {other!r:.80}"
                raise BankFormatError(msg, path=path, row=row)
    return notes


def _check_counts(path: Path, bundle: Bundle) -> None:
    for name, found in (("items", len(bundle.items)), ("notes", len(bundle.notes))):
        said = getattr(bundle.manifest, name)
        if said != found:
            msg = f"the manifest says {said} {name}, and there are {found}"
            raise BankFormatError(msg, path=path)


def _check_bytes(path: Path, bundle: Bundle, data: bytes) -> None:
    """Put the bundle together again: nothing else may be in the file."""
    try:
        again = _encoded(bundle.manifest, _item_lines(bundle.items), _note_lines(bundle.notes))
    except (InputError, ValueError, RecursionError) as error:
        msg = f"not as a bundle is written: {' '.join(str(error).split()):.200}"
        raise BankFormatError(msg, path=path) from error
    if again != data:
        msg = (
            "not as a bundle is written: its lines are not canonical, there is more in the file"
            " than its members, or another program packed it"
        )
        raise BankFormatError(msg, path=path)


# ZIP without compression, clock or machine: the same members are the same bytes.

_TIME: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_PLAIN_FILE: Final = 0o100644 << 16
_MEMBER: Final = b"PK\x01\x02"
"""Begins each entry of the list of members; lines of JSON hold no such bytes."""
_MOST_MEMBERS: Final = 100
"""More are not even listed: a hundred thousand take seconds."""
_DAMAGED: Final = (
    zipfile.BadZipFile,
    NotImplementedError,  # a compression or version nobody knows
    RuntimeError,  # encrypted
    EOFError,
    struct.error,
    OSError,
    ValueError,
    OverflowError,
)


def pack(members: Mapping[str, bytes]) -> bytes:
    """Pack members in their order."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_STORED
            entry.create_system = _UNIX
            entry.external_attr = _PLAIN_FILE
            archive.writestr(entry, data)
    return packed.getvalue()


def unpack(path: Path, data: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """Unpack members that must be these, in this order, and nothing else.

    Args:
        path: The file, for messages.
        data: What is in it.
        names: The members.

    Raises:
        BankFormatError: The file is torn, or packed otherwise.
    """
    if (members := data.count(_MEMBER)) > _MOST_MEMBERS:
        msg = f"a bundle holds {', '.join(names)}, in this order and alone; here are {members:,} members"
        raise BankFormatError(msg, path=path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_entries(path, archive.infolist(), names, len(data))
            return {name: archive.read(name) for name in names}
    except BankFormatError:
        raise
    except _DAMAGED as error:
        words = " ".join(str(error).split()) or type(error).__name__
        msg = f"the bundle is torn or damaged: {words!a:.200}"
        raise BankFormatError(msg, path=path) from error


def _check_entries(
    path: Path, entries: Sequence[zipfile.ZipInfo], names: Sequence[str], size: int
) -> None:
    """Compare names and sizes before anything is unpacked."""
    found = [entry.orig_filename for entry in entries]  # `filename` ends at a NUL
    if found != list(names):
        listed = ", ".join(f"{name!a:.80}" for name in found[:5]) or "nothing"
        msg = f"a bundle holds {', '.join(names)}, in this order and alone; here is {listed}"
        raise BankFormatError(msg, path=path)
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED:
            msg = f"{entry.filename} is compressed; the members of a bundle are stored as they are"
            raise BankFormatError(msg, path=path)
        if entry.file_size > size or entry.compress_size > size:
            msg = f"{entry.filename} is said to be larger than the whole file"
            raise BankFormatError(msg, path=path)
