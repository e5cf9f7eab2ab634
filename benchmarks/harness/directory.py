"""A run directory: what one plan was started with, held by one process, and where its banks lie meanwhile.

    <out>/plan.yaml       the plan with every default written out
    <out>/runs.jsonl      the runs it expands to, with their ids
    <out>/manifest.json   digests of both, fingerprints, package versions, the digest of the hypotheses
                          with the time they were registered at; written last, before anything is run
    <out>/plan.lock       held while a process runs the plan; process-<n>.lock by those that help it,
                          or by shards
    <out>/spent.sqlite    calls, tokens and money that real models were asked for, and cost; of a
                          shard spent-<i>-of-<n>.sqlite, and so its responses
    <out>/runs/<run_id>/  spec.json, items.jsonl, events.jsonl, DONE.json; where its study wants
                          them, work/ (of items under way) and kept/ (files to look at)
    <out>/erased.jsonl    what was erased here on request, where anything was
    <out>/report/         what is told of them; digests.json lists all it is and rests on
    <out>/store/          banks while runs are under way, where `chroma` keeps them; a cache
    <out>/shared/         what runs have in common, such as results of programs; a cache. Those of
                          a shard, and of a process on a cluster, have a folder of their own in it

The lock is the system's `flock`: it is free the moment its holder dies, however it dies. On
network file systems without `flock` two machines can both hold it.

The log is the truth and a store a cache of it, so where banks lie is no part of a plan: a run
that was begun over one store may be gone on with over another, and commits the same bytes. All
runs of a process share one store. Each has a namespace of its own, emptied before it is opened,
because a killed process may have left records there, and emptied again when it is closed.

In memory each run has a store of its own instead: runs are opened in threads, and LangGraph's
`InMemoryStore` breaks when one thread writes to it while another searches it.
"""

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias

from filelock import FileLock, Timeout
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft._core.effects import SystemClock
from langgraft._core.errors import ResumeRefusedError, RunDirectoryError
from langgraft._core.files import atomic_write, disk_errors, make_directory, read_bytes
from langgraft.benchmarks.harness.log import (
    LOCK,
    PROCESS,
    read_graph,
    read_manifest,
    run_folder,
)
from langgraft.benchmarks.harness.plans import PreparedPlan, resolved_yaml
from langgraft.benchmarks.harness.study import (
    BankPlace,
    PlannedRun,
    RunFiles,
    RunGraph,
    run_to_json,
)
from langgraft.benchmarks.harness.verify import plan_digest, read_plan_fields, registered
from langgraft.memory.stores.named import StoreKind, open_store, store_kind

_ORPHAN_SECONDS = 10.0
_GLANCE_SECONDS: Final = 0.3
"""How long a lock is tried: whoever looks whether it is held (`is_held`) has it for an instant."""
_SHARD_SECONDS = 60.0
"""Shards that start at once take the directory one after the other, for a moment each."""
_FIRST_FILES = {LOCK, "plan.yaml", "runs.jsonl", "runs"}
_DRAFTS = {".plan.yaml.tmp", ".runs.jsonl.tmp", ".manifest.json.tmp"}
_NAMED = 3
"""How many runs a difference names before it says how many more there are."""


@contextmanager
def hold_directory(out: Path, prepared: PreparedPlan[Any]) -> Iterator[None]:
    """Take a run directory for a plan, making it where it is not there yet.

    Inside the block no other process can run a plan in it.

    Raises:
        ResumeRefusedError: The directory was started with something else; nothing is changed.
        RunDirectoryError: It is not a run directory, is in use, or cannot be written.
    """
    check_directory(out, prepared)
    make_directory(out)
    with hold_alone(out):
        check_directory(out, prepared)
        _write_first_files(out, prepared)
        make_directory(out / "runs")
        yield


@contextmanager
def hold_alone(out: Path) -> Iterator[None]:
    """Hold a directory in which nobody works: on no plan, on no shard, nor for a process that died.

    Raises:
        RunDirectoryError: Somebody does, or a lock cannot be taken.
    """
    with locked(out):
        _await_processes(out)
        yield


@contextmanager
def locked(out: Path, seconds: float = _GLANCE_SECONDS) -> Iterator[None]:
    """Hold the lock of a directory, so that no other process works in it.

    Args:
        out: The directory.
        seconds: How long to wait for another one.

    Raises:
        RunDirectoryError: Another one does, or the lock cannot be taken.
    """
    with ExitStack() as held:
        with disk_errors("take the lock", out / LOCK):
            held.enter_context(_lock(out / LOCK, seconds))
        yield


@contextmanager
def hold_shard(out: Path, prepared: PreparedPlan[Any], index: int, count: int) -> Iterator[None]:
    """Take a shard of a plan: others may work on other shards of it meanwhile, on other machines too.

    Raises:
        ResumeRefusedError: The directory was started with something else; nothing is changed.
        RunDirectoryError: It is not a run directory, cannot be written, or somebody works on the whole
            plan, on this shard, or on one of another number of shards.
    """
    check_directory(out, prepared)
    make_directory(out)
    with ExitStack() as held:
        with locked(out, _SHARD_SECONDS):
            check_directory(out, prepared)
            _write_first_files(out, prepared)
            make_directory(out / "runs")
            own = out / f"{PROCESS}{index}-of-{count}.lock"
            for path in sorted(out.glob(f"{PROCESS}*.lock")):
                if not path.name.endswith(f"-of-{count}.lock"):
                    with disk_errors("take the lock", path), _lock(path, _ORPHAN_SECONDS):
                        pass
                    path.unlink(missing_ok=True)
            with disk_errors("take the lock", own):
                held.enter_context(_lock(own, _GLANCE_SECONDS))
        yield


@contextmanager
def hold_process(out: Path, number: int) -> Iterator[None]:
    """Say that a process works in a directory for the one that holds it.

    Raises:
        RunDirectoryError: Another one does so under the same number, or it cannot be said.
    """
    path = out / f"{PROCESS}{number}.lock"
    with ExitStack() as held:
        with disk_errors("take the lock", path):
            held.enter_context(_lock(path, _ORPHAN_SECONDS))
        yield


def process_works(out: Path, number: int) -> bool:
    """Say whether the process of a number still holds its lock, wherever it runs."""
    try:
        with _lock(out / f"{PROCESS}{number}.lock", 0):
            return False
    except (RunDirectoryError, OSError):  # held, or the folder cannot be reached now
        return True


def _await_processes(out: Path) -> None:
    """Wait for those that worked for a process that died: they end as soon as they notice."""
    for path in sorted(out.glob(f"{PROCESS}*.lock")):
        with disk_errors("take the lock", path), _lock(path, _ORPHAN_SECONDS):
            pass
        path.unlink(missing_ok=True)


@contextmanager
def _lock(path: Path, seconds: float) -> Iterator[None]:
    lock = FileLock(str(path), thread_local=False)
    try:
        lock.acquire(timeout=seconds)
    except Timeout as error:
        msg = "another process is working here; wait for it, or use another directory"
        raise RunDirectoryError(msg, path=path.parent) from error
    try:
        yield
    finally:
        lock.release()


def _write_first_files(out: Path, prepared: PreparedPlan[Any]) -> None:
    """Write what is not there of the files of a start; the manifest comes last and makes it valid."""
    started = (out / "manifest.json").exists()
    for name, data in (
        ("plan.yaml", resolved_yaml(prepared.resolved)),
        ("runs.jsonl", _runs_file(prepared)),
        ("manifest.json", f"{canonical_json(_manifest(prepared))}\n".encode()),
    ):
        if not (started and (out / name).exists()):
            atomic_write(out / name, data)


def _manifest(prepared: PreparedPlan[Any]) -> dict[str, JSON]:
    """Return the manifest, with the digest of what the plan registers, and when."""
    manifest = dict(prepared.manifest)
    if (sha256 := registered(prepared.resolved)) is not None:
        at = datetime.fromtimestamp(SystemClock().time(), UTC).isoformat(timespec="seconds")
        manifest["registered"] = {"sha256": sha256, "time": at}
    return manifest


def _runs_file(prepared: PreparedPlan[Any]) -> bytes:
    return "".join(f"{canonical_json(run_to_json(run))}\n" for run in prepared.graph).encode()


def check_directory(out: Path, prepared: PreparedPlan[Any]) -> None:
    """Check that a directory can be used for a plan; nothing is changed.

    Raises:
        ResumeRefusedError: It was started with another plan, fingerprint or version.
        RunDirectoryError: It is not a run directory.
    """
    manifest = prepared.manifest  # what it depends on is found missing before anything is made
    if not out.exists():
        return
    if (out / "manifest.json").exists():
        found = list(_directory_differences(out, prepared, manifest))
        if found:
            msg = "was started with something else (use another directory, or go back)"
            raise ResumeRefusedError(msg, path=out, differences=found)
        _check_first_files(out, prepared)
        return
    with disk_errors("list", out):
        entries = {entry.name for entry in out.iterdir()}
    # The lock is taken before anything is written, so files without it are not ours.
    foreign = entries - _FIRST_FILES - _DRAFTS if LOCK in entries else entries
    if foreign:
        msg = f"is not empty and not a run directory (holds {min(foreign)!r})"
        raise RunDirectoryError(msg, path=out)


def _check_first_files(out: Path, prepared: PreparedPlan[Any]) -> None:
    """Check that what the manifest gives digests of is as it was written.

    Raises:
        RunDirectoryError: A file is not.
    """
    plan, runs = out / "plan.yaml", out / "runs.jsonl"
    damaged = None
    try:
        if plan.exists() and plan_digest(out) != prepared.manifest["plan"]:
            damaged = plan
    except RunDirectoryError:
        damaged = plan
    if runs.exists() and read_bytes(runs) != _runs_file(prepared):
        damaged = runs
    if damaged is not None:
        msg = "is not what the directory was started with; delete it and run again: it is written anew"
        raise RunDirectoryError(msg, path=damaged)


def _directory_differences(
    out: Path, prepared: PreparedPlan[Any], new: Mapping[str, JSON]
) -> Iterator[str]:
    old = read_manifest(out)
    # A digest names what differs badly: where one differs, compare what it stands for.
    if old.get("plan") != new["plan"]:
        found = list(differences(read_plan_fields(out), prepared.resolved, "plan"))
        yield from found or differences(old.get("plan"), new["plan"], "plan")
    elif old.get("runs") != new["runs"] and old.get("limit") == new["limit"]:
        yield _describe_runs(read_graph(out), prepared.graph)
    for key, where, sep in (
        ("format", "format", "."),
        ("study", "study", "."),
        ("limit", "limit", "."),
        ("fingerprints", "", ""),
        ("packages", "package", " "),
        ("python", "python", "."),
    ):
        yield from differences(old.get(key), new[key], where, sep)


def _describe_runs(old: RunGraph, new: RunGraph) -> str:
    """Say how the runs of one and the same plan differ, which means that the study changed."""
    before, after = {run.id: run.name for run in old}, {run.id: run.name for run in new}
    gone = [name for key, name in before.items() if key not in after]
    come = [name for key, name in after.items() if key not in before]
    parts = [
        f"{verb} {', '.join(map(repr, names[:_NAMED]))}{' …' if len(names) > _NAMED else ''}"
        for verb, names in (("were", gone), ("are", come))
        if names
    ]
    return f"runs ({len(old)} → {len(new)}): " + ("; ".join(parts) or "in another order")


_SHORT_DIGEST = 12
_LONGEST = 60


class _Missing:
    """Stands for a value that one side does not have."""


_MISSING = _Missing()
_Maybe: TypeAlias = "JSON | _Missing"


def differences(old: JSON, new: JSON, where: str, sep: str = ".") -> Iterator[str]:
    """List what differs: `plan.temperature: 0.5 → 0.7`.

    Args:
        old: What was.
        new: What is.
        where: Name of the value, put before the name of its parts.
        sep: What stands between the name and the first part.
    """
    yield from _walk(old, new, where, sep)


def _walk(old: _Maybe, new: _Maybe, where: str, sep: str) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _walk(
                old.get(key, _MISSING), new.get(key, _MISSING), f"{where}{sep}{key}", "."
            )
    elif _is_table(old) and _is_table(new):
        pairs = zip_longest(old, new, fillvalue=_MISSING)  # type: ignore[arg-type]
        for position, (one, other) in enumerate(pairs):
            yield from _walk(one, other, f"{where}[{position}]", ".")
    elif isinstance(old, _Missing) or isinstance(new, _Missing) or not _same(old, new):
        yield f"{where}: {_show(old)} → {_show(new)}"


def _is_table(value: _Maybe) -> bool:
    """Whether a value is a list of mappings, which is compared row by row."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return bool(value) and all(isinstance(row, Mapping) for row in value)


def _same(old: JSON, new: JSON) -> bool:
    return canonical_json(old) == canonical_json(new)


def _show(value: _Maybe) -> str:
    if isinstance(value, _Missing):
        return "nothing"
    if value is None:
        return "none"
    text = value if isinstance(value, str) and value else canonical_json(value)
    if len(text) >= 2 * _SHORT_DIGEST and all(char in string.hexdigits for char in text):
        return text[:_SHORT_DIGEST]
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


DEFAULT_STORE: Final = "memory"

INSIDE: Final = "chroma"
"""Name of the store that lies in the run directory itself."""

STORE: Final = "store"
"""Its folder there. It may be deleted whenever no process runs the plan."""

SHARED: Final = "shared"
"""Folder of a run directory for what its runs have in common. It may be deleted likewise."""

_ROOT: Final = "langgraft-runs"
_ID_LENGTH: Final = 16


@dataclass(frozen=True)
class Places:
    """Where the runs of a process keep their banks."""

    store: BaseStore | None
    """The store that they share; `None` in memory."""
    kind: StoreKind
    directory: str
    """Label that tells one run directory from others that use the same database."""
    out: Path | None = None
    """The run directory; `None` where there is none."""
    part: str = ""
    """Folder within `shared/`, where other machines work on the plan: SQLite files are one machine's."""

    def of(self, run: PlannedRun) -> BankPlace:
        """Return the place of one run's bank."""
        store = InMemoryStore() if self.store is None else self.store
        files = (
            None
            if self.out is None
            else RunFiles(run_folder(self.out, run), self.out / SHARED / self.part)
        )
        return BankPlace(store, (_ROOT, self.directory, run.id), files)


def places_in_memory(out: Path | None = None, part: str = "") -> Places:
    """Return places that are gone when their runs end; files lie in `out`, where it is given."""
    return Places(None, "memory", "here", out, part)


@contextmanager
def hold_place_of_process(
    out: Path, store: str, number: int, *, part: str = ""
) -> Iterator[Places]:
    """Open the store for the banks of a process that works for the one that holds the directory.

    A database that one process has to itself, as `chroma` in the run directory, is there once for each.

    Raises:
        SettingsError: The store cannot be opened.
    """
    spec = f"{INSIDE}:{out / STORE / str(number)}" if store == INSIDE else store
    kind = store_kind(spec)
    if kind == DEFAULT_STORE:
        yield places_in_memory(out, part)
        return
    with open_store(spec) as base:
        yield Places(base, kind, _directory_label(out), out, part)


@contextmanager
def hold_places(
    out: Path,
    prepared: PreparedPlan[Any],
    store: str,
    hold: Callable[[Path, PreparedPlan[Any]], AbstractContextManager[None]] = hold_directory,
    *,
    part: str = "",
) -> Iterator[Places]:
    """Take a run directory for a plan, and open the store for the banks of its runs.

    Args:
        out: The run directory; see `hold_directory`.
        prepared: The plan.
        store: `chroma` for a store inside the run directory, or a name that `open_store` knows.
        hold: Takes the directory.
        part: Of a shard its name.

    Raises:
        SettingsError: The store cannot be opened; nothing was changed in the directory.
        MissingExtraError: What talks to the store is not installed.
        ResumeRefusedError: The directory was started with something else.
        RunDirectoryError: It cannot be used.
    """
    inside = store == INSIDE
    spec = f"{INSIDE}:{out / STORE}" if inside else store
    kind = store_kind(spec)
    with ExitStack() as opened:
        if kind == DEFAULT_STORE:
            opened.enter_context(hold(out, prepared))
            yield places_in_memory(out, part)
            return
        if inside:  # the folder it lies in must be known to be ours
            opened.enter_context(hold(out, prepared))
            base = opened.enter_context(open_store(spec))
        else:
            check_directory(out, prepared)
            base = opened.enter_context(open_store(spec))
            opened.enter_context(hold(out, prepared))
        yield Places(base, kind, _directory_label(out), out, part)


def _directory_label(out: Path) -> str:
    """Tell a run directory from all others, such as a copy of it, without writing into it.

    Machines that share it say the same, by whatever path: a run that goes on elsewhere then empties what
    it left in a database.
    """
    try:
        there = (out / "manifest.json").stat()
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise RunDirectoryError(msg, path=out) from error
    return digest([there.st_ino, there.st_ctime_ns])[:_ID_LENGTH]
