"""Files that appear whole or not at all and that a power loss does not undo; errors name the path."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from langgraft._core.errors import RunDirectoryError


def write_whole(path: Path, content: bytes, *, alone: bool = False, mode: int = 0o666) -> None:
    """Write a file; one that is there is replaced at the end, or left as it was.

    Args:
        path: The file; its folder must be there.
        content: What it will hold.
        alone: Nobody else writes it meanwhile: the draft is `.<name>.tmp`, so that the next attempt
            replaces what a crash left of it.
        mode: Its permissions, as far as the process's umask leaves them.

    Raises:
        OSError: It cannot be written.
    """
    draft = path.parent / f".{path.name if alone else secrets.token_hex(8)}.tmp"
    try:
        descriptor = os.open(
            draft, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if alone else os.O_EXCL), mode
        )
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.replace(path)
        sync(path.parent)
    finally:
        with suppress(OSError):  # it is in place, or never came to be
            draft.unlink()


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`; the system may take it in several pieces.

    Raises:
        OSError: It cannot be written.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk.

    Raises:
        OSError: It cannot be opened or written.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(action: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` inside the block into one line that says what failed and where.

    Raises:
        RunDirectoryError: The block raised an `OSError`: disk full, no permission, …
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, FileNotFoundError):
            reason += " (is its disk still mounted?)"
        msg = f"cannot {action}: {reason}; put that right and run again, nothing committed is lost"
        raise RunDirectoryError(msg, path=path) from error


def make_directory(path: Path, *, parents: bool = True) -> None:
    """Make a directory unless it is there, and make the name durable.

    Args:
        path: Where.
        parents: Whether to make those it lies in; without them nothing is made where a disk is gone.

    Raises:
        RunDirectoryError: It cannot be made.
    """
    if path.is_dir():
        return
    with disk_errors("make the directory", path):
        path.mkdir(parents=parents, exist_ok=True)
        sync(path.parent)


def atomic_write(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, sees all of it or nothing.

    Raises:
        RunDirectoryError: The file cannot be written; an older one is left as it was.
    """
    with disk_errors("write", path):
        write_whole(path, data, alone=True)


def read_bytes(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        RunDirectoryError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise RunDirectoryError(msg, path=path) from error


def whole_lines(data: bytes) -> bytes:
    """Return bytes up to their last line break: what follows is a line that a crash cut short."""
    return data[: data.rfind(b"\n") + 1]


def each_whole_line(data: bytes) -> Iterator[bytes]:
    """Yield the lines that end, without their breaks, one at a time: there may be millions."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1


def user_cache_dir() -> Path:
    """Return the user's folder of caches, where MLE-bench keeps its data too (as `appdirs` has it)."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
