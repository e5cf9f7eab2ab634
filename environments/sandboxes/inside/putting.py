"""Writing files that the host sends into the workspace, and into nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable

MAX_NAME = 4096
"""Bytes of a path; Linux has the same bound."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def split_name(name: str) -> list[str]:
    """Return the parts of a relative path.

    Raises:
        ValueError: It leaves the folder, or is none.
    """
    parts = name.split("/")
    if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is no path inside the workspace")
    return parts


class Putting:
    """One file being written: under another name until it is whole.

    A link or FIFO that a program left under the file's name is replaced, never followed.

    Raises:
        OSError: It cannot be written: a folder on the way is a link or no folder, no space left.
        ValueError: The name leaves the workspace.
    """

    def __init__(self, workspace: int, name: str) -> None:
        *folders, self._name = split_name(name)
        self._folder = os.dup(workspace)
        self._file = -1
        try:
            for folder in folders:
                self._enter(folder)
            self._partial = f".{os.urandom(8).hex()}.part"
            self._file = os.open(self._partial, _NEW, 0o644, dir_fd=self._folder)
        except OSError:
            self.close()
            raise

    def _enter(self, folder: str) -> None:
        try:
            os.mkdir(folder, 0o755, dir_fd=self._folder)
        except FileExistsError:
            pass
        inner = os.open(folder, _FOLDER, dir_fd=self._folder)
        os.close(self._folder)
        self._folder = inner

    def write(self, data: bytes) -> None:
        """Append to it."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def finish(self) -> None:
        """Give it its name."""
        os.rename(self._partial, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self.close()

    def abandon(self) -> None:
        """Remove what was written."""
        try:
            os.unlink(self._partial, dir_fd=self._folder)
        except OSError:
            pass
        self.close()

    def close(self) -> None:
        """Close what is open."""
        for descriptor in (self._file, self._folder):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._folder = -1


class Puts:
    """Files of one request, written one after the other; the first refusal ends the writing."""

    def __init__(self, workspace: int) -> None:
        self.refused = ""
        self._workspace = workspace
        self._name = ""
        self._file: Putting | None = None

    def begin(self, name: str) -> None:
        """Begin with the next file, after finishing the one before."""
        self.finish()
        self._name = name
        if not self.refused:
            self._guarded(self._open)

    def write(self, data: bytes) -> None:
        """Append to it."""
        if self._file is not None:
            self._data = data
            self._guarded(self._append)

    def finish(self) -> None:
        """Give it its name."""
        if self._file is not None:
            self._guarded(self._file.finish)
        self._file = None

    def _open(self) -> None:
        self._file = Putting(self._workspace, self._name)

    def _append(self) -> None:
        assert self._file is not None
        self._file.write(self._data)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (OSError, ValueError) as error:
            self.refused = f"{self._name}: {getattr(error, 'strerror', None) or error}"
            if self._file is not None:
                self._file.abandon()
            self._file = None
