"""Texts and files by reference, and runs as chains of them: what a checkpoint must not hold.

A run is a chain of contents: a checkpoint holds one reference, however long the run is. Each record
is a content in canonical JSON, and names the one before it by digest. So the last reference vouches
for the whole run: two runs are the same, byte for byte, exactly if their last references are equal,
and a record that is written again after a crash is the same content. What the records of one kind of
run add up to is for its own module to say (`langgraft.nodes.search.journal`,
`langgraft.nodes.workbench.log`).
"""

import hashlib
import json
import re
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from langgraft._core.arguments import describe_validation
from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import sync, write_whole
from langgraft._core.forks import renewed

_REFERENCE: Final = re.compile(r"[0-9a-f]{64}")
_LARGE: Final = 1 << 20
"""Bytes from which on a content is kept compressed: submissions may have 157 MB each."""
_COMPRESSED: Final = ".zlib"


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

    One of 1 MiB and more is kept compressed, with `.zlib` behind its name.
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
        path = self._path(reference, compressed=len(content) >= _LARGE)
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
            if not path.exists() and (large := self._path(reference, compressed=True)).exists():
                path = large
            content = _content_of(path)
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

    def _path(self, reference: str, *, compressed: bool = False) -> Path:
        return self.folder / reference[:2] / f"{reference[2:]}{_COMPRESSED if compressed else ''}"


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
        return _content_of(path) == content
    except OSError:
        return False


def _content_of(path: Path) -> bytes:
    """Read a content; of one that cannot be unpacked, what the file holds: its digest is another."""
    data = path.read_bytes()
    try:
        return zlib.decompress(data) if path.suffix == _COMPRESSED else data
    except zlib.error:
        return data


def _write(path: Path, content: bytes, folder: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, zlib.compress(content, 1) if path.suffix == _COMPRESSED else content)
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


R = TypeVar("R")
"""A record, as it was read."""
V = TypeVar("V")
"""What the records so far add up to."""

_PREVIOUS: Final = "previous"
_HEADS: Final = 16
"""Runs that are remembered at a time, of each keeper of artifacts."""


class RecordChain(Generic[R, V]):
    """Reads and writes chains of one kind, and remembers what was read last.

    What was read before in this process, through the same artifacts, is not read again: going
    through a run that grows step by step reads each record once.

    Args:
        what: Whose records these are, for messages: `search`.
        keys: Keys of a record, besides `previous`.
        parse: Reads a record; what it raises (`ValueError`, `InputError`) says that it is none.
        extend: Adds a record to what came before, under its reference; raises `InputError` where
            it does not follow.
        start: What no record at all adds up to.
    """

    def __init__(
        self,
        what: str,
        *,
        keys: Iterable[str],
        parse: Callable[[Mapping[str, Any]], R],
        extend: Callable[[V, R, str], V],
        start: V,
    ) -> None:
        self._what = what
        self._keys = frozenset(keys) | {_PREVIOUS}
        self._parse = parse
        self._extend = extend
        self._start = start
        self._memos: WeakKeyDictionary[Artifacts, _Memo[V]] = WeakKeyDictionary()
        self._lock = renewed(threading.Lock())

    def append(self, artifacts: Artifacts, previous: str, content: Mapping[str, JSON]) -> str:
        """Add a record, and return its reference.

        Raises:
            InputError: It does not follow from the records before it, or one of those is missing
                or damaged.
            InfrastructureError: It cannot be written now.
        """
        before = self.read(artifacts, previous)
        written = canonical_json({**content, _PREVIOUS: previous})
        parsed = self._parse(json.loads(written))  # as it will be read back
        longer = self._extend(before, parsed, reference_of(written.encode("utf-8")))
        reference = artifacts.keep(written.encode("utf-8"))
        self._memo(artifacts).remember(reference, longer, instead_of=previous)
        return reference

    def read(self, artifacts: Artifacts, reference: str) -> V:
        """Return what the records up to a reference add up to; nothing is before the first one.

        Raises:
            InputError: A record is missing, damaged, no record, or does not follow from the one
                before.
            InfrastructureError: A record is there and cannot be read now.
        """
        memo = self._memo(artifacts)
        records: list[tuple[str, R]] = []
        value, at = self._start, reference
        while at:
            remembered = memo.get(at)
            if remembered is not None:
                value = remembered
                break
            record, previous = self._read_record(artifacts, at, after=len(records))
            records.append((at, record))
            at = previous
        for named, record in reversed(records):
            value = self._extend(value, record, named)
        if reference:
            memo.remember(reference, value)
        return value

    def _read_record(self, artifacts: Artifacts, reference: str, *, after: int) -> tuple[R, str]:
        where = f"the {self._what}'s record {check_reference(reference)[:12]}"
        if after:
            where += f", {after} before its last"
        try:
            content = artifacts.read(reference)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        try:
            return self._record(json.loads(content.decode("utf-8")))
        except ValidationError as error:
            raise InputError(f"{where}: {describe_validation(error)}") from error
        except (ValueError, RecursionError, InputError) as error:
            msg = f"{where}: the content of that reference is no record of a {self._what}: {error}"
            raise InputError(msg) from error

    def _record(self, value: Any) -> tuple[R, str]:
        if not isinstance(value, dict) or value.keys() != self._keys:
            raise InputError(f"it has not the keys {', '.join(sorted(self._keys))}")
        previous = value[_PREVIOUS]
        if previous != "":
            check_reference(previous)
        return self._parse(value), previous

    def _memo(self, artifacts: Artifacts) -> "_Memo[V]":
        with self._lock:
            try:
                return self._memos.setdefault(artifacts, _Memo())
            except TypeError:  # artifacts that cannot be a key: nothing is remembered
                return _Memo()


class _Memo(Generic[V]):
    """The runs read last. What a reference names never changes, so none is ever stale."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, V] = OrderedDict()
        self._lock = renewed(threading.Lock())

    def get(self, reference: str) -> V | None:
        with self._lock:
            return self._values.get(reference)

    def remember(self, reference: str, value: V, *, instead_of: str = "") -> None:
        with self._lock:
            if instead_of in self._values:  # the first to go: a run goes on from its last record
                self._values.move_to_end(instead_of, last=False)
            self._values[reference] = value
            self._values.move_to_end(reference)
            while len(self._values) > _HEADS:
                self._values.popitem(last=False)
