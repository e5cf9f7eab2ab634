"""An index in a folder: whole, known to be so, and with a journal of what changed since.

==============  =====================================================================
`index/`        what the index wrote
`manifest`      what it is, the checksum of every file, and what was unsettled
`journal`       addresses of records announced as written since, one batch a line
==============  =====================================================================

A folder gets its name only when everything in it is on disk.
"""

import json
import os
import shutil
import zlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import JSON
from langgraft._core.files import sync
from langgraft.memory.rankers.base import DurableIndex
from langgraft.memory.stores.records import Address, Namespace

_INDEX: Final = "index"
_MANIFEST: Final = "manifest"
_JOURNAL: Final = "journal"
_DRAFT: Final = ".part"


class DamagedSnapshotError(Exception):
    """A snapshot cannot be used. For `IndexDirectory` only, which has the index built anew."""


class Snapshot:
    """One index in a folder. No file of it is held open: there may be thousands.

    Attributes:
        folder: Where it is.
        prefix: What the namespaces of its records start with.
        dirty: Records to read again, from the manifest and from the journal.
    """

    def __init__(self, folder: Path, prefix: Namespace, dirty: Iterable[Address]) -> None:
        self.folder = folder
        self.prefix = prefix
        self.dirty = set(dirty)

    @classmethod
    def write(
        cls,
        folder: Path,
        index: DurableIndex,
        *,
        identity: JSON,
        prefix: Namespace,
        dirty: Collection[Address],
    ) -> "Snapshot":
        """Save an index; on return it is on disk.

        Raises:
            OSError: It cannot be written.
        """
        draft = folder.with_name(folder.name + _DRAFT)
        shutil.rmtree(draft, ignore_errors=True)
        (draft / _INDEX).mkdir(parents=True)
        index.save(draft / _INDEX)
        body = {
            "identity": identity,
            "prefix": prefix,
            "dirty": sorted(dirty),
            "files": {name: _checksum(draft / _INDEX / name) for name in _names(draft / _INDEX)},
        }
        (draft / _MANIFEST).write_text(_line(body), encoding="ascii")
        (draft / _JOURNAL).touch()
        for path in (*draft.rglob("*"), draft):
            sync(path)
        draft.replace(folder)
        sync(folder.parent)
        return cls(folder, prefix, dirty)

    @classmethod
    def open(cls, folder: Path, *, identity: JSON) -> "Snapshot":
        """Open what `write` wrote, without looking at the index yet.

        Raises:
            DamagedSnapshotError: It is damaged, or of other settings.
        """
        try:
            body = _read_line((folder / _MANIFEST).read_text(encoding="ascii"))
            if body["identity"] != json.loads(json.dumps(identity)):
                raise DamagedSnapshotError("it is of other settings")
            written = (folder / _JOURNAL).read_text(encoding="ascii").splitlines(keepends=True)
            addresses = [*body["dirty"], *(entry for line in written for entry in _read_line(line))]
            dirty = {(tuple(namespace), key) for namespace, key in addresses}
            return cls(folder, tuple(body["prefix"]), dirty)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedSnapshotError(f"it cannot be read: {error!r}") from error

    def load(self, index: DurableIndex) -> None:
        """Load the index into an empty one.

        Raises:
            DamagedSnapshotError: A file is not as it was written.
        """
        try:
            body = _read_line((self.folder / _MANIFEST).read_text(encoding="ascii"))
            names = _names(self.folder / _INDEX)
            if {name: _checksum(self.folder / _INDEX / name) for name in names} != body["files"]:
                raise DamagedSnapshotError("its files are not as they were written")
            index.load(self.folder / _INDEX)
        except (OSError, ValueError, KeyError) as error:
            raise DamagedSnapshotError(f"it cannot be read: {error!r}") from error

    def note(self, addresses: Collection[Address]) -> None:
        """Note that records under the prefix are about to be written; on return it is on disk.

        Raises:
            OSError: It cannot be written.
        """
        length = len(self.prefix)
        new = {at for at in addresses if at[0][:length] == self.prefix} - self.dirty
        if not new:
            return
        line = _line(sorted(new)).encode("ascii")
        descriptor = os.open(self.folder / _JOURNAL, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError("the journal was written only in part")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self.dirty |= new


def remove(folder: Path) -> None:
    """Delete a snapshot, whatever becomes of its larger files.

    Raises:
        OSError: Not even its manifest can be deleted.
    """
    (folder / _MANIFEST).unlink(missing_ok=True)
    sync(folder)  # or a power loss would bring it back, without what was written since
    shutil.rmtree(folder, ignore_errors=True)


def _names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def _checksum(path: Path) -> list[int]:
    """Return size and CRC-32 of a file."""
    size, checksum = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            size += len(block)
            checksum = zlib.crc32(block, checksum)
    return [size, checksum]


def _line(value: Any) -> str:
    """Write a value as one line that carries its own checksum."""
    text = json.dumps(value)
    return f"{zlib.crc32(text.encode('ascii')):08x} {text}\n"


def _read_line(line: str) -> Any:
    """Read what `_line` wrote.

    Raises:
        ValueError: The line is torn or damaged.
    """
    checksum, _, text = line.partition(" ")
    if not line.endswith("\n") or int(checksum, 16) != zlib.crc32(text[:-1].encode("ascii")):
        msg = f"a line is torn or damaged: {line[:80]!r}"
        raise ValueError(msg)
    return json.loads(text)
