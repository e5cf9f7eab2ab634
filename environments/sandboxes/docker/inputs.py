"""Folders of this machine that programs read: mounted read-only under the workspace."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from langgraft._core.canonical import digest
from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.docker.controls import USER, WORKSPACE


def check_inputs(inputs: Mapping[str, Path]) -> dict[str, Path]:
    """Return the folders by name, resolved, in the order of their names.

    Raises:
        InputError: A name leaves or hides the workspace; or a folder is not there, cannot be read
            by programs, or holds what leads them out: a socket, pipe or device.
    """
    names = sorted(inputs)
    for name in names:
        _check_name(name)
    for name in names:
        for parent in PurePosixPath(name).parents:
            if str(parent) in inputs:
                raise InputError(f"inputs: {name!r} would lie in {str(parent)!r}: it is read-only")
    return {name: _folder(name, Path(inputs[name])) for name in names}


def inputs_digest(inputs: Mapping[str, Path]) -> str:
    """Return a digest of what the folders hold: names, sizes, contents, and where links lead."""
    return digest(
        [
            [name, path.relative_to(folder).as_posix(), *_content(path)]
            for name, folder in sorted(inputs.items())
            for path in sorted(_entries(folder))
        ]
    )


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    plain = name and not any(sign in name for sign in ":,\\\0\n")
    if not plain or path.is_absolute() or ".." in path.parts or str(path) in {".", ""}:
        raise InputError(
            f"inputs: {name!r} is no name of a folder inside {WORKSPACE}: give one like 'input'"
        )
    if str(path) != name:
        raise InputError(f"inputs: write {name!r} as {str(path)!r}")


def _folder(name: str, path: Path) -> Path:
    if not path.is_dir():
        what = "no folder" if path.exists() else "not there"
        raise InputError(f"inputs: {name!r} is {path}, which is {what}")
    folder = path.resolve()
    for one, wanted in _needs(folder):
        mode = one.lstat()
        if not stat.S_ISDIR(mode.st_mode) and not stat.S_ISREG(mode.st_mode):
            # That it is mounted read-only keeps nobody from talking through it.
            raise InputError(
                f"inputs: {one} is a socket, pipe or device, by which programs could talk to this"
                " machine: give a folder without it"
            )
        if not _allowed(mode, wanted):
            letters = "rx" if stat.S_ISDIR(mode.st_mode) else "r"
            raise InputError(
                f"inputs: programs run as uid {USER}, which cannot read {one} (mode"
                f" {stat.S_IMODE(mode.st_mode):04o}). If they are to: `chmod o+{letters} {one}`, or for the"
                f" whole folder `chmod -R o+rX {folder}`"
            )
    return folder


def _needs(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield what must be readable. What lies above the folder need not be: a mount bypasses it."""
    yield folder, stat.S_IROTH | stat.S_IXOTH
    for where, folders, files in os.walk(folder):
        for name in sorted(folders):
            if not (Path(where) / name).is_symlink():
                yield Path(where) / name, stat.S_IROTH | stat.S_IXOTH
        for name in sorted(files):
            if not (Path(where) / name).is_symlink():
                yield Path(where) / name, stat.S_IROTH


def _allowed(mode: os.stat_result, wanted: int) -> bool:
    """Return whether the user of programs has the wanted rights, given as those of others."""
    if mode.st_uid == USER:
        wanted <<= 6
    elif mode.st_gid == USER:
        wanted <<= 3
    return mode.st_mode & wanted == wanted


def _entries(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(where) / name


def _content(path: Path) -> tuple[str | int, ...]:
    if path.is_symlink():
        # Inside it leads to what is there in the container, not to a file of this machine.
        return "link", str(path.readlink())
    if not path.is_file():
        return ("folder" if path.is_dir() else "other",)
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
