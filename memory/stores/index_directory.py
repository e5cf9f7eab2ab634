"""The indexes of a ranked store on disk: a cache of what the store holds, and never more.

The store is the truth. Before a record is written to it, the record's address is in the journal
of every saved index that covers it. So whatever moment a process dies at, an index that is opened
again knows which records it may have missed, and they are read from the store once more. What is
damaged, torn or of other settings is dropped, and built anew from the store.
"""

import json
import logging
import re
from collections.abc import Collection
from pathlib import Path
from threading import Lock
from typing import Final

from filelock import FileLock, Timeout

from langgraft._core.canonical import JSON, text_digest
from langgraft._core.errors import InfrastructureError, InputError, StorePathError
from langgraft.memory.rankers.base import DurableIndex
from langgraft.memory.stores.records import Address, Namespace
from langgraft.memory.stores.snapshots import DamagedSnapshotError, Snapshot, remove

logger = logging.getLogger(__name__)

LEAST_UNSAVED = 1_000
"""Records that reopening may always read again: as fast as saving them more often."""

UNSAVED_SHARE: Final = 4
"""Beyond that, an index is saved when more than one in so many of its documents changed."""

_LOCK: Final = "lock"
_FORMAT: Final = 1
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
        self._guard = Lock()
        self._snapshots: dict[Namespace, Snapshot] = {}
        self._unwritable: set[Namespace] = set()
        self._closed = False
        self._lock = _locked(self.path)
        try:
            self._open_all()
        except BaseException:
            self._lock.release()
            raise

    def load(self, prefix: Namespace, index: DurableIndex) -> frozenset[Address] | None:
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

    def save(self, prefix: Namespace, index: DurableIndex, dirty: Collection[Address]) -> None:
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

    def due(self, prefix: Namespace, documents: int) -> bool:
        """Say whether an index has changed so much that it should be saved now."""
        with self._guard:
            if self._closed or prefix in self._unwritable:
                return False
            return self._unsaved(prefix, documents) > max(LEAST_UNSAVED, documents // UNSAVED_SHARE)

    def behind(self, prefix: Namespace, documents: int) -> bool:
        """Say whether an index has changed at all since it was saved."""
        with self._guard:
            return not self._closed and self._unsaved(prefix, documents) > 0

    def clear(self) -> None:
        """Drop all saved indexes, unless others may have the directory by now."""
        with self._guard:
            for prefix in [] if self._closed else list(self._snapshots):
                self._drop(prefix)

    def close(self) -> None:
        """Let others have the directory; saved indexes stay."""
        with self._guard:
            self._closed = True
            self._lock.release()

    def _unsaved(self, prefix: Namespace, documents: int) -> int:
        """Count the records that opening the index again would read."""
        snapshot = self._snapshots.get(prefix)
        return documents if snapshot is None else len(snapshot.dirty)

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
