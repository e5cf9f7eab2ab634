"""Digests of files, kept from one process to the next: large data is read once, and not at each run.

A file counts as the one that was read as long as its path, size, time of change and inode are the
same. Whoever sets a clock back can deceive that, and no accident does.
"""

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import user_cache_dir
from langgraft._core.sqlite_file import Layout, SQLiteFile

Algorithm = Literal["md5", "sha256"]

_FILE: Final = Layout(
    kind="a cache of digests",
    application=0x6C676466,
    version=1,
    schema=(
        "CREATE TABLE digests (folder TEXT, algorithm TEXT, name TEXT, size INTEGER,"
        " modified INTEGER, changed INTEGER, inode INTEGER, digest TEXT,"
        " PRIMARY KEY (folder, algorithm, name)) WITHOUT ROWID"
    ),
    advice="delete it: it is only a cache",
    durable=False,
)
_SETTLED: Final = 2_000_000_000
"""Nanoseconds from a file's last change to when its times tell it from one that is changed again."""
_SMALL: Final = 1 << 12
"""Bytes up to which reading a file again costs no more than looking it up."""
_AT_ONCE: Final = 1000
"""Digests that are written together."""


def default_digest_file() -> Path:
    """Return where digests are kept unless another place is given."""
    return user_cache_dir() / "langgraft" / "digests.sqlite"


def file_digest(path: Path, algorithm: Algorithm = "sha256") -> str:
    """Read a file and return its digest, in hexadecimal.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.new(algorithm, usedforsecurity=False)
        ).hexdigest()


class FileDigests:
    """Digests of files by path, size and time. A cache that cannot be used costs time alone.

        with FileDigests() as digests:
            digests.digest(Path("train.csv"))

    Folders of a hundred thousand pictures are looked up at once. For one thread.

    Args:
        path: The file that they are kept in; `None`: in the user's cache.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = default_digest_file() if path is None else path
        self._file: SQLiteFile | None = None
        self._usable = True
        self._folders: dict[tuple[Path, Algorithm], _Folder] = {}
        self._new: list[tuple[str | int, ...]] = []

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def digest(self, path: Path, algorithm: Algorithm = "sha256") -> str:
        """Return a file's digest, in hexadecimal; it is read only where it is not known.

        Raises:
            OSError: It cannot be read.
        """
        before = path.stat()
        if before.st_size <= _SMALL:
            return file_digest(path, algorithm)
        folder = self._folder(path.parent, algorithm)
        known = folder.known.get(path.name)
        if known is not None and known[0] == _stamp(before):
            return known[1]
        made = file_digest(path, algorithm)
        last = max(before.st_mtime_ns, before.st_ctime_ns)
        if _stamp(path.stat()) == _stamp(before) and time.time_ns() - last > _SETTLED:
            folder.known[path.name] = _stamp(before), made
            self._new.append((folder.path, algorithm, path.name, *_stamp(before), made))
            if len(self._new) >= _AT_ONCE:
                self._write()
        return made

    def close(self) -> None:
        """Write what is new, and close the file."""
        self._write()
        if self._file is not None:
            self._file.close()

    def _folder(self, folder: Path, algorithm: Algorithm) -> "_Folder":
        if (folder, algorithm) not in self._folders:
            found = _Folder(os.fspath(folder.resolve()), {})
            statement = (
                "SELECT name, size, modified, changed, inode, digest FROM digests"
                " WHERE folder = ? AND algorithm = ?"
            )
            with self._cursor(write=False) as cursor:
                if cursor is not None:
                    for name, *stamp, digest in cursor.execute(statement, (found.path, algorithm)):
                        found.known[name] = tuple(stamp), digest
            self._folders[folder, algorithm] = found
        return self._folders[folder, algorithm]

    def _write(self) -> None:
        if not self._new:
            return
        with self._cursor(write=True) as cursor:
            if cursor is not None:
                statement = "INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                cursor.executemany(statement, self._new)
        self._new.clear()

    @contextmanager
    def _cursor(self, *, write: bool) -> Iterator[sqlite3.Cursor | None]:
        """Give the file's cursor; nothing where it cannot be used, and no error where that shows."""
        yielded = False
        try:
            if not self._usable:
                yielded = True
                yield None
                return
            if self._file is None:
                self._file = SQLiteFile(self._path, _FILE)
            with self._file.transaction(write=write) as cursor:
                yielded = True
                yield cursor
        except (InputError, InfrastructureError):
            self._usable = False
            if not yielded:
                yield None


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    known: dict[str, tuple[tuple[int, ...], str]]
    """Stamps and digests of its files, by name."""


def _stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    """Return what tells a file from the one it was: size, times of change, inode."""
    # An inode may take all 64 bits, of which SQLite has one for the sign.
    inode = found.st_ino & ((1 << 63) - 1)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, inode
