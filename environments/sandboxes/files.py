"""Names and files on their way into a sandbox and out of it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.inside.putting import MAX_NAME, Putting, split_name
from langgraft.environments.sandboxes.limits import Limits


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file that was checked and can be put."""

    name: str
    content: bytes | Path
    size: int


def check_name(name: str) -> str:
    """Return a path relative to the workspace, or refuse it.

    Raises:
        InputError: It is empty, absolute, has `..`, an empty part or NUL, or is no UTF-8.
    """
    try:
        split_name(str(name))
        fits = isinstance(name, str) and len(name.encode("utf-8")) <= MAX_NAME
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"{name!r} is no path inside the workspace: give a relative one with forward slashes, "
            f"of at most {MAX_NAME} bytes of UTF-8, such as 'working/model.txt'"
        )
    return name


def check_patterns(patterns: Sequence[str]) -> list[str]:
    """Return what is to be collected, or refuse it.

    Raises:
        InputError: A pattern leaves the workspace, or this is one text instead of a sequence.
    """
    if isinstance(patterns, str):
        raise InputError(
            f"collect={patterns!r} is one text: give a sequence, such as [{patterns!r}]"
        )
    if not isinstance(patterns, Iterable):
        raise InputError(f"collect={patterns!r} is no sequence: give one, such as ['out/**']")
    return [check_name(pattern) for pattern in patterns]


def check_files(files: Mapping[str, bytes | Path], limits: Limits) -> list[OutgoingFile]:
    """Return files as they can be put, by name.

    Raises:
        InputError: A name leaves the workspace or is another's folder, a path is no regular file
            that can be read, or together they are larger than the workspace.
    """
    for name in files:
        check_name(name)
    outgoing = [_checked(name, content) for name, content in sorted(files.items())]
    for name in files:
        parts = name.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if folder in files:
                raise InputError(f"{folder!r} is to be a file and the folder of {name!r}")
    size = sum(file.size for file in outgoing)
    if size > limits.workspace:
        raise InputError(
            f"the files have {size} bytes and the workspace holds {limits.workspace}: give fewer, "
            "raise Limits.workspace, or let the sandbox mount them as inputs"
        )
    return outgoing


def _checked(name: str, content: bytes | Path) -> OutgoingFile:
    if isinstance(content, bytes):
        return OutgoingFile(name, content, len(content))
    if not isinstance(content, Path):
        raise InputError(f"{name!r} is {type(content).__name__}: give bytes, or a Path to a file")
    if not content.is_file() or not os.access(content, os.R_OK):
        raise InputError(f"{name!r} is to be {content}, which is no file that can be read")
    return OutgoingFile(name, content, content.stat().st_size)


def write_files(files: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write collected files into a folder of this machine, and nowhere else.

    Links inside the folder are not followed: one under a file's name is replaced, one in place of
    a folder is an error. Other files of the same name are replaced.

    Raises:
        InputError: A name leaves the folder, or a folder on the way is a link or a file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name, content in sorted(files.items()):
            check_name(name)
            _write(opened, folder, name, content)
    finally:
        os.close(opened)
    return [folder / name for name in sorted(files)]


def _write(opened: int, folder: Path, name: str, content: bytes) -> None:
    try:
        file = Putting(opened, name)
        try:
            file.write(content)
            file.finish()
        except OSError:
            file.abandon()
            raise
    except OSError as error:
        raise InputError(f"{folder / name} cannot be written: {error.strerror}") from error
