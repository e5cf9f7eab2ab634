"""Archives among a competition's public data, unpacked once: what agents find in `./input`.

    prepared/public/                 as MLE-bench leaves it: train2.zip, sampleSubmission.csv
    prepared/unpacked/files/         the same files (hard links), and train2/ with what was in it
    prepared/unpacked/record.json    sizes and times it was made from, and SHA-256 of what came out

The view is made whole or not at all, and made again only when a file of `public` has another size or
time. Archives are data of strangers: names that climb, links, devices, two entries of one name and
what goes beyond `Bounds` are refused, in one line that names the archive, before anything is written.

An archive goes where `unzip` would put it, or into a folder of its own name where it holds several
things side by side. What is there already is never overwritten: an archive whose files all are there,
of the same size, needs no unpacking, and one that would replace a file stays packed, and agents
are told so. So do an archive inside an archive, and one that is encrypted.
"""

import errno
import hashlib
import json
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from filelock import FileLock

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.competition import Competition, refuse_others
from langgraft.environments.competitions.preparing import workshop
from langgraft.environments.competitions.preview import ARCHIVES, size

_ZIP: Final = ".zip"
_RECORD: Final = "record.json"
_LAYOUT: Final = 1
"""Of the record: raise it when views made before are to be made again."""
_CHUNK: Final = 1 << 20
_READABLE: Final = {
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
    zipfile.ZIP_BZIP2,
    zipfile.ZIP_LZMA,
}
_DEEPEST: Final = 50
_LONGEST_NAME: Final = 255
"""Bytes of one part of a path, as file systems have it."""
_RESOURCE_FORKS: Final = "__MACOSX"
"""A folder that macOS adds to archives; nobody means it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much the archives of a competition may hold."""

    bytes: int = 256 << 30
    """Unpacked, all together; MLE-bench's largest competition has some 250 GB."""
    entries: int = 1_000_000
    """Files and folders, all together."""
    ratio: int = 200
    """Bytes unpacked for each byte of an archive; tables of zeros reach 20, a bomb 1,000."""
    harmless: int = 1 << 30
    """Bytes up to which the ratio does not matter."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What agents find in `./input`."""

    folder: Path
    """`Competition.input_dir`."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What a preview says of each archive, by its path: `unpacked: train2/`."""
    witness: str | None = None
    """A file of the view that `public` does not have; `None` where the two are the same."""


def unpack_archives(competition: Competition, *, bounds: Bounds | None = None) -> Unpacked:
    """Make the view of a competition's public data in which archives are unpacked, if it is not made.

    Without an archive, or where all that archives hold lies beside them, the view is `public_dir`.

    Args:
        competition: Its data must be prepared.
        bounds: Of what archives may hold.

    Raises:
        CompetitionError: An archive is damaged, goes beyond a bound, or holds what is not unpacked;
            or the disk is full. Nothing half made is left.
    """
    refuse_others(competition)
    public = competition.public_dir
    home = public.parent / "unpacked"
    try:
        there = _scan(public)
        if not there.archives:
            _remove(home)  # of archives that are gone
            return Unpacked(public)
        stamp = there.stamp(public)
        if (known := _known(home, public, stamp)) is not None:
            return known
        return _made(competition, there, stamp, home, bounds or Bounds())
    except OSError as error:
        msg = (
            f"the archives of {competition.id} cannot be unpacked there:"
            f" {error.strerror or error}; nothing half made is left"
        )
        raise CompetitionError(msg, path=home) from error


# What lies in `public` -------------------------------------------------------------------


@dataclass(slots=True)
class _Scan:
    files: dict[str, int | None] = field(default_factory=dict)
    """Sizes of files by path; `None` for what is no regular file, such as a link."""
    folders: set[str] = field(default_factory=set)
    archives: list[str] = field(default_factory=list)

    def stamp(self, folder: Path) -> str:
        """Return a digest of names, sizes and times: what changes when anything does."""
        lines = []
        for name in sorted(self.files):
            found = (folder / name).lstat()
            self.files[name] = found.st_size if stat.S_ISREG(found.st_mode) else None
            lines.append(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n")
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _scan(public: Path) -> _Scan:
    found, waiting = _Scan(), [(public, "")]
    while waiting:
        folder, prefix = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    found.folders.add(name)
                    waiting.append((folder / entry.name, f"{name}/"))
                    continue
                found.files[name] = None
                if _ending(name) and entry.is_file(follow_symlinks=False):
                    found.archives.append(name)
    found.archives.sort()
    return found


def _ending(name: str) -> str:
    """Return the ending that makes a name an archive's; nothing for others."""
    return next((each for each in ARCHIVES if name.lower().endswith(each)), "")


def _known(home: Path, public: Path, stamp: str) -> Unpacked | None:
    """Return the view that was made of just these files, if it was."""
    try:
        record = json.loads((home / _RECORD).read_text(encoding="utf-8"))
        if record["layout"] != _LAYOUT or record["stamp"] != stamp:
            return None
        notes = {name: each["told"] for name, each in record["archives"].items()}
        if record["witness"] is None:
            return Unpacked(public, notes)
        folder = home / "files"
        return Unpacked(folder, notes, record["witness"]) if folder.is_dir() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # none, or one that was written to


# Unpacking -------------------------------------------------------------------------------


@dataclass(slots=True)
class _Plan:
    """What is to come out of an archive."""

    archive: str
    told: str
    prefix: str = ""
    """Of the paths of its entries: empty, or a folder with `/`."""
    wanted: dict[str, int] = field(default_factory=dict)
    """Sizes of the files that are to be written, by their path in the archive."""
    contents: str = ""
    """SHA-256 of a line `<SHA-256>  <path>` for each file that was written."""


def _made(
    competition: Competition, there: _Scan, stamp: str, home: Path, bounds: Bounds
) -> Unpacked:
    public = competition.public_dir
    spent = _Spent(bounds)
    plans = [_planned(public, name, there, spent) for name in there.archives]
    witness = next((each.prefix + name for each in plans for name in each.wanted), None)
    if witness is None and not os.access(home.parent, os.W_OK):
        return Unpacked(public, {each.archive: each.told for each in plans})
    with FileLock(home.parent / ".unpack.lock"):
        if (known := _known(home, public, stamp)) is not None:  # another process was faster
            return known
        with workshop(home.parent) as made:
            if witness is not None:
                _refuse_full(home.parent, plans)
                _link(public, made / "files", there)
                for plan in plans:
                    _unpack(public / plan.archive, made / "files", plan)
            (made / _RECORD).write_text(_record(public, stamp, plans, witness), encoding="utf-8")
            made.chmod(0o755)
            _remove(home)
            made.rename(home)
    known = _known(home, public, stamp)
    assert known is not None
    return known


def _remove(home: Path) -> None:
    """Remove a view that is out of date; never what is no view."""
    if (home / _RECORD).is_file():
        shutil.rmtree(home)


def _record(public: Path, stamp: str, plans: list[_Plan], witness: str | None) -> str:
    archives = {}
    for plan in plans:
        with (public / plan.archive).open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        archives[plan.archive] = {
            "told": plan.told,
            "sha256": sha256,
            "files": len(plan.wanted),
            "bytes": sum(plan.wanted.values()),
            "contents": plan.contents,
        }
    record = {"layout": _LAYOUT, "stamp": stamp, "witness": witness, "archives": archives}
    return json.dumps(record, indent=1) + "\n"


class _StaysPackedError(Exception):
    """Why an archive is left as it is; agents are told."""


@dataclass(slots=True)
class _Spent:
    """What archives have come to so far."""

    bounds: Bounds
    bytes: int = 0
    entries: int = 0

    def add(self, archive: Path, packed: int, entry: int, so_far: int) -> None:
        """Count an entry of so many bytes.

        Raises:
            CompetitionError: A bound is reached.
        """
        bounds = self.bounds
        self.entries += 1
        self.bytes += entry
        if self.entries > bounds.entries:
            raise _refused(archive, f"it holds more than {bounds.entries:,} entries")
        if self.bytes > bounds.bytes:
            raise _refused(
                archive, f"it holds more than the {size(bounds.bytes)} that are unpacked"
            )
        if so_far > max(bounds.harmless, bounds.ratio * packed):
            msg = (
                f"it is a bomb, or like one: its {size(packed)} hold {size(so_far)} or more, over"
                f" {bounds.ratio} times as much"
            )
            raise _refused(archive, msg)


def _refused(archive: Path, why: str) -> CompetitionError:
    return CompetitionError(
        f"is not unpacked: {why}; take it away, or put data in its place", path=archive
    )


def _planned(public: Path, name: str, there: _Scan, spent: _Spent) -> _Plan:
    """Read what an archive holds, and say what is to be written; `there` then has that, too."""
    archive = public / name
    folder, _, file = name.rpartition("/")
    above = f"{folder}/" if folder else ""
    try:
        listed = _listed(archive, spent)
        tops = {path.partition("/")[0] for path in listed}
        own = file[: -len(_ending(name))]
        prefix = above if len(tops) == 1 else f"{above}{own}/"
        plan = _Plan(name, "", prefix)
        plan.wanted = _absent(listed, prefix, there)
    except _StaysPackedError as why:
        return _Plan(name, f"an archive, not unpacked: {why}")
    shown = [f"{prefix}{top}{'' if listed.get(top) is not None else '/'}" for top in tops]
    where = shown[0] if len(tops) == 1 else prefix
    plan.told = f"unpacked: {where}" if listed else "an empty archive"
    return plan


def _listed(archive: Path, spent: _Spent) -> dict[str, int | None]:
    """Return sizes of an archive's files by path; folders have none."""
    packed, so_far = archive.stat().st_size, 0
    listed: dict[str, int | None] = {}
    for entry in _entries(archive):
        so_far += entry.size or 0
        spent.add(archive, packed, entry.size or 0, so_far)
        if entry.path in listed and not (entry.size is None and listed[entry.path] is None):
            raise _refused(archive, f"it holds {entry.path[:80]!r} twice")
        listed[entry.path] = entry.size
    for path in list(listed):
        parts = path.split("/")
        for end in range(1, len(parts)):
            if listed.setdefault("/".join(parts[:end]), None) is not None:
                raise _refused(archive, f"{path[:80]!r} is in a folder that is a file")
    return listed


def _absent(listed: Mapping[str, int | None], prefix: str, there: _Scan) -> dict[str, int]:
    """Return those files of an archive that are not there yet, and note that they will be.

    Raises:
        _StaysPackedError: One would replace something.
    """
    wanted: dict[str, int] = {}
    for path, expected in listed.items():
        full = prefix + path
        if full in (there.folders if expected is not None else there.files):
            raise _StaysPackedError(f"{full} is there already, and another one")
        if expected is None:
            continue
        if full not in there.files:
            wanted[path] = expected
        elif there.files[full] != expected:
            raise _StaysPackedError(f"{full} is there already, and another one")
    if prefix.rstrip("/") in there.files:
        raise _StaysPackedError(f"{prefix.rstrip('/')} is there already")
    for path, expected in listed.items():
        if expected is None:
            there.folders.add(prefix + path)
        else:
            there.files[prefix + path] = expected
    if prefix:
        there.folders.add(prefix.rstrip("/"))
    return wanted


def _refuse_full(place: Path, plans: list[_Plan]) -> None:
    needed = sum(sum(each.wanted.values()) for each in plans)
    free = shutil.disk_usage(place).free
    if needed > free:
        names = ", ".join(each.archive for each in plans if each.wanted)[:200]
        msg = f"{names} cannot be unpacked there: {size(needed)} are needed, {size(free)} are free"
        raise CompetitionError(msg, path=place)


def _link(public: Path, view: Path, there: _Scan) -> None:
    """Give a view the files of `public` by hard links; copies where the file system has none."""
    _make_folder(view)
    for name in sorted(there.folders):
        if (public / name).is_dir():
            _make_folder(view / name)
    for name in there.files:
        if not os.path.lexists(public / name):  # one that an archive holds
            continue
        try:
            os.link(public / name, view / name, follow_symlinks=False)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise
            shutil.copy2(public / name, view / name, follow_symlinks=False)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir()
        folder.chmod(0o755)  # whatever the umask is: programs are another user


def _unpack(archive: Path, view: Path, plan: _Plan) -> None:
    contents = hashlib.sha256()
    if plan.prefix and plan.wanted:
        _make_folder(view / plan.prefix)
    for entry in _entries(archive) if plan.wanted else ():
        target = view / f"{plan.prefix}{entry.path}"
        if entry.size is None or entry.path not in plan.wanted:
            continue
        for parent in reversed(target.relative_to(view).parents[:-1]):
            _make_folder(view / parent)
        # Nothing is replaced, and no link is followed.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(target, flags, 0o644), "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            sha256 = _copy(archive, entry, plan.wanted[entry.path], file)
        line = f"{sha256}  {plan.prefix}{entry.path}\n"
        contents.update(line.encode("utf-8", "surrogateescape"))
    plan.contents = contents.hexdigest()


def _copy(archive: Path, entry: "_Entry", expected: int, target: IO[bytes]) -> str:
    """Write an entry; return its SHA-256. It may not hold more than was listed."""
    sha256, copied = hashlib.sha256(), 0
    with entry.open() as source:
        while data := _guarded(archive, source):
            copied += len(data)
            if copied > expected:
                break
            sha256.update(data)
            target.write(data)
    if copied != expected:
        raise _refused(archive, f"{entry.path[:80]!r} does not hold the {expected:,} bytes it says")
    return sha256.hexdigest()


# Formats ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    size: int | None
    """`None` for a folder."""
    open: Callable[[], IO[bytes]]


def _entries(archive: Path) -> Iterator[_Entry]:
    """Yield the files and folders of an archive, checked.

    Raises:
        CompetitionError: It is damaged, or one of them is not unpacked.
        _StaysPackedError: It is encrypted, or packed in a way that Python cannot read.
    """
    if _ending(archive.name) == _ZIP:
        yield from _of_zip(archive)
    else:
        yield from _of_tar(archive)


def _of_zip(archive: Path) -> Iterator[_Entry]:
    opened: zipfile.ZipFile = _reading(archive, lambda: zipfile.ZipFile(archive))
    with opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            path = _path(archive, info.filename)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _refused(archive, f"{path[:80]!r} is a link or a device")
            if path.split("/", 1)[0] in {"", _RESOURCE_FORKS}:
                continue
            if info.flag_bits & 1:
                raise _StaysPackedError("it is encrypted")
            if info.compress_type not in _READABLE:
                raise _StaysPackedError(f"packed by method {info.compress_type}")
            whole = None if info.is_dir() else info.file_size
            yield _Entry(path, whole, partial(_reading, archive, partial(opened.open, info)))


def _of_tar(archive: Path) -> Iterator[_Entry]:
    opened: tarfile.TarFile = _reading(archive, lambda: tarfile.open(archive))  # noqa: SIM115
    with opened:
        while (info := _reading(archive, opened.next)) is not None:
            opened.members.clear()  # type: ignore[attr-defined]  # it would keep them all
            path = _path(archive, info.name)
            if not info.isreg() and not info.isdir():
                raise _refused(archive, f"{path[:80]!r} is a link or a device")
            if path.split("/", 1)[0] in {"", _RESOURCE_FORKS}:
                continue
            whole = None if info.isdir() else info.size
            yield _Entry(path, whole, partial(_reading, archive, partial(opened.extractfile, info)))


def _path(archive: Path, name: str) -> str:
    """Return an entry's path in its plain form; empty for the top itself.

    Raises:
        CompetitionError: It leads elsewhere, or no file can have it.
    """
    parts = [part for part in name.split("/") if part not in {"", "."}]
    climbs = ".." in name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or climbs or name[1:2] == ":":
        raise _refused(archive, f"{name[:80]!r} leads out of the folder")
    try:
        longest = max((len(os.fsencode(part)) for part in parts), default=0)
    except UnicodeEncodeError:
        longest = _LONGEST_NAME + 1
    if longest > _LONGEST_NAME or len(parts) > _DEEPEST or "\0" in name:
        raise _refused(archive, f"{name[:80]!r} can be no file's name")
    return "/".join(parts)


def _guarded(archive: Path, source: IO[bytes]) -> bytes:
    return _reading(archive, lambda: source.read(_CHUNK))  # type: ignore[no-any-return]


def _reading(archive: Path, read: Callable[[], Any]) -> Any:
    """Read from an archive.

    Raises:
        CompetitionError: It is damaged.
        OSError: The disk's fault.
    """
    try:
        return read()
    except OSError as error:
        if error.errno is not None:
            raise
        raise _refused(archive, f"it is damaged ({error})") from error
    except Exception as error:
        # Readers raise anything for damaged data: struct.error, zlib.error, LZMAError …
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise _refused(archive, f"it is damaged ({why})") from error
