"""Erasure in what plans leave behind: run directories, and caches of what models replied.

    erase(memory, item="e0/lesson-0", ledger=ledger, places=[RunDirectory(out), ResponsePlace(path)])

A log is rewritten, not encrypted: keys for each line would have to be kept as long as the log, in every copy
of it, and a log whose lines cannot be read verifies as little as one that lacks them. Line by line, what was
erased becomes `[erased on request]`, and all else stays: ids, places, scores, the order of items, what
later changes refer to. So deltas fold, and a run that is not done is gone on with, from a bank that holds
the item without what it said. A line that said nothing of it stays as it was, byte for byte.

====================  ====================================================================
`items.jsonl`         texts of erased items; in results, phrases that give them away
`events.jsonl`        the same phrases
`DONE.json`,          digests of what was rewritten, and of the banks that come of it
`spec.json`
`kept/`, `work/`      files that hold a phrase are deleted
`report/`             is deleted: it is written anew by `langgraft report`
`store/`, `shared/`   are deleted, as they may be at any time
`responses.sqlite`    replies that hold a phrase, or answer a request that does
`erased.jsonl`        one checked line an erasure: its receipt, and the lines that it changed
====================  ====================================================================

Each file is replaced whole. `erased.jsonl` says first that an erasure was begun, and of which lines: until it has
ended, `verify` says so, and afterwards that lines were erased on request, and by which receipt.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.files import atomic_write, disk_errors, read_bytes, whole_lines
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.directory import SHARED, STORE, hold_alone
from langgraft.benchmarks.harness.log import (
    checked_line,
    fold_log,
    read_checked,
    read_earlier,
    read_graph,
    read_log,
    read_manifest,
    run_folder,
    start_deltas,
)
from langgraft.benchmarks.harness.study import WORK, PlannedRun, RunGraph
from langgraft.benchmarks.harness.verify import (
    ERASED,
    REPORT,
    read_erased,
    spec_json,
)
from langgraft.memory.erasure.places import (
    BLANK,
    Wanted,
    follows,
    found_in,
    phrases_of,
    strings_in,
    texts_of,
)
from langgraft.memory.erasure.receipts import Looked
from langgraft.memory.model import BankContent, MemoryItem
from langgraft.memory.provider import FILED

_RESPONSES: Final = "responses*.sqlite"
_STRUCTURE: Final = frozenset(
    {"index", "item_id", "event", "op", "id", "episode_id", "task_id", "source_domain", "type"}
)
"""Fields of lines, changes and items that others refer to, or that analyses group by."""


@dataclass(frozen=True)
class ResponsePlace:
    """A cache of what models replied: replies go that hold a phrase, or answer a request that does."""

    path: Path

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        return f"replies in {self.path}"

    def harvest(self, wanted: Wanted) -> Wanted:
        """Replies say nothing that is not looked for."""
        return wanted

    def erase(self, wanted: Wanted, receipt: int) -> Looked:  # noqa: ARG002
        """Delete them, and rewrite the file."""
        if not self.path.exists():
            return Looked(place=self.name)
        with ResponseCache(self.path) as cache:
            count = cache.forget(wanted.in_json)
        left = tuple(f"{path}: it says it still" for path in found_in([self.path], wanted))
        return Looked(place=self.name, removed=count, left=left)


@dataclass(frozen=True)
class _Blanking:
    """Takes out of lines what is erased; ids, whole, stay."""

    wanted: Wanted
    ids: frozenset[str]

    def rewritten(self, line: bytes) -> bytes:
        """Return a line of a log; the same bytes, where it says nothing of it."""
        value = read_checked(line.removesuffix(b"\n"))
        if value is None:  # `verify` tells of it
            return line
        new = self.line(value)
        if new == value:
            return line
        if "deltas" in new:
            return checked_line(canonical_json(new))
        return checked_line(json.dumps(new, separators=(",", ":")))

    def line(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a line holds."""
        line = {
            name: part if name in _STRUCTURE else self._blanked(part)
            for name, part in value.items()
        }
        if "deltas" in line:
            line["deltas"] = [[self._change(each) for each in delta] for delta in value["deltas"]]
        return line

    def _change(self, change: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a change: an erased item says nothing, in all others phrases are blanked."""
        if change.get("op") != "add":
            return {
                k: part if k in _STRUCTURE else self._blanked(part) for k, part in change.items()
            }
        item = change["item"]
        told = {k: part if k in _STRUCTURE else self._blanked(part) for k, part in item.items()}
        if item["id"] in self.wanted.items:
            told = {k: part for k, part in told.items() if k != "key"} | {"text": BLANK}
            if metadata := told.get("metadata"):
                told["metadata"] = {
                    k: BLANK if isinstance(part, str) and " " in part else part
                    for k, part in metadata.items()
                }
        return {**change, "item": told}

    def _blanked(self, value: Any) -> Any:
        match value:
            case str():
                return value if value in self.ids else self.wanted.blanked(value)
            case Mapping():
                return {self._blanked(k): self._blanked(part) for k, part in value.items()}
            case list():
                return [self._blanked(part) for part in value]
        return value


@dataclass(frozen=True)
class RunDirectory:
    """A run directory, which nobody may be running a plan in.

    The results of an episode that is erased whole give away what they say and no other result does.
    """

    out: Path

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        return f"run directory {self.out}"

    def harvest(self, wanted: Wanted) -> Wanted:
        """Return what the directory's own banks and results say of it.

        Raises:
            RunDirectoryError: It is no run directory, or damaged.
        """
        read_manifest(self.out)
        said: list[str] = []
        kept: set[str] = {*self._ids(), *wanted.items, *wanted.episodes}
        for _, _, line in self._lines():
            own = _is_of(line, wanted)
            (said.extend if own else kept.update)(strings_in(line["result"]))
        whole = "\n".join(sorted(kept))
        found = Wanted(phrases=tuple(phrases_of(said, lambda phrase: phrase in whole)))
        named = "\n".join(sorted(self._ids()))
        for run in read_graph(self.out):
            content = self._ever(run)
            ids = follows(content, wanted).items
            texts = [text for identity in ids for text in texts_of(content.items[identity])]
            phrases = phrases_of(texts, lambda phrase: phrase in named)
            found = found.and_also(Wanted((), ids, (), tuple(texts), tuple(phrases)))
        return wanted.and_also(found)

    def erase(self, wanted: Wanted, receipt: int) -> Looked:
        """Rewrite what speaks of it.

        Raises:
            RunDirectoryError: A plan, or a shard of one, is being run in it, or a file cannot be written.
        """
        with hold_alone(self.out):
            blanking = _Blanking(wanted, frozenset(self._ids()))
            changes = {run.id: self._changed(run, blanking) for run in read_graph(self.out)}
            changed = {run: lines for run, lines in changes.items() if lines}
            begun = [each for each in read_erased(self.out) if each.get("ended") is None]
            # What a crash came after is as it will be: which lines these were is known from then.
            for run, lines in begun[-1].get("lines", {}).items() if begun else ():
                changed[run] = sorted({*lines, *changed.get(run, ())})
            stale = self._holding(wanted, touched=bool(changed or begun))
            if changed or stale or begun:
                self._note({"receipt": receipt, "lines": _as_json(changed)})
                for run in read_graph(self.out):
                    self._rewrite(run, blanking)
                self._set_digests(read_graph(self.out))
                for path in stale:
                    _delete(path)
                lines = _as_json(changed)
                self._note({"receipt": receipt, "ended": lines, "logs": self._logs()})
            count = sum(map(len, changed.values())) + len(stale)
            for path in sorted(self.out.glob(_RESPONSES)):
                count += ResponsePlace(path).erase(wanted, receipt).removed
        left = [f"{path}: it says it still" for path in found_in([self.out], wanted)]
        links = [path for path in self._folders() if path.is_symlink()]
        left += [f"{path}: a link, which is not followed: erase where it leads" for path in links]
        return Looked(place=self.name, removed=count, left=tuple(left))

    def _folders(self) -> list[Path]:
        """Return the folders in which runs keep files."""
        return [path for each in ("kept", WORK) for path in self.out.glob(f"runs/*/{each}")]

    def _ids(self) -> set[str]:
        """Return the names of items of runs, and of items of their banks: later lines refer to them."""
        found: set[str] = set()
        for run in read_graph(self.out):
            found.update(run.spec.item_ids)
            for identity, item in self._ever(run).items.items():
                found.update((identity, item.episode_id))
        return found

    def _lines(self) -> Iterator[tuple[PlannedRun, int, dict[str, Any]]]:
        """Yield the committed lines of all runs."""
        for run in read_graph(self.out):
            for record in read_log(run_folder(self.out, run) / "items.jsonl").records:
                line = {"result": record.result, "deltas": record.raw_deltas}
                yield run, record.index, line

    def _ever(self, run: PlannedRun) -> BankContent:
        """Return all items that a run ever added."""
        items: dict[str, MemoryItem] = {}
        path = run_folder(self.out, run) / "items.jsonl"
        for record in read_log(path, results=False).records:
            for change in _changes_of(record.raw_deltas):
                if change.get("op") == "add":
                    item = MemoryItem.from_json(change["item"])
                    items.setdefault(item.id, item)
        return BankContent(items=items)

    def _changed(self, run: PlannedRun, blanking: _Blanking) -> list[int]:
        """Return which lines of a run speak of it."""
        log = read_log(run_folder(self.out, run) / "items.jsonl")
        lines = ({"result": each.result, "deltas": each.raw_deltas} for each in log.records)
        return [n for n, line in enumerate(lines) if blanking.line(line) != line]

    def _holding(self, wanted: Wanted, *, touched: bool) -> list[Path]:
        """Return the files and folders that are deleted."""
        caches = [path for name in (STORE, SHARED, REPORT) if (path := self.out / name).exists()]
        if not touched:
            caches = [path for path in caches if found_in([path], wanted)]
        own = (path for path in self._folders() if not path.is_symlink())
        return [*caches, *found_in(own, wanted)]

    def _rewrite(self, run: PlannedRun, blanking: _Blanking) -> None:
        """Rewrite both logs of a run."""
        for name in ("items.jsonl", "events.jsonl"):
            path = run_folder(self.out, run) / name
            data = whole_lines(read_bytes(path)) if path.exists() else b""
            lines = [blanking.rewritten(line) for line in data.splitlines(keepends=True)]
            if (new := b"".join(lines)) != data:
                atomic_write(path, new)
                with disk_errors("rewrite", path):
                    path.with_name(f".{name}.tmp").unlink(missing_ok=True)

    def _set_digests(self, graph: RunGraph) -> None:
        """Have marks and specifications name what the logs are now."""
        for run in graph:
            folder = run_folder(self.out, run)
            log = read_log(folder / "items.jsonl", results=False)
            if (done := folder / "DONE.json").exists():
                mark: dict[str, JSON] = {"items": len(log.records), "sha256": log.sha256}
                _write_json(done, mark)
            if (path := folder / "spec.json").exists():
                start = fold_log(start_deltas(self.out, graph, run), folder)
                _write_json(path, spec_json(run, start, read_earlier(self.out, graph, run)))

    def _logs(self) -> dict[str, JSON]:
        """Return the digests of all logs, by run."""
        told: dict[str, JSON] = {}
        for run in read_graph(self.out):
            log = read_log(run_folder(self.out, run) / "items.jsonl", results=False)
            if log.records:
                told[run.id] = {"items": len(log.records), "sha256": log.sha256}
        return told

    def _note(self, entry: Mapping[str, JSON]) -> None:
        path = self.out / ERASED
        before = whole_lines(read_bytes(path)) if path.exists() else b""
        atomic_write(path, before + checked_line(canonical_json(dict(entry))))


def _as_json(lines: Mapping[str, Sequence[int]]) -> dict[str, JSON]:
    return {run: [*each] for run, each in lines.items()}


def _write_json(path: Path, value: Mapping[str, JSON]) -> None:
    data = f"{canonical_json(dict(value))}\n".encode()
    if read_bytes(path) != data:
        atomic_write(path, data)


def _delete(path: Path) -> None:
    with disk_errors("delete", path):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _changes_of(deltas: Any) -> Iterator[Mapping[str, Any]]:
    for delta in deltas:
        yield from delta


def _is_of(line: Mapping[str, Any], wanted: Wanted) -> bool:
    """Say whether a line is of an episode that is erased whole."""
    keys = (change.get("key") for change in _changes_of(line["deltas"]))
    filed = {str(key).removeprefix(FILED) for key in keys if str(key).startswith(FILED)}
    return not filed.isdisjoint(wanted.episodes)
