"""Files that appear whole or not at all, and that a power loss does not undo."""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes, *, alone: bool = False) -> None:
    """Write a file; one that is there is replaced at the end, or left as it was.

    Args:
        path: The file; its folder must be there.
        content: What it will hold.
        alone: Nobody else writes it meanwhile: the draft is `.<name>.tmp`, so that the next attempt
            replaces what a crash left of it.

    Raises:
        OSError: It cannot be written.
    """
    draft = path.parent / f".{path.name if alone else secrets.token_hex(8)}.tmp"
    try:
        descriptor = os.open(
            draft, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if alone else os.O_EXCL), 0o666
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
