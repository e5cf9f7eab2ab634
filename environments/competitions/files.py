"""Files that a program of an agent's wrote, read without trust in their kind or size."""

import os
import stat
from pathlib import Path

from langgraft._core.errors import LanggraftError


class UnusableFileError(LanggraftError):
    """A file cannot be taken as a submission; the message may be shown to an agent."""


def read_bounded(path: Path, *, most: int) -> bytes:
    """Return what a regular file holds.

    Never follows a symbolic link in the last component (it may lead to the answers), never waits
    at a pipe, and never reads more than `most` bytes.

    Raises:
        UnusableFileError: There is no such file, it is no regular file, or too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        if os.path.islink(path):  # noqa: PTH114  (`Path.is_symlink` raises for long names)
            raise UnusableFileError("it is a symbolic link, not a file") from error
        raise UnusableFileError("there is no file that can be read") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableFileError("it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1) if status.st_size <= most else b""
    except OSError as error:
        raise UnusableFileError(f"it cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if status.st_size > most or len(data) > most:
        size = max(status.st_size, len(data))
        msg = f"it is too large: {size:,} bytes, and at most {most:,} are read"
        raise UnusableFileError(msg)
    return data
