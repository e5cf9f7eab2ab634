"""Removing a folder with all a program left in it: any depth, any permissions, any number."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator

_AT_ONCE = 10_000


def remove_tree(path: str) -> None:
    """Remove a folder and all in it; links are removed, never followed.

    Folders inside folders are first moved to the top, so that no depth is too great.

    Raises:
        OSError: Something cannot be removed, such as what belongs to another user.
    """
    root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    names = itertools.count()
    prefix = f".{os.urandom(8).hex()}-"
    try:
        while True:
            found = _some(root)
            if not found:
                break
            for name in found:
                if not _unlinked(name, root):
                    _empty(name, root, (f"{prefix}{number}" for number in names))
    finally:
        os.close(root)
    os.rmdir(path)


def _unlinked(name: str, folder: int) -> bool:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _some(folder: int) -> list[str]:
    """Return some names of a folder; there may be millions."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in itertools.islice(entries, _AT_ONCE)]


def _empty(name: str, root: int, fresh_names: Iterator[str]) -> None:
    """Remove a folder, after what is in it was removed or moved to the root."""
    # The owner may take permissions away from itself; it can also give them back.
    os.chmod(name, 0o700, dir_fd=root)
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    try:
        while True:
            found = _some(folder)
            if not found:
                break
            for inner in found:
                if not _unlinked(inner, folder):
                    os.chmod(inner, 0o700, dir_fd=folder)
                    os.rename(inner, next(fresh_names), src_dir_fd=folder, dst_dir_fd=root)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=root)
