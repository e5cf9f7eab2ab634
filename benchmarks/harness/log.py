"""The log of a plan: `items.jsonl`, one CRC-checked line an item, `events.jsonl`, and what they tell.

A line is the CRC-32 of the rest as 8 lowercase hexadecimal digits, a space, and the canonical
JSON of index, item, result and memory deltas. Result and deltas share one line because a log
that wrote them apart could be cut between the two, and the stream would go on with the wrong
memory. What may differ between two repetitions of a run never enters this file.

Clocks, durations, hosts and failed attempts go to `events.jsonl`, for people and dashboards, in lines
with a checksum too. It is not synced line by line, and nothing is ever decided from it.

`PlanLog` reads a run directory: runs, results, deltas and the bank at any point.
"""

import contextlib
import hashlib
import io
import json
import os
import socket
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.effects import Clock
from langgraft._core.errors import InputError, PlanError, RunDirectoryError
from langgraft._core.files import disk_errors, read_bytes, write_all
from langgraft._core.lazy import require
from langgraft._core.untrusted import MOST_VALUES, check_number, load_json
from langgraft.benchmarks.harness.study import (
    MOST_ITEMS,
    MOST_RUNS,
    BankSource,
    EarlierRun,
    PlanLogReader,
    PlannedRun,
    RunGraph,
    RunSpec,
    build_graph,
)
from langgraft.memory.model import BankContent, MemoryDelta, fold

if TYPE_CHECKING:
    import pandas as pd

LOCK: Final = "plan.lock"
"""File of a run directory that is locked by whoever works on the whole plan."""
PROCESS: Final = "process-"
"""How files begin that are locked by whoever works on a part of it."""

REDO = "restore it, or delete its folder to redo the run"
"""What to do about a damaged file of a run."""

ANEW = "delete it and run the plan again: it is written anew"
_CRC_LENGTH = 8
_FIELDS = {"index", "item_id", "result", "deltas"}


@dataclass(frozen=True, slots=True)
class Record:
    """One committed item."""

    index: int
    item_id: str
    result: Mapping[str, JSON]
    raw_deltas: Sequence[Sequence[JSON]]

    def deltas(self) -> tuple[MemoryDelta, ...]:
        """Read the deltas of the item.

        Raises:
            InputError: They are not deltas.
        """
        return tuple(MemoryDelta.from_json(changes) for changes in self.raw_deltas)


@dataclass(frozen=True, slots=True)
class LogContent:
    """What a commit log holds: its longest valid prefix, and how much follows it."""

    records: tuple[Record, ...]
    size: int
    """Number of bytes of the valid prefix."""
    tail: int
    """Number of bytes after it, left by a write that was cut short."""
    hashed: "hashlib._Hash"
    """SHA-256 of the valid prefix, to go on with."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the valid prefix."""
        return self.hashed.hexdigest()


def encode_record(
    index: int, item_id: str, result: Mapping[str, JSON], deltas: Iterable[MemoryDelta]
) -> bytes:
    """Return the line that commits an item.

    Raises:
        ValueError: The result holds NaN, an infinity, text that is not UTF-8, or a million values.
        TypeError: The result holds something JSON cannot hold.
    """
    body = canonical_json(
        {
            "index": index,
            "item_id": item_id,
            "result": result,
            "deltas": [delta.to_json() for delta in deltas],
        }
    )
    check_number(body.encode())
    return checked_line(body)


def checked_line(body: str) -> bytes:
    """Return a line of a log: the CRC-32 of a JSON object, and the object."""
    written = body.encode()
    return b"%08x %s\n" % (zlib.crc32(written), written)


def read_checked(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line without its line break; `None` where it is damaged."""
    body = line[_CRC_LENGTH + 1 :]
    # Comparing the bytes, not the number, also notices a digit that changed its case.
    if line[: _CRC_LENGTH + 1] != b"%08x " % zlib.crc32(body):
        return None
    try:
        value = _loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _loads(body: bytes) -> Any:
    """Read JSON so that lines share the texts they have in common: a third of the memory of a log."""
    try:
        return from_json(body)
    except ValueError:  # as of texts that are no UTF-8, or of more than 200 lists in each other
        return json.loads(body)


def decode_record(line: bytes) -> Record | None:
    """Read a line without its line break; `None` where it is damaged."""
    fields = read_checked(line)
    if fields is None or fields.keys() != _FIELDS:
        return None
    return Record(fields["index"], fields["item_id"], fields["result"], fields["deltas"])


def read_log(path: Path, *, results: bool = True) -> LogContent:
    """Read a commit log up to its first damaged line; a file that is not there is empty.

    Args:
        path: The log.
        results: Keep what items gave: without, a log of any length takes little memory.

    Raises:
        RunDirectoryError: A damaged line is followed by a sound one, or an index is out of
            sequence: not what a crash leaves behind, so nothing is guessed.
    """
    if not path.exists():
        return parse_log(io.BytesIO(), path)
    try:
        with path.open("rb") as file:
            return parse_log(file, path, results=results)
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise RunDirectoryError(msg, path=path) from error


def parse_log(file: IO[bytes], path: Path, *, results: bool = True) -> LogContent:
    """Read a commit log that is open; see `read_log`."""
    records: list[Record] = []
    hashed, size = hashlib.sha256(), 0
    for number, line in enumerate(file, start=1):
        record = _whole_record(line, path)
        if record is None:
            rest = _refuse_sound_lines(file, number, path)
            return LogContent(tuple(records), size, len(line) + rest, hashed)
        if record.index != len(records):
            msg = f"line {number} holds index {record.index}, expected {len(records)}; {REDO}"
            raise RunDirectoryError(msg, path=path)
        records.append(record if results else replace(record, result={}))
        hashed.update(line)
        size += len(line)
    return LogContent(tuple(records), size, 0, hashed)


def _whole_record(line: bytes, path: Path) -> Record | None:
    """Read a line with its break; `None` where it is cut short or damaged."""
    try:
        check_number(line)
    except ValueError as error:
        raise RunDirectoryError(f"is no log of ours: {error}", path=path) from error
    return decode_record(line[:-1]) if line.endswith(b"\n") else None


def _refuse_sound_lines(file: IO[bytes], damaged: int, path: Path) -> int:
    """Look for a sound line after a damaged one; return how many bytes there are."""
    rest = 0
    for number, line in enumerate(file, start=damaged + 1):
        rest += len(line)
        if _whole_record(line, path) is not None:
            msg = (
                f"line {damaged} is damaged but line {number} is sound, so this is no "
                f"interrupted write; {REDO}"
            )
            raise RunDirectoryError(msg, path=path)
    return rest


def read_deltas(records: Iterable[Record], path: Path) -> list[MemoryDelta]:
    """Read the deltas of records in order, all in one list.

    Raises:
        RunDirectoryError: A record holds something that is no delta.
    """
    deltas: list[MemoryDelta] = []
    for record in records:
        try:
            deltas.extend(record.deltas())
        except InputError as error:
            msg = f"line {record.index + 1}: {error}"
            raise RunDirectoryError(msg, path=path) from error
    return deltas


class LogWriter:
    """Appends to a commit log; the caller holds the lock of the run directory.

    Args:
        path: The log.
        content: What `read_log` found there; a tail is cut off.

    Raises:
        RunDirectoryError: The log cannot be opened for writing.
    """

    def __init__(self, path: Path, content: LogContent) -> None:
        self._path = path
        self._size = content.size
        self._sha256 = content.hashed.copy()
        with disk_errors("open for writing", path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            if content.tail:
                os.ftruncate(self._descriptor, self._size)

    @property
    def sha256(self) -> str:
        """SHA-256 of all that is committed."""
        return self._sha256.hexdigest()

    def append(self, line: bytes) -> None:
        """Commit one line; when this returns, it survives a power loss.

        Raises:
            RunDirectoryError: The line could not be written and has been taken back.
        """
        with disk_errors(f"commit {len(line)} bytes", self._path):
            try:
                write_all(self._descriptor, line)
                os.fsync(self._descriptor)
            except OSError:
                # Should this fail too, the next reader drops the torn line.
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, self._size)
                raise
        self._size += len(line)
        self._sha256.update(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class EventWriter:
    """Appends events of one run.

    Args:
        path: The file.
        clock: Stamps each event.

    Raises:
        RunDirectoryError: The file cannot be opened for writing.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        with disk_errors("open for writing", path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            # A crash may have cut the last event.
            with path.open("rb") as file:
                whole = sum(len(line) for line in file if line.endswith(b"\n"))
            os.ftruncate(self._descriptor, whole)

    def write(self, kind: str, fields: Mapping[str, JSON]) -> None:
        """Append one event.

        Raises:
            RunDirectoryError: The event cannot be written.
        """
        event = {"event": kind, "time": self._clock.time(), **fields}
        line = checked_line(json.dumps(event, default=str, separators=(",", ":")))
        with disk_errors("write", self._path):
            write_all(self._descriptor, line)

    def write_opened(self, committed: int, dropped: int) -> None:
        """Note that a process took up the run, and from where."""
        self.write(
            "opened",
            {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "committed": committed,
                "dropped_bytes": dropped,
            },
        )

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a run; one that a crash cut short is left out.

    Raises:
        RunDirectoryError: A line is damaged, or the file cannot be read.
    """
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            yield from _events(file, path)
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise RunDirectoryError(msg, path=path) from error


def _events(file: IO[bytes], path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, start=1):
        if not line.endswith(b"\n"):
            return
        event = read_checked(line[:-1])
        if event is None:
            msg = f"line {number} is damaged; no result depends on it: restore it, or delete it"
            raise RunDirectoryError(msg, path=path)
        yield event


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is. Of the run `name` with the `id`; `planned` is how many items it has."""

    name: str
    id: str
    done: int
    """Committed items."""
    planned: int
    finished: bool
    """Whether the run is marked as done."""


def run_folder(out: Path, run: PlannedRun) -> Path:
    """Return the folder that holds the files of a run."""
    return out / "runs" / run.id


def read_json(path: Path, advice: str) -> Mapping[str, JSON]:
    """Read a JSON object.

    Raises:
        RunDirectoryError: The file cannot be read or holds no JSON object; `advice` says what to do.
    """
    try:
        value = load_json(read_bytes(path))
    except ValueError as error:
        msg = f"is damaged: {error}; {advice}"
        raise RunDirectoryError(msg, path=path) from error
    if not isinstance(value, dict):
        msg = f"is damaged: expected an object, got {type(value).__name__}; {advice}"
        raise RunDirectoryError(msg, path=path)
    return value


def read_manifest(out: Path) -> Mapping[str, JSON]:
    """Read the manifest of a run directory.

    Raises:
        RunDirectoryError: `out` is not a run directory.
    """
    if not (out / "manifest.json").is_file():
        msg = "is not a run directory: it holds no manifest.json"
        raise RunDirectoryError(msg, path=out)
    advice = "restore it, or use another directory: what this one was started with is not known"
    return read_json(out / "manifest.json", advice)


def read_graph(out: Path) -> RunGraph:
    """Read the runs of a run directory.

    Raises:
        RunDirectoryError: The list of runs cannot be read.
    """
    path = out / "runs.jsonl"
    try:
        data = read_bytes(path)
        check_number(data, MOST_VALUES + MOST_ITEMS)
        return runs_from_json(map(load_json, io.BytesIO(data)))
    except (ValueError, KeyError, TypeError, PlanError) as error:
        msg = f"is damaged: {error}; {ANEW}"
        raise RunDirectoryError(msg, path=path) from error


class PlanLog:
    """The log of a plan, finished or under way; reading never changes anything.

    `graph` has the runs of the plan.

    Args:
        path: The run directory.

    Raises:
        RunDirectoryError: `path` is not a run directory, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest = read_manifest(path)
        self.graph = read_graph(path)

    @property
    def manifest(self) -> Mapping[str, JSON]:
        """The manifest of the run directory."""
        return self._manifest

    @property
    def study(self) -> str:
        """Name of the study."""
        return str(self._manifest["study"])

    @cached_property
    def runs(self) -> tuple[RunSpec, ...]:
        """The runs of the plan."""
        return tuple(run.spec for run in self.graph)

    def records(self, name: str) -> tuple[Record, ...]:
        """Return the committed items of a run, in order."""
        return self._content(name).records

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the committed results of a run, in order."""
        return [record.result for record in self.records(name)]

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return the deltas each committed item of a run caused, in order."""
        return [record.deltas() for record in self.records(name)]

    def bank(self, name: str, items: int | None = None) -> BankContent:
        """Return the bank of a run, what it started from included.

        Args:
            name: The run.
            items: After how many of its items; `None` for all committed ones.

        Raises:
            RunDirectoryError: The run or one of its sources has not come that far.
        """
        run = self._run(name)
        own = self._content(name)
        wanted = len(own.records) if items is None else items
        deltas = [
            *start_deltas(self.path, self.graph, run),
            *_first_deltas(self.path, run, own, wanted),
        ]
        return fold_log(deltas, run_folder(self.path, run))

    def rows(self) -> Iterator[dict[str, JSON]]:
        """Yield the committed items of all runs, run by run, as flat rows.

        A row has `run`, `index` and `item`, then the factors of the run as `factor.NAME`, and what the
        item's result holds: nested names joined by dots, a list as its length.
        """
        for run in self.graph:
            factors = _flat("factor", run.spec.factors)
            for record in self.records(run.name):
                told: dict[str, JSON] = {
                    "run": run.name,
                    "index": record.index,
                    "item": record.item_id,
                }
                yield told | factors | _flat("", record.result)

    def frame(self) -> "pd.DataFrame":
        """Return the rows as a frame of pandas.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        frames = require("pandas", extra="bench", purpose="A frame")
        frame: pd.DataFrame = frames.DataFrame(list(self.rows()))
        return frame

    @property
    def n_planned(self) -> int:
        """Items of all runs together."""
        return sum(run.length for run in self.graph)

    @property
    def n_done(self) -> int:
        """Committed items of all runs together."""
        return sum(run.done for run in self.progress())

    @property
    def complete(self) -> bool:
        """Whether every run is marked as done."""
        return all(run.finished for run in self.progress())

    def progress(self) -> list[RunProgress]:
        """Return how far each run is, without reading what its items hold."""
        return [run_progress(self.path, run) for run in self.graph]

    def _run(self, name: str) -> PlannedRun:
        if name not in self.graph:
            msg = f"no run is called {name!r}"
            raise RunDirectoryError(msg, path=self.path)
        return self.graph[name]

    def _content(self, name: str) -> LogContent:
        return read_log(run_folder(self.path, self._run(name)) / "items.jsonl")


def open_run(path: Path | str) -> PlanLog:
    """Open a run directory to read it: `open_run("runs/demo").frame()`.

    Raises:
        RunDirectoryError: It is none, or is damaged.
    """
    return PlanLog(Path(path))


def _flat(name: str, value: JSON) -> dict[str, JSON]:
    """Return what a value holds under names joined by dots."""
    if isinstance(value, Mapping):
        prefix = f"{name}." if name else ""
        parts = (_flat(f"{prefix}{key}", each) for key, each in value.items())
        return {key: each for part in parts for key, each in part.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {name: len(value)}
    return {name: value}


def run_progress(out: Path, run: PlannedRun) -> RunProgress:
    """Count the committed items of a run; cheap enough for thousands of runs."""
    folder = run_folder(out, run)
    if (folder / "DONE.json").exists():
        return RunProgress(run.name, run.id, run.length, run.length, finished=True)
    path = folder / "items.jsonl"
    lines = read_bytes(path).count(b"\n") if path.exists() else 0
    return RunProgress(run.name, run.id, min(lines, run.length), run.length, finished=False)


def start_deltas(out: Path, graph: RunGraph, run: PlannedRun) -> list[MemoryDelta]:
    """Return the deltas of the bank a run starts from, those of the oldest source first.

    Raises:
        RunDirectoryError: A source has not come as far as the run needs.
    """
    deltas = []
    for source, items in graph.lineage(run):
        content = read_log(run_folder(out, source) / "items.jsonl", results=False)
        deltas.extend(_first_deltas(out, source, content, items))
    return deltas


def read_earlier(out: Path, graph: RunGraph, run: PlannedRun) -> dict[str, EarlierRun]:
    """Return what the runs left that a run reads, by name.

    Raises:
        RunDirectoryError: One of them is not finished.
    """
    found = {}
    for name in run.spec.reads:
        other = graph[name]
        content = read_log(run_folder(out, other) / "items.jsonl")
        deltas = _first_deltas(out, other, content, other.length)
        results = [record.result for record in content.records]
        found[name] = EarlierRun(results, deltas, content.sha256)
    return found


def _first_deltas(out: Path, run: PlannedRun, content: LogContent, items: int) -> list[MemoryDelta]:
    path = run_folder(out, run) / "items.jsonl"
    if len(content.records) < items:
        msg = f"holds {len(content.records)} items of run {run.name!r}; {items} are needed"
        raise RunDirectoryError(msg, path=path)
    return read_deltas(content.records[:items], path)


def fold_log(deltas: list[MemoryDelta], path: Path) -> BankContent:
    """Fold deltas read from a log.

    Raises:
        RunDirectoryError: They do not fit each other.
    """
    try:
        return fold(deltas)
    except InputError as error:
        msg = f"the deltas do not fold: {error}"
        raise RunDirectoryError(msg, path=path) from error


def deltas_before(log: PlanLogReader, run: RunSpec) -> list[MemoryDelta]:
    """Return the deltas of the bank that a run started from, the oldest first."""
    if run.source is None:
        return []
    source = next(each for each in log.runs if each.name == run.source.run)
    own = log.deltas(source.name)[: run.source.items]
    return [*deltas_before(log, source), *chain.from_iterable(own)]


def runs_from_json(rows: Iterable[Mapping[str, JSON]]) -> RunGraph:
    """Read back the runs that `run_to_json` wrote.

    Raises:
        PlanError: They do not form a graph.
        KeyError: A field is missing.
        TypeError: A field has the wrong type.
    """
    names: dict[str, str] = {}
    identities = []
    for row in rows:
        identity = row["identity"]
        if not isinstance(identity, Mapping):
            msg = f"an identity is {identity!r}"
            raise TypeError(msg)
        names[str(row["run_id"])] = str(identity["name"])
        identities.append(identity)
        if len(identities) > MOST_RUNS:
            msg = f"there are more than {MOST_RUNS:,} runs"
            raise PlanError(msg)
    return build_graph([_spec_from_json(identity, names) for identity in identities])


def _spec_from_json(identity: Mapping[str, JSON], names: Mapping[str, str]) -> RunSpec:
    source, factors, item_ids = identity["source"], identity["factors"], identity["item_ids"]
    if not isinstance(factors, Mapping) or not isinstance(item_ids, Sequence):
        msg = f"factors or items of {identity['name']!r} have the wrong type"
        raise TypeError(msg)
    bank = None
    if isinstance(source, Mapping):
        items = source["items"]
        bank = BankSource(names[str(source["run"])], items if isinstance(items, int) else None)
    reads = identity.get("reads", ())
    if not isinstance(reads, Sequence):
        msg = f"what {identity['name']!r} reads has the wrong type"
        raise TypeError(msg)
    return RunSpec(
        study=str(identity["study"]),
        name=str(identity["name"]),
        factors=factors,
        item_ids=tuple(str(item) for item in item_ids),
        source=bank,
        frozen=bool(identity["frozen"]),
        reads=tuple(names[str(each)] for each in reads),
    )
