"""Files that survive a crash: written whole or not at all, with errors that name the path."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langgraft._core.errors import RunDirectoryError
from langgraft._core.files import sync, write_whole


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
        msg = f"cannot {action}: {reason}; put that right and run again, nothing committed is lost"
        raise RunDirectoryError(msg, path=path) from error


def make_directory(path: Path) -> None:
    """Make a directory and its parents unless they are there, and make the name durable.

    Raises:
        RunDirectoryError: It cannot be made.
    """
    if path.is_dir():
        return
    with disk_errors("make the directory", path):
        path.mkdir(parents=True, exist_ok=True)
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
