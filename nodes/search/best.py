"""The best solution so far, as files that always belong together.

    <folder>/best/solution.py       the program
    <folder>/best/submission.csv    what it submitted
    <folder>/best/node.json         its node of the journal, in canonical JSON

`best` is a symbolic link to a version beside it, and changing the link is one step: who looks at
`best` sees the old solution or the new one, whenever the process is killed. The version before
goes then, so who reads file after file while a search runs takes `read_best`.
"""

import json
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import canonical_json, digest
from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import sync
from langgraft.nodes.artifacts import reference_of
from langgraft.nodes.search.journal import JournalNode, node_json

BEST: Final = "best"
SOLUTION: Final = "solution.py"
SUBMISSION: Final = "submission.csv"
NODE: Final = "node.json"

_VERSION: Final = re.compile(r"\.best-[0-9a-f]{16}(\.[0-9a-f]{16}\.(tmp|link))?")
_TRIES: Final = 100
"""Looks at a link that changes each time: a search improves at most once in seconds."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best solution of a search so far."""

    node: JournalNode
    solution: str
    submission: bytes | None
    """`None` where it left none."""


def keep_best(folder: Path, node: JournalNode, submission: bytes | None) -> Path:
    """Put a solution in the place of the best one; the same one again changes nothing.

    Only one search writes to a folder.

    Args:
        folder: Of the search; made where it is not there.
        node: The program that is now the best.
        submission: The file it left; `None` where it left none.

    Returns:
        `<folder>/best`.

    Raises:
        InputError: Something of another kind is in the way, or the node holds what is no JSON.
        InfrastructureError: The disk is full, or it cannot be written to.
    """
    best = folder / BEST
    files = _files(node, submission)
    name = f".best-{digest({file: reference_of(files[file]) for file in files})[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if best.exists() and not best.is_symlink():
            msg = f"{best}: is there, and not as the best solution of a search; move it away"
            raise InputError(msg)
        if not (folder / name).is_dir():
            _write_version(folder / name, files)
        if not best.is_symlink() or best.readlink() != Path(name):
            _point(best, name)
        _clear(folder, besides=name)
    except (FileExistsError, NotADirectoryError) as error:
        msg = f"{error.filename or folder}: is in the way of a search's folder; give another one"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{best}: cannot be written: {error.strerror}; free the disk and resume the search"
        raise InfrastructureError(msg) from error
    return best


def read_best(folder: Path) -> Best | None:
    """Read the best solution of a search, also while it runs; `None` where none worked yet.

    Raises:
        InputError: What is there is no best solution, or cannot be read.
    """
    best = folder / BEST
    for _ in range(_TRIES):
        version = None
        try:
            version = best.readlink()
            found = _read_version(folder / version)
            if best.readlink() == version:
                return found
        except FileNotFoundError as error:
            if not os.path.lexists(best):
                return None
            if version is not None and best.readlink() == version:
                msg = f"{best}: {Path(error.filename).name} is missing from it"
                raise InputError(msg) from error
        except OSError as error:
            msg = f"{best}: cannot be read as a best solution: {error.strerror}"
            raise InputError(msg) from error
    raise InfrastructureError(f"{best}: changes faster than it can be read")


def _files(node: JournalNode, submission: bytes | None) -> dict[str, bytes]:
    written = node_json(node)
    files = {
        SOLUTION: str(written["code"]).encode("utf-8"),
        NODE: canonical_json(written).encode("utf-8"),
    }
    return files if submission is None else {**files, SUBMISSION: submission}


def _write_version(version: Path, files: dict[str, bytes]) -> None:
    """Write a version's folder; it has its name once all of it is on disk."""
    draft = version.with_name(f"{version.name}.{secrets.token_hex(8)}.tmp")
    draft.mkdir()
    for name, content in files.items():
        with (draft / name).open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    sync(draft)
    draft.rename(version)


def _point(best: Path, name: str) -> None:
    link = best.with_name(f"{name}.{secrets.token_hex(8)}.link")
    link.symlink_to(name, target_is_directory=True)
    link.replace(best)
    sync(best.parent)


def _clear(folder: Path, *, besides: str) -> None:
    """Remove earlier versions, and what a killed process left half done."""
    for path in folder.iterdir():
        if path.name == besides or _VERSION.fullmatch(path.name) is None:
            continue
        if path.is_symlink():
            path.unlink()
            continue
        # Out of the way first: what has a version's name is whole.
        gone = path.with_name(f"{path.name[:22]}.{secrets.token_hex(8)}.tmp")
        path.rename(gone)
        shutil.rmtree(gone)


def _read_version(version: Path) -> Best:
    """Read a version; a part of it that is missing raises `FileNotFoundError`."""
    written = (version / NODE).read_bytes()
    solution = (version / SOLUTION).read_text(encoding="utf-8")
    try:
        submission = (version / SUBMISSION).read_bytes()
    except FileNotFoundError:
        submission = None
    try:
        node = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{version / NODE}: is no JSON: {error}") from error
    with validation_as(InputError, f"{version / NODE}: "):
        return Best(JournalNode.model_validate(node), solution, submission)
