"""What was written to a folder of Chroma, as its one owner saw it: enough for indexes kept beside it.

It is told from one owner to the next, where the one before closed the folder. After a kill, or where
anybody else wrote to the database, nothing is known.
"""

import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Any, Final

from langgraft._core.canonical import JSON
from langgraft.memory.stores.changes import Changes
from langgraft.memory.stores.programs import Address, Namespace

INDEXES: Final = "langgraft-indexes"
"""Folder in that of the database, where indexes are."""
_AS_OF: Final = "as-of"
"""File in it that says what its last owner left."""
_MOST: Final = 10_000
"""Records whose last change is remembered."""


class FolderChanges:
    """Numbers the changes of a database. Threads may use it together.

    Args:
        folder: The folder, which must be this object's alone, and not be opened by Chroma yet.

    Raises:
        OSError: What was left cannot be taken away.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._name = uuid.uuid4().hex
        self._change = self._begins = 0
        self._written: dict[Address, int] = {}
        """Number of the last change of a record, in their order."""
        as_of = folder / INDEXES / _AS_OF
        try:
            self._take_over(json.loads(as_of.read_text("ascii")))
        except (OSError, ValueError, KeyError, TypeError):  # nothing left, or of another version
            self._written = {}
        as_of.unlink(missing_ok=True)  # until `leave`, nothing is as it was left

    def note(self, addresses: Iterable[Address]) -> None:
        """Note that records were written, or may have been."""
        with self._lock:
            self._change += 1
            for address in addresses:
                self._written.pop(address, None)
                self._written[address] = self._change
            if len(self._written) > _MOST:
                self._written, self._begins = {}, self._change

    def changes(self, prefix: Namespace, since: JSON) -> Changes:
        """Tell which records under a prefix were written since a moment."""
        with self._lock:
            now: JSON = [self._name, self._change]
            then = since[1] if isinstance(since, list) and since[0] == self._name else None
            if not isinstance(then, int) or not self._begins <= then <= self._change:
                return Changes(now, None)
            found: list[Address] = []
            for address in reversed(self._written):
                if self._written[address] <= then:
                    break
                if address[0][: len(prefix)] == prefix:
                    found.append(address)
            return Changes(now, found)

    def forget(self, prefix: Namespace) -> None:
        """Keep nothing about the records under a prefix."""
        with self._lock:
            for address in [each for each in self._written if each[0][: len(prefix)] == prefix]:
                del self._written[address]

    def leave(self) -> None:
        """Tell the next owner; Chroma must have closed the folder."""
        indexes = self._folder / INDEXES
        if not indexes.exists():
            return
        left = {
            "database": _database(self._folder),
            "name": self._name,
            "change": self._change,
            "begins": self._begins,
            "written": [[*address, number] for address, number in self._written.items()],
        }
        (indexes / _AS_OF).write_text(json.dumps(left), "ascii")

    def _take_over(self, left: Any) -> None:
        if left["database"] != _database(self._folder):
            return
        self._written = {(tuple(labels), key): number for labels, key, number in left["written"]}
        self._name, self._change, self._begins = left["name"], left["change"], left["begins"]


def _database(folder: Path) -> JSON:
    """Return what changes whenever anybody writes to the database in a folder, or opens it."""
    files = sorted(folder.glob("chroma.sqlite3*"))
    return [[each.name, each.stat().st_mtime_ns, each.stat().st_size] for each in files]
