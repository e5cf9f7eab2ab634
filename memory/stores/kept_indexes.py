"""Stores that tell what was written, and indexes kept beside them: a cache that processes share.

Each says as of which moment of the store it is. Whoever opens it reads again what was written since,
by whomever, and nothing else; however a process ends, nothing need be noted before a write. What is
damaged, of other settings, or older than the store can tell of is built anew.

===========================  =======================================================
`PREFIX/KIND-NUMBER/`        an index, as `langgraft.memory.stores.index_directory`
                             has it; the highest number is the latest
`PREFIX/lock`                held by the process that saves one
===========================  =======================================================
"""

import errno
import logging
import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol, runtime_checkable
from weakref import WeakSet

from filelock import FileLock, Timeout
from langgraph.store.base import BaseStore

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import StorePathError
from langgraft.memory.stores.index_directory import DamagedSnapshotError, Durable, Snapshot
from langgraft.memory.stores.programs import Address, Namespace, Program

logger = logging.getLogger(__name__)

_FORMAT: Final = 2
_LOCK: Final = "lock"
_ATTEMPTS: Final = 3
"""How often to look for an index while another process puts newer ones in its place."""


class Reopened(NamedTuple):
    """What is to be known of an index that was loaded."""

    dirty: Collection[Address]
    """Records to read again, beside those written since."""
    as_of: JSON
    """The moment of the store as of which it is."""


class Unsaved(Protocol):
    """Who has indexes that may be saved."""

    def flush(self, log: "ChangeLog") -> None:
        """Save what changed."""
        ...


class IndexFolder:
    """Where the indexes of a store's records are kept, and who has some that are not saved yet.

    Attributes:
        path: The folder, which is made when there is something to keep.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._users: WeakSet[Unsaved] = WeakSet()

    def enter(self, user: Unsaved) -> None:
        """Have somebody asked to save before the store is closed."""
        self._users.add(user)

    def flush(self, log: "ChangeLog") -> None:
        """Have everything saved; the store must be open still."""
        for user in list(self._users):
            user.flush(log)

    def drop(self, prefix: Namespace) -> None:
        """Delete the indexes that hold the records under a prefix, of whatever settings.

        Raises:
            StorePathError: They cannot be deleted.
        """
        for length in range(len(prefix) + 1):
            place = _place(self.path, prefix[:length])
            try:
                shutil.rmtree(place)
            except OSError as error:
                if place.exists():  # it was, and another process was not faster
                    msg = f"holds an index that cannot be deleted: {error.strerror}"
                    raise StorePathError(msg, path=place) from error


class Changes(NamedTuple):
    """What was written under a prefix since a moment."""

    as_of: JSON
    """This moment, as the store knows it; `None` at no moment."""
    addresses: Sequence[Address] | None
    """Of records that were written or deleted; `None`: the store cannot tell."""


@runtime_checkable
class ChangeLog(Protocol):
    """A store that tells what was written to it, in this process and others.

    Attributes:
        indexes: Where indexes of its records are kept.
    """

    indexes: IndexFolder

    def changes(self, prefix: Namespace, since: JSON) -> Changes:
        """Tell what was written under a prefix since a moment; `None`: at no moment, ask for now."""
        ...

    async def achanges(self, prefix: Namespace, since: JSON) -> Changes:
        """Do as `changes` does, asynchronously."""
        ...

    def forget_deleted(self, prefix: Namespace) -> None:
        """Keep no trace of records that were deleted under a prefix; its indexes are built anew."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """An effect: a store is asked what was written."""

    log: ChangeLog
    prefix: Namespace
    since: JSON

    def do(self) -> Changes:
        return self.log.changes(self.prefix, self.since)

    async def ado(self) -> Changes:
        return await self.log.achanges(self.prefix, self.since)


def changes(log: ChangeLog, prefix: Namespace, since: JSON) -> Program[Changes]:
    """Ask a store what was written under a prefix since a moment."""
    answer: object = yield _Asked(log, prefix, since)
    assert isinstance(answer, Changes)
    return answer


def change_log(store: BaseStore) -> ChangeLog | None:
    """Return who tells what was written to a store, in whatever it is wrapped, if anybody does."""
    while not isinstance(store, ChangeLog):
        inner = getattr(store, "store", None)
        if not isinstance(inner, BaseStore):
            return None
        store = inner
    return store


class KeptIndexes:
    """The indexes of one kind, by the namespace prefix they cover. Threads may use it together.

    Args:
        path: Where they are.
        identity: What an index must have in common with those that are asked for.
    """

    def __init__(self, path: Path, identity: JSON) -> None:
        self.path = path
        self._identity: JSON = {"format": _FORMAT, "index": identity}
        self._kind = digest(self._identity)[:16]
        self._writable = True
        self._dropped: set[tuple[Namespace, int]] = set()

    def load(self, prefix: Namespace, index: Durable) -> Reopened | None:
        """Load the latest index of a prefix into an empty one.

        Returns:
            What is to be known of it, or `None` if there is no usable one; the one that was given
            may be half filled then.
        """
        for _ in range(_ATTEMPTS):
            kept = self._numbered(prefix)
            latest = max(kept, default=0)
            if not kept or (prefix, latest) in self._dropped:
                return None
            folder = kept[latest]
            try:
                snapshot = Snapshot.open(folder, identity=self._identity)
                if snapshot.prefix == prefix:
                    snapshot.load(index)
                    return Reopened(snapshot.dirty, snapshot.as_of)
            except DamagedSnapshotError as error:
                if folder.exists():
                    logger.info("index %s is built anew: %s", folder, error)
                    return None
        return None

    def save(
        self, prefix: Namespace, index: Durable, dirty: Collection[Address], as_of: JSON
    ) -> None:
        """Keep an index that is as of a moment, but for the records `dirty`.

        One that cannot be written is not kept; nor is it while another process keeps one.
        """
        if not self._writable:
            return
        place = _place(self.path, prefix)
        try:
            place.mkdir(parents=True, exist_ok=True)
            with FileLock(place / _LOCK, timeout=0):
                before = self._numbered(prefix)
                folder = place / f"{self._kind}-{max(before, default=0) + 1}"
                # Not synced: what a power loss tears is told by its checksums, and built anew.
                Snapshot.write(
                    folder,
                    index,
                    identity=self._identity,
                    prefix=prefix,
                    dirty=dirty,
                    as_of=as_of,
                    synced=False,
                )
                for old in before.values():
                    shutil.rmtree(old, ignore_errors=True)
        except Timeout:
            return
        except OSError as error:
            expected = error.errno in (errno.EROFS, errno.EACCES)  # where one may only read
            level = logging.INFO if expected else logging.WARNING
            logger.log(level, "index of %r cannot be kept in %s: %s", prefix, place, error)
            self._writable = False

    def drop(self, prefix: Namespace) -> None:
        """Delete the index of a prefix; one that cannot be deleted is not looked at any more."""
        for number, folder in self._numbered(prefix).items():
            self._dropped.add((prefix, number))
            shutil.rmtree(folder, ignore_errors=True)

    def _numbered(self, prefix: Namespace) -> dict[int, Path]:
        place = _place(self.path, prefix)
        try:
            with os.scandir(place) as entries:  # many times as fast as `glob`
                names = [entry.name for entry in entries]
        except OSError:  # there is none, or it cannot be used
            return {}
        numbered = [name.partition(f"{self._kind}-") for name in names]
        return {int(n): place / f"{kind}{n}" for _, kind, n in numbered if kind and n.isdecimal()}


def _place(path: Path, prefix: Namespace) -> Path:
    return path / digest(list(prefix))[:32]
