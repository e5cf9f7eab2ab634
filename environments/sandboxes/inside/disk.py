"""How much a workspace on disk holds, looked at while programs run in it.

No kernel holds such a bound without the help of root, so that it is held by looking: at what lies in
the workspace, at files that were deleted and are still open, and at what the disk has left. A look
goes on in slices between the supervisor's other duties, and takes a fifth of a processor at most.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator

LOOK_SECONDS = 0.25
"""From the end of one look at a small workspace to the next."""
SLICE_SECONDS = 0.02
"""How long a look may keep the supervisor from all else."""

_LEAST = 4096
"""Bytes that an entry counts at the least, a block: one without content takes room, too."""
_LINKS = 200_000
"""Files of several names that are counted once; more are counted for each name."""
_ENDLESS = 1 << 62


def reserve(total: int) -> int:
    """Return the bytes that are to be left on a disk of so many, whatever programs write."""
    return min(1 << 30, total // 20)


class Disk:
    """Watches a workspace.

    Args:
        path: Of the workspace.
        most: Bytes that it may hold.
        mounted: What is mounted in it, by paths from it: not looked into.
    """

    def __init__(self, path: str, most: int, mounted: Iterable[str]) -> None:
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._device = os.fstat(self._folder).st_dev
        self._most = self._allowed = most
        self._mounted = frozenset(mounted)
        self._free = self._left()[0]
        self._look: Iterator[int] | None = None
        self._found = 0
        self._spent = 0.0
        self._next = 0.0
        self._full = False

    def begin(self) -> None:
        """Let a program begin: where more is there than may be, it may remain and not grow."""
        self._free = self._left()[0]
        self._look = None
        self._next = 0.0
        self._allowed = self._most
        if self._full:
            self._allowed = max(self._most, sum(self._sizes()))
            self._full = self._allowed > self._most

    def over(self) -> str:
        """Look on for a moment.

        Returns:
            Why what runs has to be ended: `disk`, as it wrote too much, or `full`, as the disk is,
            and this workspace is not what filled it; nothing where it may go on.
        """
        free, short = self._left()
        if short:
            return "disk" if self._free - free > self._most else "full"
        now = time.monotonic()
        if self._look is None:
            if now < self._next:
                return ""
            self._look, self._found, self._spent = self._sizes(), 0, 0.0
        for size in self._look:
            self._found += size
            if self._found > self._allowed:
                self._look, self._full = None, True
                return "disk"
            if time.monotonic() - now > SLICE_SECONDS:
                self._spent += time.monotonic() - now
                self._next = time.monotonic() + SLICE_SECONDS
                return ""
        self._spent += time.monotonic() - now
        self._look = None
        self._next = time.monotonic() + max(LOOK_SECONDS, 4 * self._spent)
        return ""

    @property
    def pause(self) -> float:
        """Seconds in which there is nothing to do here, but to see what the disk has left."""
        return max(0.0, min(self._next - time.monotonic(), LOOK_SECONDS))

    def _left(self) -> tuple[int, bool]:
        """Return the bytes that are left on the disk, and whether that is too little."""
        disk = os.fstatvfs(self._folder)
        free = disk.f_bavail * disk.f_frsize
        few = disk.f_files > 0 and disk.f_favail < disk.f_files // 50
        return free, few or free < reserve(disk.f_blocks * disk.f_frsize)

    def _sizes(self) -> Iterator[int]:
        """Yield what entries take of the disk; now and then nothing."""
        seen: set[int] = set()
        yield from self._named(seen)
        yield from self._nameless(seen)

    def _named(self, seen: set[int]) -> Iterator[int]:
        """Yield the sizes of what lies in the workspace, with one folder open at a time."""
        folders = [""]
        while folders:
            prefix = folders.pop()
            try:
                folder = self._opened(prefix)
            except OSError as error:
                # Deeper than any path reaches: nobody could look there.
                yield _ENDLESS if error.errno == errno.ENAMETOOLONG else 0
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        yield self._entry(entry.name, folder, prefix, folders, seen)
            except OSError:
                yield 0
            finally:
                os.close(folder)

    def _entry(
        self, name: str, folder: int, prefix: str, folders: list[str], seen: set[int]
    ) -> int:
        """Return the size of an entry, and note a folder, to be looked into later."""
        path = prefix + name
        if path in self._mounted:
            return 0
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return 0  # gone meanwhile
        if found.st_dev != self._device:
            return 0
        if stat.S_ISDIR(found.st_mode):
            folders.append(f"{path}/")
        elif found.st_nlink > 1:
            if found.st_ino in seen:
                return _LEAST
            if len(seen) < _LINKS:
                seen.add(found.st_ino)
        return max(found.st_blocks * 512, _LEAST)

    def _opened(self, path: str) -> int:
        """Open a folder, also one that its program has closed to itself: it has the same user."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            return os.open(path or ".", flags, dir_fd=self._folder)
        except PermissionError:
            os.chmod(path, 0o700, dir_fd=self._folder)
            return os.open(path, flags, dir_fd=self._folder)

    def _nameless(self, seen: set[int]) -> Iterator[int]:
        """Yield the sizes of files that were deleted and are open."""
        for pid in os.listdir("/proc"):
            if not pid.isdigit() or int(pid) == os.getpid():
                continue
            try:
                opened = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue  # gone, or closed to others: the disk's reserve bounds what that one hides
            for number in opened:
                try:
                    found = os.stat(f"/proc/{pid}/fd/{number}")
                except OSError:
                    continue
                mine = found.st_dev == self._device and found.st_ino not in seen
                if mine and stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    seen.add(found.st_ino)
                    yield found.st_blocks * 512
                else:
                    yield 0
