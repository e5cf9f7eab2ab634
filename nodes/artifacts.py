"""Texts and files by reference: what a checkpoint must not hold."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final, Protocol

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import sync, write_whole

_REFERENCE: Final = re.compile(r"[0-9a-f]{64}")


class Artifacts(Protocol):
    """Keeps contents by their SHA-256; keeping the same content twice keeps it once."""

    def keep(self, content: bytes) -> str:
        """Keep a content and return its reference: the SHA-256, in hexadecimal digits."""
        ...

    def read(self, reference: str) -> bytes:
        """Return a content.

        Raises:
            InputError: Nothing is kept under that reference, or it is damaged.
        """
        ...


class MemoryArtifacts:
    """Keeps contents in this process: they end with it, and so do the searches that name them.

    For a search that is to be resumed by another process, take `FolderArtifacts`.
    """

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def keep(self, content: bytes) -> str:
        """Keep a content and return its reference."""
        reference = reference_of(content)
        self._contents[reference] = bytes(content)
        return reference

    def read(self, reference: str) -> bytes:
        """Return a content.

        Raises:
            InputError: Nothing is kept under that reference in this process.
        """
        checked = check_reference(reference)
        if checked not in self._contents:
            msg = (
                f"nothing is kept as {checked[:12]} in this process; a search that is resumed in"
                " another one keeps its contents in a folder: FolderArtifacts(folder)"
            )
            raise InputError(msg)
        return self._contents[checked]

    def __len__(self) -> int:
        """Return the number of contents."""
        return len(self._contents)

    def __bool__(self) -> bool:
        """Artifacts without a content are artifacts."""
        return True


class FolderArtifacts:
    """Keeps each content as a file `<first two digits>/<other digits>` of a folder.

    Any number of threads and processes may share the folder. A content is on disk once `keep`
    returns, whatever happens to the process or the machine afterwards; one that is killed in
    between leaves at most a file whose name begins with a dot, which nobody reads. What is read is
    held against its digest each time. Other files in the folder are left alone.

    Args:
        folder: Made when something is first kept.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def keep(self, content: bytes) -> str:
        """Keep a content and return its reference; a damaged file of that name is replaced.

        Raises:
            InputError: Something else than a folder is in its way.
            InfrastructureError: The disk is full, or it cannot be written to.
        """
        reference = reference_of(content)
        path = self._path(reference)
        if not _holds(path, content):
            _write(path, content, self.folder)
        return reference

    def read(self, reference: str) -> bytes:
        """Return a content.

        Raises:
            InputError: Nothing is kept under that reference, or it is damaged.
            InfrastructureError: The file is there and cannot be read now.
        """
        path = self._path(check_reference(reference))
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            msg = (
                f"{self.folder}: nothing is kept as {reference[:12]} ({path.name[:12]}… is"
                " missing); give the folder that the search was started with"
            )
            raise InputError(msg) from error
        except OSError as error:
            raise InfrastructureError(f"{path}: cannot be read: {error.strerror}") from error
        if reference_of(content) != reference:
            msg = (
                f"{path}: is damaged: what it holds ({len(content):,} bytes) is not what it was"
                " kept as; restore it from a copy, or start the search anew"
            )
            raise InputError(msg)
        return content

    def _path(self, reference: str) -> Path:
        return self.folder / reference[:2] / reference[2:]


def reference_of(content: bytes) -> str:
    """Return the reference of a content: its SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def check_reference(reference: str) -> str:
    """Return a reference, or refuse what is none: it becomes part of a path.

    Raises:
        InputError: It is not 64 hexadecimal digits.
    """
    if not isinstance(reference, str) or _REFERENCE.fullmatch(reference) is None:
        msg = f"{reference!r:.80} is no reference to a content: 64 hexadecimal digits in lower case"
        raise InputError(msg)
    return reference


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file holds a content, whole: one cut off by a crash does not count."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _write(path: Path, content: bytes, folder: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        sync(folder)
    except (NotADirectoryError, FileExistsError, IsADirectoryError) as error:
        msg = f"{error.filename or path}: is not a folder that contents can be kept in"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}; free the disk or give another folder"
        raise InfrastructureError(msg) from error


def keep_json(artifacts: Artifacts, value: JSON) -> str:
    """Keep a value as canonical JSON, and return its reference."""
    return artifacts.keep(canonical_json(value).encode())


def read_json(artifacts: Artifacts, reference: str | None) -> dict[str, Any]:
    """Read a mapping that was kept; without a reference it is empty.

    Raises:
        InputError: Nothing is kept under that reference, or it is damaged.
    """
    if not reference:
        return {}
    read: dict[str, Any] = json.loads(artifacts.read(reference))
    return read
