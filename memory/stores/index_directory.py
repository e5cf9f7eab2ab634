"""The indexes of a ranked store on disk: a cache of what the store holds, and never more.

The store is the truth. Before a record is written to it, the record's address is in the journal
of every saved index that covers it. So whatever moment a process dies at, an index that is opened
again knows which records it may have missed, and they are read from the store once more. What is
damaged, torn or of other settings is dropped, and built anew from the store.

Each index is in a folder, with a journal of what changed since:

==============  =====================================================================
`index/`        what the index wrote
`manifest`      what it is, the checksum of every file, and what was unsettled
`journal`       addresses of records announced as written since, one batch a line
==============  =====================================================================

A folder gets its name only when everything in it is on disk.
"""

import json
import logging
import os
import re
import shutil
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol

from filelock import FileLock, Timeout
from xxhash import xxh3_64_intdigest

from langgraft._core.canonical import JSON, text_digest
from langgraft._core.errors import InfrastructureError, InputError, StorePathError
from langgraft._core.files import sync
from langgraft._core.forks import at_fork, fork_error, renewed
from langgraft.memory.stores.programs import Address, Namespace

_INDEX: Final = "index"
_MANIFEST: Final = "manifest"
_JOURNAL: Final = "journal"
_DRAFT: Final = ".part"


class Durable(Protocol):
    """What can be kept in files; see `langgraft.memory.rankers.base.DurableIndex`."""

    def save(self, folder: Path) -> None:
        """Write everything into an empty folder."""
        ...

    def load(self, folder: Path) -> None:
        """Become what `save` wrote."""
        ...


class DamagedSnapshotError(Exception):
    """A snapshot cannot be used. For `IndexDirectory` only, which has the index built anew."""


class Snapshot:
    """One index in a folder. No file of it is held open: there may be thousands.

    Attributes:
        folder: Where it is.
        prefix: What the namespaces of its records start with.
        dirty: Records to read again, from the manifest and from the journal.
        as_of: The moment of the store as of which it is, where the store knows moments.
    """

    def __init__(
        self,
        folder: Path,
        prefix: Namespace,
        dirty: Iterable[Address],
        as_of: JSON,
        files: "_Files",
    ) -> None:
        self.folder = folder
        self.prefix = prefix
        self.dirty = set(dirty)
        self.as_of = as_of
        self._files = files

    @classmethod
    def write(
        cls,
        folder: Path,
        index: Durable,
        *,
        identity: JSON,
        prefix: Namespace,
        dirty: Collection[Address],
        as_of: JSON = None,
        synced: bool = True,
    ) -> "Snapshot":
        """Save an index; on return it is on disk, unless it need not be `synced`.

        Raises:
            OSError: It cannot be written.
        """
        draft = folder.with_name(folder.name + _DRAFT)
        shutil.rmtree(draft, ignore_errors=True)
        (draft / _INDEX).mkdir(parents=True)
        index.save(draft / _INDEX)
        files = _Files(_XXH3, _checksums(draft / _INDEX, _XXH3))
        body = {
            "identity": identity,
            "prefix": prefix,
            "dirty": sorted(dirty),
            "as_of": as_of,
            "checksum": files.kind,
            "files": files.checksums,
        }
        (draft / _MANIFEST).write_bytes(_line(body).encode("ascii"))
        (draft / _JOURNAL).touch()
        for path in (*draft.rglob("*"), draft) if synced else ():
            sync(path)
        draft.replace(folder)
        if synced:
            sync(folder.parent)
        return cls(folder, prefix, dirty, as_of, files)

    @classmethod
    def open(cls, folder: Path, *, identity: JSON) -> "Snapshot":
        """Open what `write` wrote, without looking at the index yet.

        Raises:
            DamagedSnapshotError: It is damaged, or of other settings.
        """
        try:
            # As bytes: a file of text has Python look its encoding up, which takes longer than to read it.
            body = _read_line((folder / _MANIFEST).read_bytes().decode("ascii"))
            if body["identity"] != json.loads(json.dumps(identity)):
                raise DamagedSnapshotError("it is of other settings")
            written = (folder / _JOURNAL).read_bytes().decode("ascii").splitlines(keepends=True)
            addresses = [*body["dirty"], *(entry for line in written for entry in _read_line(line))]
            dirty = {(tuple(namespace), key) for namespace, key in addresses}
            files = _Files(body.get("checksum", _CRC32), body["files"])
            return cls(folder, tuple(body["prefix"]), dirty, body.get("as_of"), files)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedSnapshotError(f"it cannot be read: {error!r}") from error

    def load(self, index: Durable) -> None:
        """Load the index into an empty one.

        Raises:
            DamagedSnapshotError: A file is not as it was written.
        """
        try:
            if _checksums(self.folder / _INDEX, self._files.kind) != self._files.checksums:
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


_CRC32: Final = "crc32"
"""What manifests that name none have."""
_XXH3: Final = "xxh3"
"""Several times as fast."""

_MAPPED_BYTES: Final = 1 << 20
"""Larger files are looked at where the system has them, without a copy."""


class _Files(NamedTuple):
    """Which files there were."""

    kind: str
    """Of checksum."""
    checksums: Mapping[str, Sequence[int]]
    """Size and checksum of each."""


def _checksums(folder: Path, kind: str) -> dict[str, list[int]]:
    """Return size and checksum of all files in a folder, by their paths in it.

    Raises:
        KeyError: No checksum is of this kind.
    """
    checksum = {_CRC32: zlib.crc32, _XXH3: xxh3_64_intdigest}[kind]
    found = {}
    for name in _names(folder):
        with (folder / name).open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size < _MAPPED_BYTES:
                found[name] = [size, checksum(file.read())]
                continue
            with mmap(file.fileno(), size, access=ACCESS_READ) as mapped:
                found[name] = [size, checksum(mapped)]
    return found


def _names(folder: Path | str, above: str = "") -> list[str]:
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{above}{entry.name}"
            names += _names(entry.path, f"{name}/") if entry.is_dir() else [name]
    return sorted(names)


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


logger = logging.getLogger(__name__)

LEAST_UNSAVED = 1_000
"""Records that reopening may always read again: as fast as saving them more often."""

UNSAVED_SHARE: Final = 4
"""Beyond that, an index is saved when more than one in so many of its documents changed."""

_LOCK: Final = "lock"
_FORMAT: Final = 4
_OURS: Final = re.compile(r"([0-9a-f]{16})-(\d+)(\.part)?")


class IndexDirectory:
    """Saved indexes, by the namespace prefix they cover. Threads may use it together.

    Args:
        path: The directory; made where it is missing.
        identity: What a saved index must have in common with those that are asked for.

    Raises:
        StorePathError: Another ranked store has the directory open, or it cannot be used.
    """

    def __init__(self, path: Path, identity: JSON) -> None:
        self.path = path.resolve()
        self._identity: JSON = {"format": _FORMAT, "index": identity}
        self._guard = renewed(Lock())
        self._snapshots: dict[Namespace, Snapshot] = {}
        self._unwritable: set[Namespace] = set()
        self._closed = self._inherited = False
        self._lock = _locked(self.path)
        at_fork("in_child", self._in_child)
        try:
            self._open_all()
        except BaseException:
            self._lock.release()
            raise

    def load(self, prefix: Namespace, index: Durable) -> frozenset[Address] | None:
        """Load the index of a prefix into an empty one.

        Returns:
            The records that must be read again, or `None` if there is no usable index; the one
            that was given may be half filled then.
        """
        with self._guard:
            snapshot = self._snapshots.get(prefix)
            if snapshot is None or self._closed:
                return None
            try:
                snapshot.load(index)
            except DamagedSnapshotError as error:
                logger.info("index of %r in %s is built anew: %s", prefix, self.path, error)
                self._drop(prefix)
                return None
            return frozenset(snapshot.dirty)

    def save(self, prefix: Namespace, index: Durable, dirty: Collection[Address]) -> None:
        """Save an index in which the records `dirty` may be out of date.

        An index that cannot be written is not kept; it will be built anew.
        """
        with self._guard:
            before = self._snapshots.get(prefix)
            number = 1 if before is None else _number(before.folder) + 1
            folder = self.path / f"{text_digest(json.dumps(prefix))[:16]}-{number}"
            try:
                snapshot = Snapshot.write(
                    folder, index, identity=self._identity, prefix=prefix, dirty=dirty
                )
            except OSError as error:
                logger.warning("index of %r cannot be kept in %s: %s", prefix, self.path, error)
                self._unwritable.add(prefix)
                return
            self._drop(prefix)
            self._snapshots[prefix] = snapshot

    def announce(self, addresses: Collection[Address]) -> None:
        """Note that records are about to be written; on return that is on disk.

        Raises:
            InputError: The directory was closed; nothing must be written.
            InfrastructureError: Nothing can be noted, and what is saved cannot be dropped either.
        """
        with self._guard:
            if self._inherited:
                instead = "keep the records in a SQLiteFileStore, which keeps indexes itself"
                raise fork_error(f"the index directory {self.path}", instead)
            if self._closed:
                msg = (
                    f"the index directory {self.path} of this store was closed, so that nothing"
                    " can be written through it any more; open a new RankedStore"
                )
                raise InputError(msg)
            for prefix, snapshot in list(self._snapshots.items()):
                try:
                    snapshot.note(addresses)
                except OSError as error:
                    logger.warning("index of %r is dropped: %s", prefix, error)
                    self._unwritable.add(prefix)
                    self._drop(prefix)

    def due(self, prefix: Namespace, documents: int, *, anew: bool) -> bool:
        """Say whether an index has changed so much that it should be saved now.

        Args:
            prefix: Of its records.
            documents: How many it has.
            anew: Whether opening what is saved would have all of them read again.
        """
        with self._guard:
            if self._closed or prefix in self._unwritable:
                return False
            return self._unsaved(prefix, documents, anew=anew) > max(
                LEAST_UNSAVED, documents // UNSAVED_SHARE
            )

    def behind(self, prefix: Namespace, documents: int, *, anew: bool) -> bool:
        """Say whether an index has changed at all since it was saved; see `due`."""
        with self._guard:
            return not self._closed and self._unsaved(prefix, documents, anew=anew) > 0

    def clear(self) -> None:
        """Drop all saved indexes, unless others may have the directory by now."""
        with self._guard:
            for prefix in [] if self._closed else list(self._snapshots):
                self._drop(prefix)

    def close(self) -> None:
        """Let others have the directory; saved indexes stay."""
        with self._guard:
            self._closed = True
            if not self._inherited:
                self._lock.release()

    def _in_child(self) -> None:
        self._closed = self._inherited = True  # it is the parent's alone

    def _unsaved(self, prefix: Namespace, documents: int, *, anew: bool) -> int:
        """Count the records that opening the index again would read."""
        snapshot = self._snapshots.get(prefix)
        return documents if anew or snapshot is None else len(snapshot.dirty)

    def _open_all(self) -> None:
        """Open the newest of each prefix and clear away the rest."""
        for folder in _superseded(self.path):
            remove(folder)
        for folder in _ours(self.path):
            try:
                snapshot = Snapshot.open(folder, identity=self._identity)
            except DamagedSnapshotError as error:
                logger.info("index %s is built anew: %s", folder, error)
                remove(folder)
            else:
                self._snapshots[snapshot.prefix] = snapshot

    def _drop(self, prefix: Namespace) -> None:
        snapshot = self._snapshots.pop(prefix, None)
        if snapshot is None:
            return
        try:
            remove(snapshot.folder)
        except OSError as error:
            msg = (
                f"the saved index {snapshot.folder} is out of date and cannot be deleted:"
                f" {error.strerror}; delete it by hand"
            )
            raise InfrastructureError(msg) from error


def _locked(path: Path) -> FileLock:
    """Make a directory this object's alone."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / _LOCK, thread_local=False)
        lock.acquire(timeout=0)
    except Timeout:
        msg = (
            "is the index directory of a store that is open, in this process or another; close"
            " that one, or give each store a directory of its own"
        )
        raise StorePathError(msg, path=path) from None
    except OSError as error:
        msg = f"cannot be used as an index directory: {error.strerror}"
        raise StorePathError(msg, path=path) from error
    return lock


def _ours(path: Path) -> list[Path]:
    """Return the folders of snapshots, oldest first."""
    found = (entry for entry in path.iterdir() if _OURS.fullmatch(entry.name) and entry.is_dir())
    return sorted(found, key=lambda folder: (_number(folder), folder.name))


def _superseded(path: Path) -> list[Path]:
    """Return what was never finished, and what there is a newer one of.

    A newer one may be damaged. The older one lacks what was written since and is of no use.
    """
    drafts = [folder for folder in _ours(path) if folder.suffix]
    whole = [folder for folder in _ours(path) if not folder.suffix]
    newest = {folder.name.partition("-")[0]: folder for folder in whole}
    return [*drafts, *(folder for folder in whole if folder not in newest.values())]


def _number(folder: Path) -> int:
    match = _OURS.fullmatch(folder.name)
    assert match is not None
    return int(match[2])
