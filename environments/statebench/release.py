"""Where a copy of STATE-Bench is, and its code: imported from there, never part of langgraft.

A copy is an installed package, a folder with `state_bench/` in it (a checkout), or a `.tar` archive of
such a folder, which is unpacked once into the user's folder of caches. Its Python is run as it stands, as
that of any package is: name only a copy that you trust. A process has one copy.
"""

import hashlib
import importlib
import importlib.util
import lzma
import os
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Lock
from types import ModuleType
from typing import IO, Any, Final

from langgraft._core.errors import InputError, SettingsError
from langgraft._core.files import user_cache_dir
from langgraft._core.untrusted import load_json, read_most

DOMAINS: Final = ("travel", "customer_support", "shopping_assistant")
KNOWN: Final = "0.8.1"
"""The version that langgraft was written for."""
HOW_TO_GET_IT: Final = (
    "get it with `git clone https://github.com/microsoft/STATE-Bench` and give that folder, or an archive"
    " of it; or install it; or put the archive into the folder `statebench` of LANGGRAFT_DATA"
)

MOST_FILES: Final = 20_000
"""Members of an archive (version 0.8.1: some 1,300)."""
MOST_BYTES: Final = 1 << 28
"""Of an archive, once it is decompressed (version 0.8.1: 12 MB)."""
MOST_PADDING: Final = 1 << 20
"""Bytes of an archive behind its last member."""

_PACKAGE: Final = "state_bench"
_KEPT: Final = frozenset({_PACKAGE, "datasets", "LICENSE"})
"""What of an archive is unpacked."""
_importing: Final = Lock()


@dataclass(frozen=True, slots=True)
class Code:
    """What is used of the benchmark's code."""

    root: Path
    """The folder that holds the package."""
    domains: Mapping[str, Any]
    """Its configuration of each domain: environment, tools, prompts."""
    task: Any
    """Its class of task definitions."""
    difference: Any
    """Its class of differences between two states."""
    evaluate: Any
    """Its function that scores a difference by a task's state requirements."""

    def inside(self, *parts: str) -> Path:
        """Return a path in the package."""
        return self.root.joinpath(_PACKAGE, *parts)


def find(path: Path | str | None = None) -> Path:
    """Return the folder that holds the package `state_bench`, unpacking an archive first.

    Args:
        path: A folder or an archive; `None`: the installed package, or else what lies in the folder
            `statebench` of `LANGGRAFT_DATA`.

    Raises:
        SettingsError: There is no copy there.
        InputError: An archive is damaged, or not to be trusted.
    """
    if path is not None:
        return _in(Path(path).expanduser())
    with suppress(ImportError, ValueError):  # a half-made module of that name
        spec = importlib.util.find_spec(_PACKAGE)
        for place in (spec and spec.submodule_search_locations) or ():
            if _holds_package(Path(place).parent):
                return Path(place).parent.resolve()
    if not (data := os.environ.get("LANGGRAFT_DATA")):
        msg = f"STATE-Bench is not installed, and no path to it is given; {HOW_TO_GET_IT}"
        raise SettingsError(msg)
    return _in(Path(data).expanduser() / "statebench")


def import_code(root: Path) -> Code:
    """Import the benchmark's code from a folder that `find` returned.

    Raises:
        SettingsError: Another copy has been imported in this process.
        InputError: The code cannot be imported, or is not what is expected.
    """
    with _importing:
        there = sys.modules.get(_PACKAGE)
        if there is not None and root / _PACKAGE not in _folders(there):
            msg = (
                f"{root}: another copy of STATE-Bench has been imported already, from"
                f" {next(iter(_folders(there))).parent}; a process can use one: start another, or use that"
            )
            raise SettingsError(msg)
        try:
            return _imported(root)
        except Exception as error:
            if there is None:
                for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
                    del sys.modules[name]
            msg = (
                f"{root}: the code of STATE-Bench cannot be used ({error}); version {KNOWN} can be"
            )
            raise InputError(msg) from error


def read_json(path: Path, most: int) -> Any:
    """Read a JSON file of the benchmark, of at most `most` bytes.

    Raises:
        InputError: It is absent, cannot be read, is no JSON or is larger.
    """
    try:
        return load_json(read_most(path, most), most)
    except FileNotFoundError as error:
        msg = f"{path} is absent: this copy of STATE-Bench is not whole; {HOW_TO_GET_IT}"
        raise InputError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"{path}: cannot be read as JSON: {error}"
        raise InputError(msg) from error


def _imported(root: Path) -> Code:
    if _PACKAGE not in sys.modules:
        folder = root / _PACKAGE
        spec = importlib.util.spec_from_file_location(
            _PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_PACKAGE] = module
        spec.loader.exec_module(module)
    configured = importlib.import_module(f"{_PACKAGE}.domain").get_domain_config
    schemas = importlib.import_module(f"{_PACKAGE}.schemas")
    scoring = importlib.import_module(f"{_PACKAGE}.scoring")
    return Code(
        root=root,
        domains={name: configured(name) for name in DOMAINS},
        task=schemas.TaskDefinition,
        difference=schemas.StateDiff,
        evaluate=scoring.evaluate_state_requirements,
    )


def _folders(package: ModuleType) -> list[Path]:
    return [Path(place).resolve() for place in package.__path__]


def _in(path: Path) -> Path:
    """Return the copy at a path, in it, or in the one archive or folder in it."""
    try:
        if path.is_file():
            return _unpacked(path)
        inside = [path, *sorted(path.iterdir())] if path.is_dir() else []
    except OSError as error:
        msg = f"{path}: cannot be looked at ({error})"
        raise SettingsError(msg) from error
    if path.name == _PACKAGE and _holds_package(path.parent):
        return path.parent.resolve()
    for each in inside:
        if _holds_package(each):
            return each.resolve()
    for each in reversed(inside):
        if each.is_file() and ".tar" in each.suffixes:
            return _unpacked(each)
    msg = f"{path} holds no copy of STATE-Bench; {HOW_TO_GET_IT}"
    raise SettingsError(msg)


def _holds_package(folder: Path) -> bool:
    return (folder / _PACKAGE / "domain.py").is_file()


def _unpacked(path: Path) -> Path:
    """Return the folder that an archive is unpacked in; it appears whole or not at all."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        kept = user_cache_dir() / "langgraft" / "statebench" / digest
        if not _holds_package(kept):
            kept.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=kept.parent, prefix="unpacking-"))
            try:
                for parts, data in _members(path):
                    made.joinpath(*parts).parent.mkdir(parents=True, exist_ok=True)
                    made.joinpath(*parts).write_bytes(data.read())
                if not _holds_package(made):
                    msg = f"{path}: an archive without the package {_PACKAGE}; {HOW_TO_GET_IT}"
                    raise SettingsError(msg)
                with suppress(OSError):  # another process was first
                    made.rename(kept)
            finally:
                shutil.rmtree(made, ignore_errors=True)
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        msg = f"{path}: cannot be unpacked ({error}); {HOW_TO_GET_IT}"
        raise InputError(msg) from error
    return kept.resolve()


def _members(path: Path) -> Iterator[tuple[tuple[str, ...], IO[bytes]]]:
    """Yield what is unpacked of an archive: paths below its one folder, plain files alone.

    Raises:
        InputError: A path leads out of the archive's folder, or it holds more than the bounds allow.
    """
    size = 0
    with tarfile.open(path) as archive:
        for count, member in enumerate(archive, 1):
            size += member.size
            if count > MOST_FILES or size > MOST_BYTES:
                msg = f"{path}: holds more than {MOST_FILES:,} files or {MOST_BYTES:,} bytes"
                raise InputError(msg)
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or "\\" in member.name:
                msg = f"{path}: {member.name!r:.80} leads out of the archive's folder"
                raise InputError(msg)
            data = archive.extractfile(member) if member.isreg() else None
            if data is not None and len(name.parts) > 1 and name.parts[1] in _KEPT:
                yield name.parts[1:], data
        # What is cut off or changed at the end of a stream shows there; padding is short.
        assert archive.fileobj is not None
        if archive.fileobj.read(MOST_PADDING + 1)[MOST_PADDING:]:
            msg = f"{path}: holds more than {MOST_PADDING:,} bytes behind its last file"
            raise InputError(msg)
