"""Digests of files, kept from one process to the next: large data is read once, and not at each run.

A file counts as the one that was read as long as its path, size, time of change and inode are the
same. Whoever sets a clock back can deceive that, and no accident does.
"""

import hashlib
import os
import time
from pathlib import Path
from typing import Final, Literal

from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import user_cache_dir
from langgraft._core.sqlite_file import Layout, SQLiteFile

Algorithm = Literal["md5", "sha256"]

_FILE: Final = Layout(
    kind="a cache of digests",
    application=0x6C676466,
    version=1,
    schema=(
        "CREATE TABLE digests (path TEXT, algorithm TEXT, size INTEGER, modified INTEGER,"
        " changed INTEGER, inode INTEGER, digest TEXT, PRIMARY KEY (path, algorithm)) WITHOUT ROWID"
    ),
    advice="delete it: it is only a cache",
    durable=False,
)
_SETTLED: Final = 2_000_000_000
"""Nanoseconds from a file's last change to when its times tell it from one that is changed again."""
_SMALL: Final = 1 << 16
"""Bytes up to which reading a file again costs no more than looking it up."""


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

    Args:
        path: The file that they are kept in; `None`: in the user's cache.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = default_digest_file() if path is None else path
        self._file: SQLiteFile | None = None
        self._usable = True

    def digest(self, path: Path, algorithm: Algorithm = "sha256") -> str:
        """Return a file's digest, in hexadecimal; it is read only where it is not known.

        Raises:
            OSError: It cannot be read.
        """
        before = path.stat()
        if before.st_size <= _SMALL:
            return file_digest(path, algorithm)
        key = (os.fspath(path.resolve()), algorithm)
        if (known := self._known(key, before)) is not None:
            return known
        made = file_digest(path, algorithm)
        last = max(before.st_mtime_ns, before.st_ctime_ns)
        if _stamp(path.stat()) == _stamp(before) and time.time_ns() - last > _SETTLED:
            self._keep(key, before, made)
        return made

    def _known(self, key: tuple[str, str], found: os.stat_result) -> str | None:
        statement = (
            "SELECT digest FROM digests WHERE path = ? AND algorithm = ? AND size = ?"
            " AND modified = ? AND changed = ? AND inode = ?"
        )
        if (file := self._opened()) is None:
            return None
        try:
            with file.transaction(write=False) as cursor:
                row = cursor.execute(statement, (*key, *_stamp(found))).fetchone()
        except (InputError, InfrastructureError):
            self._usable = False
            return None
        return None if row is None else str(row[0])

    def _keep(self, key: tuple[str, str], found: os.stat_result, made: str) -> None:
        if (file := self._opened()) is None:
            return
        try:
            with file.transaction(write=True) as cursor:
                cursor.execute(
                    "INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*key, *_stamp(found), made),
                )
        except (InputError, InfrastructureError):
            self._usable = False

    def _opened(self) -> SQLiteFile | None:
        if self._file is None and self._usable:
            try:
                self._file = SQLiteFile(self._path, _FILE)
            except (InputError, InfrastructureError):
                self._usable = False
        return self._file if self._usable else None

    def close(self) -> None:
        """Close the file; the next digest opens it again."""
        if self._file is not None:
            self._file.close()


def _stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    """Return what tells a file from the one it was: size, times of change, inode."""
    # An inode may take all 64 bits, of which SQLite has one for the sign.
    inode = found.st_ino & ((1 << 63) - 1)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, inode
