"""Read a run directory: runs, results, deltas and the bank at any point."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, PlanError, RunDirectoryError
from langgraft._core.untrusted import check_number, load_json
from langgraft.benchmarks.harness.files import read_bytes
from langgraft.benchmarks.harness.graph import PlannedRun, RunGraph, runs_from_json
from langgraft.benchmarks.harness.records import LogContent, Record, read_deltas, read_log
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.memory.deltas import BankContent, MemoryDelta, fold


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is."""

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


def read_json(path: Path) -> Mapping[str, JSON]:
    """Read a JSON object.

    Raises:
        RunDirectoryError: The file cannot be read or holds no JSON object.
    """
    try:
        value = load_json(read_bytes(path))
    except ValueError as error:
        msg = f"is damaged: {error}"
        raise RunDirectoryError(msg, path=path) from error
    if not isinstance(value, dict):
        msg = f"is damaged: expected an object, got {type(value).__name__}"
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
    return read_json(out / "manifest.json")


def read_graph(out: Path) -> RunGraph:
    """Read the runs of a run directory.

    Raises:
        RunDirectoryError: The list of runs cannot be read.
    """
    path = out / "runs.jsonl"
    try:
        data = read_bytes(path)
        check_number(data)
        return runs_from_json(map(load_json, io.BytesIO(data)))
    except (ValueError, KeyError, TypeError, PlanError) as error:
        msg = f"is damaged: {error}"
        raise RunDirectoryError(msg, path=path) from error


class PlanLog:
    """The log of a plan, finished or under way; reading never changes anything.

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
        content = read_log(run_folder(out, source) / "items.jsonl")
        deltas.extend(_first_deltas(out, source, content, items))
    return deltas


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
