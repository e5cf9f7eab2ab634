"""What tools do with files inside the sandbox: listing, copying, keeping and taking back.

Run there as a program of its own, `python3 -I -S -c <this file> <verb> <path> …`, with the workspace
as its folder. Paths are relative, without `..`; links are told and not followed, other than the
first part of a path to the data, which a sandbox may have linked there. It prints what the agent
is told, and ends with 1 where nothing was done.
"""

# Few modules, for a quick start.
# ruff: noqa: PTH103, PTH105, PTH108, PTH112, PTH118, PTH119, PTH120, PTH123, PTH208

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable

DATA = "input"
BACKUPS = ".edits"
"""Folder of the workspace with the scripts as they were before each edit."""
ABSENT = ".absent"
"""Ends the name of a backup that says there was no script."""
MOST_ENTRIES = 200


class RefusedError(Exception):
    """Something that is not done; the message says why, to the model."""


def list_files(path: str) -> str:
    """Return the names in a folder, one a line."""
    _check(path)
    if not os.path.isdir(path):
        raise RefusedError(f"{path} is a file: list a folder")
    at_top = path == "."
    with os.scandir(path) as entries:
        lines = [
            _line(entry, data=at_top and entry.name == DATA)
            for entry in sorted(entries, key=lambda entry: os.fsencode(entry.name))
            if not (at_top and entry.name == BACKUPS)
        ]
    if len(lines) > MOST_ENTRIES:
        more = len(lines) - MOST_ENTRIES
        lines = [*lines[:MOST_ENTRIES], f"[{more:,} more]"]
    return "\n".join(lines) or f"{path} is empty."


def _line(entry: os.DirEntry[str], *, data: bool) -> str:
    name = _printable(entry.name)
    if entry.is_dir(follow_symlinks=data):
        return f"{name}/"
    if entry.is_symlink():
        return f"{name} (a link)"
    if not entry.is_file(follow_symlinks=False):
        return f"{name} (no file)"
    return f"{name} ({entry.stat(follow_symlinks=False).st_size:,} bytes)"


def _printable(name: str) -> str:
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else ascii(text)


def copy(source: str, destination: str) -> str:
    """Copy a file, or a folder with all in it but links."""
    _check(source)
    _check(destination, there=False)
    if os.path.isdir(source):
        inner = destination + "/"
        if inner.startswith(source + "/") or source == ".":
            raise RefusedError(
                f"{destination} lies in {source}, which cannot be copied into itself"
            )
        _copy_tree(source, destination)
    else:
        if os.path.isdir(destination):
            destination = f"{destination}/{os.path.basename(source)}"
            _check(destination, there=False)
        if source == destination:
            raise RefusedError(f"{source} is its own destination")
        _folder_of(destination)
        _copy_file(source, destination)
    return f"{source} was copied to {destination}."


def _copy_file(source: str, destination: str) -> None:
    """Copy a file whole or not at all: half of one would fill what room is left."""
    _require_file(source)
    partial = f"{destination}.part"
    try:
        shutil.copyfile(source, partial)
        os.replace(partial, destination)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _copy_tree(source: str, destination: str) -> None:
    anew = not os.path.lexists(destination)
    try:
        shutil.copytree(source, destination, ignore=_odd, dirs_exist_ok=True)
    except (OSError, shutil.Error):
        if anew:
            shutil.rmtree(destination, ignore_errors=True)
        raise


def _odd(folder: str, names: list[str]) -> list[str]:
    kinds = (stat.S_ISREG, stat.S_ISDIR)
    modes = ((name, os.lstat(os.path.join(folder, name)).st_mode) for name in names)
    return [name for name, mode in modes if not any(kind(mode) for kind in kinds)]


def keep(path: str) -> str:
    """Keep a script as it is now, or that it is not there, until it is taken back."""
    _check(path, there=False)
    folder = _backups(path)
    _check(folder, there=False)
    os.makedirs(folder, exist_ok=True)
    number = max((each for each, _ in _kept(folder)), default=0) + 1
    if os.path.lexists(path):
        _copy_file(path, f"{folder}/{number}")
    else:
        open(f"{folder}/{number}{ABSENT}", "wb").close()
    return ""


def take_back(path: str) -> str:
    """Make a script what it was before its last edit."""
    _check(path, there=False)
    folder = _backups(path)
    kept = _kept(folder) if os.path.isdir(folder) else []
    if not kept:
        raise RefusedError(f"no edit of {path} is left to take back")
    _check(folder)
    _, name = max(kept)
    if name.endswith(ABSENT):
        if os.path.lexists(path):
            _require_file(path)
            os.unlink(path)
        os.unlink(f"{folder}/{name}")
        return f"The last edit of {path} was taken back: before it, there was no such script."
    _folder_of(path)
    os.replace(f"{folder}/{name}", path)
    return f"The last edit of {path} was taken back. It now reads:"


def _backups(path: str) -> str:
    return BACKUPS + "/" + re.sub(r"[^A-Za-z0-9._-]", lambda sign: f"%{ord(sign[0]):x}%", path)


def _kept(folder: str) -> list[tuple[int, str]]:
    found = (re.fullmatch(r"(\d{1,9})(?:\.absent)?", name, re.ASCII) for name in os.listdir(folder))
    return [(int(match[1]), match[0]) for match in found if match]


def _folder_of(path: str) -> None:
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)


def _require_file(path: str) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise RefusedError(f"{path} is no regular file")


def _check(path: str, *, there: bool = True) -> None:
    """Refuse a path that is not there, or leads over a link."""
    done = ""
    for part in path.split("/"):
        done = f"{done}/{part}" if done else part
        try:
            mode = os.lstat(done).st_mode
        except FileNotFoundError:
            if there:
                raise RefusedError(f"there is no {path}") from None
            return
        if stat.S_ISLNK(mode) and done != DATA:
            raise RefusedError(f"{done} is a link, which is not followed")


VERBS: dict[str, Callable[..., str]] = {
    "list": list_files,
    "copy": copy,
    "keep": keep,
    "take back": take_back,
}


def main(verb: str, *paths: str) -> int:
    """Do one thing, and print what is told of it."""
    try:
        said = VERBS[verb](*paths)
        code = 0
    except RefusedError as error:
        said, code = str(error), 1
    except (OSError, shutil.Error, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        said, code = f"it could not be done: {why}", 1
    sys.stdout.buffer.write(said.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
