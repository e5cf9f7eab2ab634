"""ZIP files without compression, clock or machine: the same members are the same bytes."""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from langgraft._core.errors import BankFormatError

_TIME: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_PLAIN_FILE: Final = 0o100644 << 16
_MEMBER: Final = b"PK\x01\x02"
"""Begins each entry of the list of members; lines of JSON hold no such bytes."""
_MOST_MEMBERS: Final = 100
"""More are not even listed: a hundred thousand take seconds."""
_DAMAGED: Final = (
    zipfile.BadZipFile,
    NotImplementedError,  # a compression or version nobody knows
    RuntimeError,  # encrypted
    EOFError,
    struct.error,
    OSError,
    ValueError,
    OverflowError,
)


def pack(members: Mapping[str, bytes]) -> bytes:
    """Pack members in their order."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_STORED
            entry.create_system = _UNIX
            entry.external_attr = _PLAIN_FILE
            archive.writestr(entry, data)
    return packed.getvalue()


def unpack(path: Path, data: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """Unpack members that must be these, in this order, and nothing else.

    Args:
        path: The file, for messages.
        data: What is in it.
        names: The members.

    Raises:
        BankFormatError: The file is torn, or packed otherwise.
    """
    if (members := data.count(_MEMBER)) > _MOST_MEMBERS:
        msg = f"a bundle holds {', '.join(names)}, in this order and alone; here are {members:,} members"
        raise BankFormatError(msg, path=path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_entries(path, archive.infolist(), names, len(data))
            return {name: archive.read(name) for name in names}
    except BankFormatError:
        raise
    except _DAMAGED as error:
        words = " ".join(str(error).split()) or type(error).__name__
        msg = f"the bundle is torn or damaged: {words!a:.200}"
        raise BankFormatError(msg, path=path) from error


def _check_entries(
    path: Path, entries: Sequence[zipfile.ZipInfo], names: Sequence[str], size: int
) -> None:
    """Compare names and sizes before anything is unpacked."""
    found = [entry.orig_filename for entry in entries]  # `filename` ends at a NUL
    if found != list(names):
        listed = ", ".join(f"{name!a:.80}" for name in found[:5]) or "nothing"
        msg = f"a bundle holds {', '.join(names)}, in this order and alone; here is {listed}"
        raise BankFormatError(msg, path=path)
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED:
            msg = f"{entry.filename} is compressed; the members of a bundle are stored as they are"
            raise BankFormatError(msg, path=path)
        if entry.file_size > size or entry.compress_size > size:
            msg = f"{entry.filename} is said to be larger than the whole file"
            raise BankFormatError(msg, path=path)
