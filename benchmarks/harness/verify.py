"""Check a run directory against itself; nothing is changed, no study is needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from langgraft._core.canonical import digest
from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.directory import plan_digest
from langgraft.benchmarks.harness.graph import PlannedRun, run_to_json
from langgraft.benchmarks.harness.log import PlanLog, fold_log, read_json, run_folder, start_deltas
from langgraft.benchmarks.harness.records import LogContent, read_deltas
from langgraft.benchmarks.harness.stream import check_done, read_items, spec_json
from langgraft.memory.deltas import BankContent


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as the harness leaves it."""

    path: Path
    """The file or folder."""
    message: str

    def __str__(self) -> str:
        return (
            self.message
            if self.message.startswith(str(self.path))
            else f"{self.path}: {self.message}"
        )


def verify_directory(out: Path) -> list[Finding]:
    """Check a run directory, finished or not.

    Checked are the checksum, index and item of every line, the ids of the runs, the banks
    they start from, that deltas fold and are absent from frozen runs, the marks of finished
    runs, and that plan and runs are those of the manifest.

    Returns:
        What is wrong; empty when all is well.

    Raises:
        RunDirectoryError: `out` is not a run directory.
    """
    try:
        log = PlanLog(out)
    except RunDirectoryError as error:
        if error.path == out:
            raise
        return [_finding(error)]
    return [*_verify_plan(log), *_verify_folders(log), *_verify_runs(log)]


def _finding(error: RunDirectoryError) -> Finding:
    return Finding(error.path, str(error))


def _verify_plan(log: PlanLog) -> Iterator[Finding]:
    manifest = log.manifest
    try:
        if plan_digest(log.path) != manifest.get("plan"):
            yield Finding(log.path / "plan.yaml", "is not the plan of the manifest")
    except RunDirectoryError as error:
        yield _finding(error)
    rows = [run_to_json(run) for run in log.graph]
    if manifest.get("runs") != {"count": len(rows), "digest": digest(rows)}:
        yield Finding(log.path / "runs.jsonl", "does not hold the runs of the manifest")


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
    content = read_items(folder, run)
    if content.tail and not (folder / "DONE.json").exists():
        text = f"ends in {content.tail} bytes of no record; running the plan again drops them"
        yield Finding(items, text)
    check_done(folder, run, content)
    if run.spec.frozen and any(_changes(content)):
        yield Finding(items, "changes memory, and the run's bank is frozen")
    if not (folder / "spec.json").exists():
        # A crash can leave an empty folder, but no item is committed before the spec.
        if content.records:
            yield Finding(folder / "spec.json", "is missing")
        return
    start = start_deltas(log.path, log.graph, run)
    yield from _verify_spec(run, folder, fold_log(start, folder))
    fold_log([*start, *read_deltas(content.records, items)], items)


def _changes(content: LogContent) -> Iterator[bool]:
    """Say of each record whether it changes memory."""
    for record in content.records:
        yield any(len(changes) > 0 for changes in record.raw_deltas)


def _verify_spec(run: PlannedRun, folder: Path, bank: BankContent) -> Iterator[Finding]:
    path = folder / "spec.json"
    found = read_json(path)
    expected = spec_json(run, bank)
    try:
        same_identity = digest(found.get("identity")) == digest(expected["identity"])
    except (TypeError, ValueError):
        same_identity = False
    if not same_identity or found.get("run_id") != run.id:
        yield Finding(path, f"does not describe run {run.name!r}, whose id is {run.id}")
    if found.get("bank") != expected["bank"]:
        yield Finding(path, "the bank the run started from no longer comes out of its source's log")
