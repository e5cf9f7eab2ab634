"""What prepared data is known by: MLE-bench's `checksums.yaml`, and one checksum for a folder."""

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.competition import Checksums
from langgraft.environments.competitions.layout import read_yaml

_ENDINGS: Final = {".csv", ".json", ".jsonl", ".parquet", ".bson"}
"""Of the files directly in a folder that MLE-bench makes checksums of."""


def read_checksums(path: Path) -> Checksums:
    """Read a `checksums.yaml`.

    Raises:
        CompetitionError: It cannot be read, or is not what its format asks for.
    """
    try:
        found = Checksums.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise CompetitionError(f"`{field[:80]}`: {first['msg']}", path=path) from error
    for name in (*found.public, *found.private, *found.folders):
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or not parts.parts or "\0" in name:
            raise CompetitionError(f"{name[:80]!r} is not a file of the folder", path=path)
    return found


def differences(folder: Path, expected: Mapping[str, str]) -> list[str]:
    """Return what differs between a folder and the checksums of its files, a line for each.

    Every file that is listed must be there; a file of data directly in the folder that is not
    listed (and could have been) is a difference as well. `description.md` is none.
    """
    found = folder_checksums(folder)
    lines = [f"{folder.name}/{name} is not listed" for name in found if name not in expected]
    for name, checksum in expected.items():
        file = folder / name
        if not file.is_file():
            lines.append(f"{folder.name}/{name} is missing")
        elif file_checksum(file) != checksum:
            lines.append(f"{folder.name}/{name} differs")
    return sorted(lines)


def folder_differences(prepared: Path, expected: Mapping[str, str]) -> list[str]:
    """Return which folders of prepared data differ from their checksums, a line for each."""
    lines = []
    for name, checksum in expected.items():
        if not (prepared / name).is_dir():
            lines.append(f"{name} is missing")
        elif folder_checksum(prepared / name) != checksum:
            lines.append(f"{name} differs: its files, or their names")
    return sorted(lines)


def folder_checksum(folder: Path) -> str:
    """Return the MD5 of a folder: of a line `<MD5>  <path>` for each file below it, by path."""
    found = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    lines = [f"{file_checksum(found[name])}  {name}\n" for name in sorted(found)]
    return hashlib.md5("".join(lines).encode(), usedforsecurity=False).hexdigest()


def folder_checksums(folder: Path) -> dict[str, str]:
    """Return MD5 of the files of data directly in a folder, by name, as MLE-bench lists them."""
    files = sorted(each for each in folder.iterdir() if each.suffix in _ENDINGS and each.is_file())
    return {each.name: file_checksum(each) for each in files}


def file_checksum(path: Path) -> str:
    """Return the MD5 of a file. It tells whether data is the same, not whether it is safe."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
