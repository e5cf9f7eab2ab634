"""Files of a workspace, whatever a program left there: written, found, and in the end removed.

No link is followed: what lies in a folder is opened from that folder's own descriptor.
"""

from __future__ import annotations

import errno
import fnmatch
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator

MAX_NAME = 4096
"""Bytes of a path; Linux has the same bound."""

MAX_DEPTH = 64
MAX_ENTRIES = 100_000
"""Directory entries looked at; a program can leave any number."""
MAX_LEFT_OUT = 1000
_AT_ONCE = 10_000
"""Names of a folder that are read before they are removed: there may be millions."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


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
        file = self._file
        if file is not None:
            self._guarded(lambda: file.write(data))

    def finish(self) -> None:
        """Give it its name."""
        if self._file is not None:
            self._guarded(self._file.finish)
        self._file = None

    def _open(self) -> None:
        self._file = Putting(self._workspace, self._name)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (OSError, ValueError) as error:
            self.refused = f"{self._name}: {getattr(error, 'strerror', None) or error}"
            if self._file is not None:
                self._file.abandon()
            self._file = None


class Patterns:
    """Relative globs: `*` and `?` within a name, `**` for any folders, hidden ones too.

    A path's state is how far it has come in which patterns: pairs of pattern and part.

    Raises:
        ValueError: A pattern leaves the workspace.
    """

    def __init__(self, patterns: list[str]) -> None:
        self._parts = [split_name(pattern) for pattern in patterns]

    def start(self) -> frozenset[tuple[int, int]]:
        """Return where all patterns begin."""
        return self._closed({(index, 0) for index in range(len(self._parts))})

    def step(self, states: frozenset[tuple[int, int]], name: str) -> frozenset[tuple[int, int]]:
        """Return where a name leads."""
        reached = set()
        for index, place in states:
            parts = self._parts[index]
            if place == len(parts):
                continue
            if parts[place] == "**":
                reached.add((index, place))
            elif _matches(name, parts[place]):
                reached.add((index, place + 1))
        return self._closed(reached)

    def ended(self, states: frozenset[tuple[int, int]]) -> bool:
        """Return whether a pattern is matched to its end."""
        return any(place == len(self._parts[index]) for index, place in states)

    def names(self, states: frozenset[tuple[int, int]]) -> set[str] | None:
        """Return the only names that lead on, or `None` where there may be any."""
        names = set()
        for index, place in states:
            parts = self._parts[index]
            if place < len(parts):
                if any(sign in parts[place] for sign in "*?["):
                    return None
                names.add(parts[place])
        return names

    def _closed(self, states: set[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        for index, place in list(states):
            parts = self._parts[index]
            while place < len(parts) and parts[place] == "**":
                place += 1  # noqa: PLW2901 - `**` also stands for no folder at all
                states.add((index, place))
        return frozenset(states)


def _matches(name: str, pattern: str) -> bool:
    try:
        return fnmatch.fnmatchcase(name, pattern)
    except re.error:
        # Ranges such as [z-a], which older Pythons do not know to be empty.
        return False


class Collecting:
    """A walk over a workspace that hands over files, and tells of those it leaves out.

    Args:
        patterns: What to look for.
        files: How many files may be taken.
        size: How many bytes, in all.
        leave_out: Called with a name and a reason.
        tick: Called often, so that a long walk shows signs of life.
    """

    def __init__(
        self,
        patterns: list[str],
        *,
        files: int,
        size: int,
        leave_out: Callable[[str, str], None],
        tick: Callable[[], None],
    ) -> None:
        self._patterns = Patterns(patterns)
        self._files = files
        self._size = size
        self._entries = 0
        self._device = -1
        self._leave_out = leave_out
        self._tick = tick

    def walk(self, workspace: int) -> Iterator[tuple[str, int, int]]:
        """Go through the workspace in the order of names; yield path, open file and size."""
        self._device = os.fstat(workspace).st_dev
        yield from self._folder(workspace, "", self._patterns.start(), 0)

    def _folder(
        self, folder: int, prefix: str, states: frozenset[tuple[int, int]], depth: int
    ) -> Iterator[tuple[str, int, int]]:
        for name in self._listed(folder, prefix, states):
            self._tick()
            inner = self._patterns.step(states, name)
            if not inner:
                continue
            path = prefix + name
            try:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    yield from self._inner(folder, name, path, inner, depth, found)
                elif self._patterns.ended(inner):
                    yield from self._file(folder, name, path, found)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    self._leave_out(path, f"unreadable: {os.strerror(error.errno or 0)}")

    def _inner(  # noqa: PLR0917
        self,
        folder: int,
        name: str,
        path: str,
        states: frozenset[tuple[int, int]],
        depth: int,
        found: os.stat_result,
    ) -> Iterator[tuple[str, int, int]]:
        leads_on = self._patterns.names(states) != set()
        if not leads_on:
            self._leave_out(path, f"a folder: collect `{path}/**`")
        elif found.st_dev != self._device:
            self._leave_out(path, "another file system: an input, not made here")
        elif depth + 1 >= MAX_DEPTH:
            self._leave_out(path, f"more than {MAX_DEPTH} folders deep")
        else:
            opened = os.open(name, _FOLDER, dir_fd=folder)
            try:
                yield from self._folder(opened, f"{path}/", states, depth + 1)
            finally:
                os.close(opened)

    def _listed(self, folder: int, prefix: str, states: frozenset[tuple[int, int]]) -> list[str]:
        only = self._patterns.names(states)
        if only is not None:
            return sorted(only)
        names: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if self._entries >= MAX_ENTRIES:
                    reason = f"more than {MAX_ENTRIES} entries in all: some were not looked at"
                    self._leave_out(prefix or ".", reason)
                    break
                self._entries += 1
                if self._entries % 1000 == 0:
                    self._tick()
                names.append(entry.name)
        return sorted(names)

    def _file(
        self, folder: int, name: str, path: str, found: os.stat_result
    ) -> Iterator[tuple[str, int, int]]:
        reason = self._unfit(path, found)
        if reason:
            self._leave_out(path, reason)
            return
        opened = os.open(name, _FILE, dir_fd=folder)
        try:
            # It may be another file by now, where a program still runs.
            found = os.fstat(opened)
            reason = self._unfit(path, found)
            if reason:
                self._leave_out(path, reason)
                return
            self._files -= 1
            self._size -= found.st_size
            yield path, opened, found.st_size
        finally:
            os.close(opened)

    def _unfit(self, path: str, found: os.stat_result) -> str:
        for is_kind, kind in _KINDS:
            if is_kind(found.st_mode):
                return kind
        if not stat.S_ISREG(found.st_mode):
            return "no regular file"
        try:
            if len(path.encode("utf-8")) > MAX_NAME:
                return f"its path is longer than {MAX_NAME} bytes"
        except UnicodeEncodeError:
            return "its name is no UTF-8"
        if self._files <= 0:
            return "too many files"
        if found.st_size > self._size:
            return f"too large: {found.st_size} bytes, {self._size} are left of those collected"
        return ""


def remove_tree(path: str) -> None:
    """Remove a folder and all in it; links are removed, never followed.

    Folders inside folders are first moved to the top, so that no depth is too great.

    Raises:
        OSError: Something cannot be removed, such as what belongs to another user.
    """
    root = os.open(path, _FOLDER)
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
    with os.scandir(folder) as entries:
        return [entry.name for entry in itertools.islice(entries, _AT_ONCE)]


def _empty(name: str, root: int, fresh_names: Iterator[str]) -> None:
    """Remove a folder, after what is in it was removed or moved to the root."""
    # The owner may take permissions away from itself; it can also give them back.
    os.chmod(name, 0o700, dir_fd=root)
    folder = os.open(name, _FOLDER, dir_fd=root)
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
