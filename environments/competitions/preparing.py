"""Prepares competitions' data: all of it as it should be, or nothing; and what it is known by.

Checksums are MLE-bench's, of files (`checksums.yaml`), and ours of whole folders.
"""

import errno
import hashlib
import inspect
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from filelock import FileLock

from langgraft._core.errors import CompetitionError, MissingExtraError
from langgraft._core.file_digests import FileDigests, file_digest
from langgraft.environments.competitions.competition import Checksums, Competition, refuse_others
from langgraft.environments.competitions.layout import (
    DESCRIPTION,
    OwnFunction,
    read_yaml,
    validated,
)

_ENDINGS: Final = {".csv", ".json", ".jsonl", ".parquet", ".bson"}
"""Of the files directly in a folder that MLE-bench makes checksums of."""
_UNFINISHED: Final = ".preparing-"
_SHOWN: Final = 5
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


ReadChecksum: TypeAlias = Callable[[Path], str]
"""Returns the MD5 of a file."""


def file_checksum(path: Path) -> str:
    """Return the MD5 of a file. It tells whether data is the same, not whether it is safe."""
    return file_digest(path, "md5")


def known_checksums(digests: FileDigests) -> ReadChecksum:
    """Return what does the same as `file_checksum`, and reads no file whose MD5 is known."""
    return lambda path: digests.digest(path, "md5")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A competition's data is there."""

    competition_id: str
    path: Path
    """`<data>/<id>/prepared`."""
    made: bool
    """Whether it was made now; it was there before otherwise."""
    verified: bool
    """Whether it was held against checksums; a competition may have none."""


def prepare_competition(competition: Competition, *, force: bool = False) -> Prepared:
    """Make `public` and `private` of a competition from what its `raw` holds.

    It is made beside its place and moved there when all of it is there and has the checksums it
    should have; what fails leaves nothing behind. `public` can be read by every user (the one in
    a sandbox among them), `private` only by you.

    Args:
        competition: What to prepare.
        force: Whether to make again what is there already.

    Raises:
        CompetitionError: It cannot be prepared here, preparing failed, or the data is not what
            its checksums say.
        MissingExtraError: A package that the data is made from is not installed.
    """
    refuse_others(competition)
    home = competition.public_dir.parent
    try:
        return _prepared(competition, home, force=force)
    except OSError as error:  # no permission, no space, a file where a folder is to be
        msg = f"{competition.id} cannot be prepared there: {error.strerror or error}"
        raise CompetitionError(msg, path=home) from error


def _prepared(competition: Competition, home: Path, *, force: bool) -> Prepared:
    expected = _expected(competition)
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(home.parent / ".prepare.lock"):
        if not force and competition.prepared:
            _verify(competition, home, expected)
            return Prepared(competition.id, home, made=False, verified=expected is not None)
        _unpack(competition, expected)
        with workshop(home.parent) as made:
            _make(competition, made)
            _verify(competition, made, expected)
            _open_to_readers(made)
            _move(made, home)
    return Prepared(competition.id, home, made=True, verified=expected is not None)


def verify_competition(competition: Competition, read: ReadChecksum = file_checksum) -> list[str]:
    """Return how prepared data differs from its checksums, a line for each file.

    Args:
        competition: Its data must be prepared.
        read: Says what checksum a file has.

    Raises:
        CompetitionError: The data is not prepared, or its checksums cannot be read.
    """
    if not competition.prepared:
        raise CompetitionError(not_prepared(competition))
    expected = _expected(competition)
    return [] if expected is None else _wrong(competition.public_dir.parent, expected, read)


def not_prepared(competition: Competition) -> str:
    """Say that a competition's data is not there, and how to get it."""
    missing = f"the data of {competition.id} is not prepared"
    where = competition.public_dir.parent
    data_dir = f"--data-dir {shlex.quote(str(where.parent.parent))}"
    if competition.prepare_fn is not None:
        command = f"langgraft competitions prepare {competition.id} {data_dir}"
        return f"{missing} ({where}): run `{command}`"
    return (
        f"{missing} ({where}), and cannot be prepared without MLE-bench and an account on Kaggle:"
        f" `mlebench prepare -c {competition.id} {data_dir}`"
    )


def _expected(competition: Competition) -> Checksums | None:
    found = competition.checksums
    return read_checksums(found) if isinstance(found, Path) else found


@contextmanager
def workshop(place: Path) -> Iterator[Path]:
    """Give a folder beside the place of the data, and remove it, whatever happens in it.

    Whoever asks holds a lock on the place: what another one left is removed.
    """
    for abandoned in place.glob(f"{_UNFINISHED}*"):  # its maker was killed: we hold the lock
        shutil.rmtree(abandoned, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=place))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _make(competition: Competition, workshop: Path) -> None:
    function = competition.prepare_fn
    assert function is not None
    loaded: Callable[..., object] = (
        function.load() if isinstance(function, OwnFunction) else function
    )
    where = function.file if isinstance(function, OwnFunction) else None
    if list(inspect.signature(loaded).parameters) != ["raw", "public", "private"]:
        raise CompetitionError("`prepare` does not take (raw, public, private)", path=where)
    raw, public, private = competition.raw_dir, workshop / "public", workshop / "private"
    public.mkdir()
    private.mkdir(mode=0o700)
    try:
        loaded(raw=raw, public=public, private=private)
    except (CompetitionError, MissingExtraError):
        raise
    except (Exception, SystemExit) as error:  # what ends a program is not to end ours
        if isinstance(error, OSError) and error.errno in _FULL:
            raise  # not the fault of prepare.py
        why = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        raise CompetitionError(f"{competition.id} cannot be prepared: {why}", path=where) from error
    (public / DESCRIPTION).write_text(competition.description, encoding="utf-8")
    for file in (competition.answers, competition.sample_submission):
        name = file.relative_to(competition.public_dir.parent)
        if not (workshop / name).is_file():
            msg = f"preparing {competition.id} left no {name}, which config.yaml names"
            raise CompetitionError(msg, path=where)


def _unpack(competition: Competition, expected: Checksums | None) -> None:
    """Fill `raw` from the archive of source data, where there is one and it is not done."""
    if competition.prepare_fn is None:
        raise CompetitionError(not_prepared(competition))
    raw = competition.raw_dir
    raw.mkdir(exist_ok=True)
    if expected is None or expected.zip is None or any(raw.iterdir()):
        return
    archive = raw.parent / f"{competition.id}.zip"
    if not archive.is_file():
        msg = (
            f"the source data of {competition.id} is not there: put the archive that Kaggle gives"
            f" for it at {archive}, or run `mlebench prepare -c {competition.id}"
            f" --data-dir {raw.parent.parent}`"
        )
        raise CompetitionError(msg)
    if file_checksum(archive) != expected.zip:
        raise CompetitionError("is another archive than its checksum says", path=archive)
    with workshop(raw.parent) as unpacked:
        try:
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(unpacked)
        except (OSError, zipfile.BadZipFile) as error:
            raise CompetitionError(f"cannot be unpacked: {error}", path=archive) from error
        raw.rmdir()
        unpacked.rename(raw)


def _verify(competition: Competition, prepared: Path, expected: Checksums | None) -> None:
    if expected is None or not (wrong := _wrong(prepared, expected)):
        return
    shown = "; ".join(wrong[:_SHOWN]) + (" …" if len(wrong) > _SHOWN else "")
    if prepared == competition.public_dir.parent:
        remedy = "--force makes it again" if competition.prepare_fn else "prepare it with MLE-bench"
        msg = f"the data of {competition.id} is not what its checksums say: {shown}; {remedy}"
    else:
        msg = (
            f"what preparing {competition.id} made is not what its checksums say: {shown};"
            " another version of a package that it is made from may be installed"
        )
    raise CompetitionError(msg, path=competition.public_dir.parent)


def _wrong(prepared: Path, expected: Checksums, read: ReadChecksum = file_checksum) -> list[str]:
    return [
        *differences(prepared / "public", expected.public, read),
        *differences(prepared / "private", expected.private, read),
        *folder_differences(prepared, expected.folders, read),
    ]


def _open_to_readers(prepared: Path) -> None:
    """Let every user read `public`, and nobody but the owner `private`."""
    prepared.chmod(0o755)
    for name, folder_mode, file_mode in (("public", 0o755, 0o644), ("private", 0o700, 0o600)):
        for path in (prepared / name, *(prepared / name).rglob("*")):
            if not path.is_symlink():
                path.chmod(folder_mode if path.is_dir() else file_mode)


def _move(made: Path, home: Path) -> None:
    """Put what was made in its place; what was there is gone only when the new is there."""
    old = made.with_name(f"{made.name}-old")
    if home.exists():
        home.rename(old)
    made.rename(home)
    shutil.rmtree(old, ignore_errors=True)


def read_checksums(path: Path) -> Checksums:
    """Read a `checksums.yaml`.

    Raises:
        CompetitionError: It cannot be read, or is not what its format asks for.
    """
    found = validated(Checksums, read_yaml(path), path)
    for name in (*found.public, *found.private, *found.folders):
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or not parts.parts or "\0" in name:
            raise CompetitionError(f"{name[:80]!r} is not a file of the folder", path=path)
    return found


def differences(
    folder: Path, expected: Mapping[str, str], read: ReadChecksum = file_checksum
) -> list[str]:
    """Return what differs between a folder and the checksums of its files, a line for each.

    Every file that is listed must be there; a file of data directly in the folder that is not
    listed (and could have been) is a difference as well. `description.md` is none.
    """
    lines = [
        f"{folder.name}/{each.name} is not listed"
        for each in _listed(folder)
        if each.name not in expected
    ]
    for name, checksum in expected.items():
        file = folder / name
        if not file.is_file():
            lines.append(f"{folder.name}/{name} is missing")
        elif read(file) != checksum:
            lines.append(f"{folder.name}/{name} differs")
    return sorted(lines)


def folder_differences(
    prepared: Path, expected: Mapping[str, str], read: ReadChecksum = file_checksum
) -> list[str]:
    """Return which folders of prepared data differ from their checksums, a line for each."""
    lines = []
    for name, checksum in expected.items():
        if not (prepared / name).is_dir():
            lines.append(f"{name} is missing")
        elif folder_checksum(prepared / name, read) != checksum:
            lines.append(f"{name} differs: its files, or their names")
    return sorted(lines)


def folder_checksum(folder: Path, read: ReadChecksum = file_checksum) -> str:
    """Return the MD5 of a folder: of a line `<MD5>  <path>` for each file below it, by path."""
    found = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    lines = [f"{read(found[name])}  {name}\n" for name in sorted(found)]
    return hashlib.md5("".join(lines).encode(), usedforsecurity=False).hexdigest()


def folder_checksums(folder: Path) -> dict[str, str]:
    """Return MD5 of the files of data directly in a folder, by name, as MLE-bench lists them."""
    return {each.name: file_checksum(each) for each in _listed(folder)}


def _listed(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.suffix in _ENDINGS and each.is_file())
