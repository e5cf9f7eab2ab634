"""The committing side of one run: opens its files, checks each outcome, appends it."""

import json
from collections.abc import Mapping
from pathlib import Path

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.clock import Clock
from langgraft._core.errors import InputError, RunDirectoryError, StudyError
from langgraft.benchmarks.harness.files import atomic_write, make_directory
from langgraft.benchmarks.harness.graph import PlannedRun, RunGraph
from langgraft.benchmarks.harness.log import fold_log, read_json, run_folder, start_deltas
from langgraft.benchmarks.harness.records import (
    EventWriter,
    LogContent,
    LogWriter,
    encode_record,
    read_deltas,
    read_log,
)
from langgraft.benchmarks.harness.study import ItemOutcome
from langgraft.memory.deltas import BankContent, MemoryDelta


class RunStream:
    """The files of one run, open for committing; the run directory's lock must be held.

    A run starts by writing `spec.json`, which holds the digest of the bank it starts from. When
    the run is resumed, that bank must still come out of the source's log.

    Args:
        out: The run directory.
        graph: The runs of the plan.
        run: The run to open.
        clock: Stamps events.

    Raises:
        RunDirectoryError: The files contradict the run or its source, or cannot be written.
    """

    def __init__(self, out: Path, graph: RunGraph, run: PlannedRun, clock: Clock) -> None:
        self.run = run
        self.folder = run_folder(out, run)
        start = start_deltas(out, graph, run)
        self._bank = fold_log(start, self.folder)
        make_directory(self.folder)
        _keep_spec(self.folder, run, self._bank)
        content = read_items(self.folder, run)
        own = read_deltas(content.records, self.folder / "items.jsonl")
        self._bank = fold_log([*start, *own], self.folder / "items.jsonl")
        self.deltas: tuple[MemoryDelta, ...] = (*start, *own)
        """All deltas when the stream was opened, those of the source first."""
        self.committed = len(content.records)
        """Number of committed items."""
        self.dropped = content.tail
        """Bytes of an unfinished record that were cut off on opening."""
        self._log = LogWriter(self.folder / "items.jsonl", content)
        self._events = EventWriter(self.folder / "events.jsonl", clock)
        self._events.write_opened(self.committed, content.tail)

    def commit(self, outcome: ItemOutcome, seconds: float) -> None:
        """Commit the next item with its deltas.

        Args:
            outcome: What the item gave.
            seconds: How long it took.

        Raises:
            StudyError: The outcome cannot be kept: it is no canonical JSON, its deltas do not
                fit the bank, or they change a frozen one. Nothing is committed.
            RunDirectoryError: The disk failed.
        """
        index = self.committed
        item_id = self.run.spec.item_ids[index]
        try:
            line = encode_record(index, item_id, outcome.result, outcome.deltas)
            self._apply(outcome.deltas)
        except (InputError, TypeError, ValueError) as error:
            msg = f"the outcome cannot be committed: {error}"
            raise StudyError(msg, run=self.run.name, item=item_id) from error
        self._log.append(line)
        self.committed += 1
        fields: dict[str, JSON] = {
            "index": index,
            "item_id": item_id,
            "seconds": seconds,
            "data": outcome.events,
        }
        self._events.write("item", fields)

    def _apply(self, deltas: tuple[MemoryDelta, ...]) -> None:
        if self.run.spec.frozen and any(deltas):
            msg = "it changes memory in a run whose bank is frozen"
            raise InputError(msg)
        for delta in deltas:
            for change in delta:
                self._bank.apply(change)

    def note(self, kind: str, text: str) -> None:
        """Write an event that commits nothing."""
        self._events.write(kind, {"text": text})

    def finish(self) -> None:
        """Mark the run as done.

        Raises:
            RunDirectoryError: The mark cannot be written.
        """
        done: dict[str, JSON] = {"items": self.committed, "sha256": self._log.sha256}
        atomic_write(self.folder / "DONE.json", f"{canonical_json(done)}\n".encode())
        self._events.write("done", {"items": self.committed})

    def close(self) -> None:
        """Close the files."""
        self._log.close()
        self._events.close()


def read_items(folder: Path, run: PlannedRun) -> LogContent:
    """Read the committed items of a run and check that they are the run's.

    Raises:
        RunDirectoryError: An item is not the one the plan has at this place.
    """
    path = folder / "items.jsonl"
    content = read_log(path)
    if len(content.records) > run.length:
        msg = f"holds {len(content.records)} items; the run has {run.length}"
        raise RunDirectoryError(msg, path=path)
    for record, expected in zip(content.records, run.spec.item_ids, strict=False):
        if record.item_id != expected:
            msg = f"line {record.index + 1} holds item {record.item_id!r}, expected {expected!r}"
            raise RunDirectoryError(msg, path=path)
    return content


def check_done(folder: Path, run: PlannedRun, content: LogContent) -> bool:
    """Return whether a run is marked as done, and check that its log is as it was then.

    Raises:
        RunDirectoryError: The log has changed since.
    """
    path = folder / "DONE.json"
    if not path.exists():
        return False
    done = read_json(path)
    want = {"items": run.length, "sha256": done.get("sha256")}
    have: dict[str, JSON] = {"items": len(content.records), "sha256": content.sha256}
    if content.tail or done != want or done != have:
        msg = (
            f"says {done.get('items')} items with SHA-256 {str(done.get('sha256'))[:12]}; "
            f"items.jsonl holds {have['items']} of {run.length} with {content.sha256[:12]} and "
            f"{content.tail} bytes of no record; restore it, or delete its folder to redo the run"
        )
        raise RunDirectoryError(msg, path=path)
    return True


def is_done(out: Path, run: PlannedRun) -> bool:
    """Return whether a run is finished and its log unharmed.

    Raises:
        RunDirectoryError: It was finished, and its log has changed since.
    """
    folder = run_folder(out, run)
    if not (folder / "DONE.json").exists():
        return False
    return check_done(folder, run, read_items(folder, run))


def spec_json(run: PlannedRun, bank: BankContent) -> dict[str, JSON]:
    """Return what `spec.json` holds."""
    digest = None if run.spec.source is None else bank.digest
    return {"run_id": run.id, "identity": run.identity, "bank": digest}


def _keep_spec(folder: Path, run: PlannedRun, bank: BankContent) -> None:
    path = folder / "spec.json"
    spec = spec_json(run, bank)
    if not path.exists():
        atomic_write(path, f"{canonical_json(spec)}\n".encode())
        return
    found = read_json(path)
    if found == json.loads(canonical_json(spec)):
        return
    msg = "does not describe this run"
    if found.get("bank") != spec["bank"]:
        msg = (
            "the bank the run started from no longer comes out of its source's log "
            f"({_short(found, 'bank')} → {_short(spec, 'bank')}); restore the log, or delete "
            "this folder to redo the run"
        )
    raise RunDirectoryError(msg, path=path)


def _short(spec: Mapping[str, JSON], key: str) -> str:
    return str(spec.get(key))[:12]
