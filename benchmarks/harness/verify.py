"""Check a run directory and its report against themselves; no study is needed.

What is shown is integrity: that nothing has changed since it was written. It is not authenticity:
whoever rewrites a file can rewrite the checksums and digests, too.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft._core.errors import RunDirectoryError
from langgraft._core.files import atomic_write, each_whole_line, read_bytes, whole_lines
from langgraft._core.untrusted import load_yaml
from langgraft.benchmarks.harness.log import (
    ANEW,
    REDO,
    LogContent,
    PlanLog,
    fold_log,
    read_checked,
    read_deltas,
    read_earlier,
    read_events,
    read_json,
    read_log,
    run_folder,
    start_deltas,
)
from langgraft.benchmarks.harness.study import WORK, EarlierRun, PlannedRun, run_to_json
from langgraft.memory.model import BankContent

REPORT: Final = "report"
"""Folder of a run directory that holds the report."""
ERASED: Final = "erased.jsonl"
"""File of a run directory that says what was erased in it on request."""
DIGESTS: Final = "digests.json"
"""File of the report that lists what it was made from, and all that it is."""
INTEGRITY: Final = (
    "This is about integrity, that nothing changed since it was written; not about authenticity,"
    " who wrote it."
)

_DIRECTORY_FILES: Final = ("manifest.json", "plan.yaml", "runs.jsonl")
_RUN_FILES: Final = ("spec.json", "items.jsonl", "events.jsonl", "DONE.json")
_RUN_FOLDERS: Final = ("kept", WORK)
_DRAFTS: Final = (".spec.json.tmp", ".DONE.json.tmp", ".items.jsonl.tmp", ".events.jsonl.tmp")
"""What a crash in the middle of writing a file leaves behind."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as the harness leaves it. `message` is a line that says what, and where."""

    path: Path
    """The file or folder."""
    message: str
    interrupted: bool = False
    """Whether it is only what an interrupted run leaves behind, and no damage."""
    on_request: bool = False
    """Whether it is only that something was erased on request, which is no damage either."""

    def __str__(self) -> str:
        return (
            self.message
            if self.message.startswith(str(self.path))
            else f"{self.path}: {self.message}"
        )


def verify_directory(out: Path) -> list[Finding]:
    """Check a run directory, finished or not, and its report where there is one.

    Checked are the checksum, index and item of every line, the ids of the runs, the banks
    they start from, that deltas fold and are absent from frozen runs, the marks of finished
    runs, that plan and runs are those of the manifest; and that every file of the report and of
    what it was made from is as the report's list of digests says.

    Returns:
        What is wrong; empty when all is well. What was erased on request is named too.

    Raises:
        RunDirectoryError: `out` is not a run directory.
    """
    return [*_verify_log(out), *_verify_report(out)]


def require_intact(out: Path, otherwise: str) -> None:
    """Verify a log before something is made of it.

    Args:
        out: The run directory.
        otherwise: What is not done with a damaged one: `no report is made`.

    Raises:
        RunDirectoryError: `out` is not a run directory, or its log is damaged.
    """
    found = _verify_log(out)
    damage = [finding for finding in found if not (finding.interrupted or finding.on_request)]
    if damage:
        first, others = damage[0], len(damage) - 1
        more = f" (and {others} more: see `langgraft verify`)" if others else ""
        msg = f"{first.message}; {otherwise} of a damaged log{more}"
        raise RunDirectoryError(msg, path=first.path)


@contextmanager
def sealed_report(out: Path) -> Iterator[Path]:
    """Verify a log, then list the digests of the report that the block writes of it.

    Yields:
        The folder for the report.

    Raises:
        RunDirectoryError: `out` is not a run directory, or its log is damaged; nothing is written.
    """
    require_intact(out, "no report is made")
    yield out / REPORT
    listed: dict[str, JSON] = {
        path.relative_to(out).as_posix(): _digest_of(read_bytes(path), path)
        for path in (*_evidence(out), *_report_files(out))
    }
    atomic_write(out / REPORT / DIGESTS, f"{canonical_json({'files': listed})}\n".encode())


def _verify_log(out: Path) -> list[Finding]:
    try:
        log = PlanLog(out)
    except RunDirectoryError as error:
        if error.path == out:
            raise
        return [_finding(error)]
    return [
        *verify_plan(log),
        *_verify_folders(log),
        *_verify_runs(log),
        *_verify_erased(log),
    ]


def _verify_report(out: Path) -> Iterator[Finding]:
    present = {path.relative_to(out).as_posix() for path in _report_files(out)}
    path = out / REPORT / DIGESTS
    if not path.is_file():
        if present:
            yield Finding(path, "is missing: the report was not finished; write it again")
        return
    try:
        listed = read_json(path, "write the report again").get("files")
    except RunDirectoryError as error:
        yield _finding(error)
        return
    if not isinstance(listed, Mapping):
        yield Finding(path, "is damaged: it lists no files")
        return
    for name, expected in listed.items():
        yield from _verify_listed(out / name, expected)
    for name in sorted(present - listed.keys()):
        yield Finding(out / name, "is not of the report: its list of digests does not name it")


def _verify_listed(path: Path, expected: JSON) -> Iterator[Finding]:
    try:
        data = read_bytes(path) if path.exists() else None
    except RunDirectoryError as error:
        yield _finding(error)
        return
    if data is None:
        yield Finding(path, "is missing, and the report's list of digests names it")
        return
    size = expected.get("bytes") if isinstance(expected, Mapping) else None
    if _grows(path) and isinstance(size, int):
        data = data[:size]  # runs go on after a report of them
    if _digest_of(data, path) != expected:
        yield Finding(path, "is not what it was when the report was written")


def _evidence(out: Path) -> Iterator[Path]:
    """Find the files that a report rests on; those kept to look at are final once a run is done."""
    yield from (out / name for name in _DIRECTORY_FILES)
    for folder in sorted((out / "runs").iterdir()):
        yield from (path for name in _RUN_FILES if (path := folder / name).is_file())
        if (folder / "DONE.json").exists():
            yield from sorted(path for path in (folder / "kept").rglob("*") if path.is_file())


def _report_files(out: Path) -> list[Path]:
    """Find what a report is, without its list and without drafts that a crash left behind."""
    found = (path for path in (out / REPORT).rglob("[!.]*") if path.is_file())
    return sorted(path for path in found if path != out / REPORT / DIGESTS)


def _digest_of(data: bytes, path: Path) -> JSON:
    content = whole_lines(data) if _grows(path) else data
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _grows(path: Path) -> bool:
    """Say whether a file is a log, to which runs under way append."""
    return path.name in {"items.jsonl", "events.jsonl"} and path.parent.parent.name == "runs"


def _finding(error: RunDirectoryError) -> Finding:
    return Finding(error.path, str(error))


def verify_plan(log: PlanLog) -> Iterator[Finding]:
    """Check that plan, hypotheses and runs of a directory are those that its manifest has digests of."""
    manifest = log.manifest
    try:
        if plan_digest(log.path) != manifest.get("plan"):
            yield Finding(log.path / "plan.yaml", "is not the plan of the manifest")
        hypotheses = registered(read_plan_fields(log.path))
        entry = manifest.get("registered")
        if hypotheses != (entry.get("sha256") if isinstance(entry, Mapping) else None):
            text = "its hypotheses are not those that were registered before anything was run"
            yield Finding(log.path / "plan.yaml", text)
    except RunDirectoryError as error:
        yield _finding(error)
    rows = [run_to_json(run) for run in log.graph]
    if manifest.get("runs") != {"count": len(rows), "digest": digest(rows)}:
        yield Finding(log.path / "runs.jsonl", "does not hold the runs of the manifest")


def read_erased(out: Path) -> list[dict[str, Any]]:
    """Read what was erased in a run directory on request, the oldest first.

    Of one, there is a line from when it was begun, of which `ended` is missing where none came after it.

    Raises:
        RunDirectoryError: A line is damaged.
    """
    path = out / ERASED
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(each_whole_line(read_bytes(path) if path.exists() else b""), 1):
        entry = read_checked(line)
        if entry is None or not isinstance(entry.get("receipt"), int):
            msg = f"line {number} is damaged: restore it; what was erased stays erased"
            raise RunDirectoryError(msg, path=path)
        if entries and entries[-1].get("ended") is None:
            entries.pop()  # gone on with
        entries.append(entry)
    return entries


def _verify_erased(log: PlanLog) -> Iterator[Finding]:
    path = log.path / ERASED
    try:
        entries = read_erased(log.path)
    except RunDirectoryError as error:
        yield _finding(error)
        return
    for entry in entries:
        receipt, lines = entry["receipt"], entry.get("ended")
        if lines is None:
            text = f"an erasure (receipt {receipt}) was cut short: erase again, and it is ended"
            yield Finding(path, text)
            continue
        count = sum(len(each) for each in lines.values())
        text = f"{count} lines of {len(lines)} runs were erased on request (receipt {receipt})"
        yield Finding(path, text, on_request=True)
    if entries and (last := entries[-1]).get("ended") is not None:
        yield from _verify_rewritten(log, last.get("logs", {}))


def _verify_rewritten(log: PlanLog, logs: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that logs begin as the last erasure left them."""
    for run in log.graph:
        if (told := logs.get(run.id)) is None:
            continue
        path = run_folder(log.path, run) / "items.jsonl"
        lines = read_bytes(path).splitlines(keepends=True) if path.exists() else []
        first = b"".join(lines[: told["items"]])
        if hashlib.sha256(first).hexdigest() != told["sha256"]:
            yield Finding(path, f"is not what the last erasure left (see {ERASED}); {REDO}")


def _verify_folders(log: PlanLog) -> Iterator[Finding]:
    known = {run.id for run in log.graph}
    folder = log.path / "runs"
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if entry.name not in known:
            yield Finding(entry, "belongs to no run of the plan")


def _verify_runs(log: PlanLog) -> Iterator[Finding]:
    for run in log.graph:
        folder = run_folder(log.path, run)
        if folder.is_dir():
            try:
                yield from _verify_run(log, run, folder)
            except RunDirectoryError as error:
                yield _finding(error)


def _verify_run(log: PlanLog, run: PlannedRun, folder: Path) -> Iterator[Finding]:
    items = folder / "items.jsonl"
    finished = (folder / "DONE.json").exists()  # before its log is read: it may be under way
    content = read_items(folder, run)
    if finished:
        check_done(folder, run, content)
    elif content.tail:
        text = f"ends in {content.tail} bytes of no record; running the plan again drops them"
        yield Finding(items, text, interrupted=True)
    for _ in read_events(folder / "events.jsonl"):
        pass  # each line is checked
    for entry in sorted(folder.iterdir()):
        if entry.name not in {*_RUN_FILES, *_RUN_FOLDERS, *_DRAFTS}:
            yield Finding(entry, "is no file of a run")
    if run.spec.frozen and any(_changes(content)):
        yield Finding(items, "changes memory, and the run's bank is frozen")
    if not (folder / "spec.json").exists():
        # A crash can leave an empty folder, but no item is committed before the spec.
        if content.records:
            yield Finding(folder / "spec.json", f"is missing; {REDO}")
        return
    start = start_deltas(log.path, log.graph, run)
    expected = spec_json(run, fold_log(start, folder), read_earlier(log.path, log.graph, run))
    yield from _verify_spec(run, folder / "spec.json", expected)
    fold_log([*start, *read_deltas(content.records, items)], items)


def _changes(content: LogContent) -> Iterator[bool]:
    """Say of each record whether it changes memory."""
    for record in content.records:
        yield any(len(changes) > 0 for changes in record.raw_deltas)


def _verify_spec(run: PlannedRun, path: Path, expected: Mapping[str, JSON]) -> Iterator[Finding]:
    found = read_json(path, REDO)
    try:
        same_identity = digest(found.get("identity")) == digest(expected["identity"])
    except (TypeError, ValueError):
        same_identity = False
    if not same_identity or found.get("run_id") != run.id:
        yield Finding(path, f"does not describe run {run.name!r}, whose id is {run.id}")
    if found.get("bank") != expected["bank"]:
        yield Finding(path, "the bank the run started from no longer comes out of its source's log")
    if found.get("read") != expected.get("read"):
        yield Finding(path, "a log that the run read has changed since")


# What a directory was started with -------------------------------------------------------------


def read_plan_fields(out: Path) -> Mapping[str, JSON]:
    """Read the fields of the plan that a run directory was started with.

    Raises:
        RunDirectoryError: The file cannot be read or is no YAML.
    """
    path = out / "plan.yaml"
    try:
        plan = load_yaml(read_bytes(path).decode())
    except ValueError as error:
        raise RunDirectoryError(f"is damaged: {error}; {ANEW}", path=path) from error
    return plan if isinstance(plan, dict) else {}


def plan_digest(out: Path) -> str:
    """Return the digest of the plan that stands in `plan.yaml`.

    Raises:
        RunDirectoryError: The file cannot be read or holds no plan.
    """
    try:
        return digest(read_plan_fields(out))
    except (TypeError, ValueError) as error:
        msg = f"is damaged: {error}; {ANEW}"
        raise RunDirectoryError(msg, path=out / "plan.yaml") from error


def registered(resolved: Mapping[str, JSON]) -> str | None:
    """Return the digest of the hypotheses of a resolved plan; `None`: it registers none."""
    hypotheses = resolved.get("hypotheses")
    return digest(hypotheses) if hypotheses else None


# What a run is held to, also before it is gone on with ------------------------------------------


def read_items(folder: Path, run: PlannedRun) -> LogContent:
    """Read the committed items of a run, without their results, and check that they are the run's.

    Raises:
        RunDirectoryError: An item is not the one the plan has at this place.
    """
    path = folder / "items.jsonl"
    content = read_log(path, results=False)
    if len(content.records) > run.length:
        msg = f"holds {len(content.records)} items; the run has {run.length}; {REDO}"
        raise RunDirectoryError(msg, path=path)
    for record, expected in zip(content.records, run.spec.item_ids, strict=False):
        if record.item_id != expected:
            msg = f"line {record.index + 1} holds item {record.item_id!r}, expected {expected!r}; {REDO}"
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
    done = read_json(path, "delete it and run again: the run is marked anew")
    want = {"items": run.length, "sha256": done.get("sha256")}
    have: dict[str, JSON] = {"items": len(content.records), "sha256": content.sha256}
    if content.tail or done != want or done != have:
        msg = (
            f"says {done.get('items')} items with SHA-256 {str(done.get('sha256'))[:12]}; "
            f"items.jsonl holds {have['items']} of {run.length} with {content.sha256[:12]} and "
            f"{content.tail} bytes of no record; {REDO}"
        )
        raise RunDirectoryError(msg, path=path)
    return True


def spec_json(
    run: PlannedRun, bank: BankContent, earlier: Mapping[str, EarlierRun]
) -> dict[str, JSON]:
    """Return what `spec.json` holds: the run, the bank it starts from, the logs it reads."""
    digest = None if run.spec.source is None else bank.digest
    read: dict[str, JSON] = {name: each.sha256 for name, each in earlier.items()}
    logs: dict[str, JSON] = {"read": read} if read else {}
    return {"run_id": run.id, "identity": run.identity, "bank": digest, **logs}
