"""Work through one run, the same on every backend: open its files, check each outcome, commit it."""

import asyncio
import contextlib
import heapq
import json
import shutil
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

from langchain_core.language_models import BaseChatModel

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.effects import Clock, SystemClock, drive
from langgraft._core.errors import (
    BudgetExceededError,
    InfrastructureError,
    InputError,
    RunDirectoryError,
    StudyError,
)
from langgraft._core.files import atomic_write, disk_errors, make_directory, sync
from langgraft.benchmarks.harness.directory import Places, places_in_memory
from langgraft.benchmarks.harness.failures import one_line
from langgraft.benchmarks.harness.limits import Grant, Lease
from langgraft.benchmarks.harness.log import (
    REDO,
    EventWriter,
    LogWriter,
    encode_record,
    fold_log,
    read_deltas,
    read_earlier,
    read_json,
    run_folder,
    start_deltas,
)
from langgraft.benchmarks.harness.plans import PreparedPlan
from langgraft.benchmarks.harness.progress import (
    EventKind,
    NoProgress,
    Progress,
    ProgressEvent,
    RunOutcome,
    RunStatus,
)
from langgraft.benchmarks.harness.study import (
    WORK,
    BankPlace,
    ItemOutcome,
    Plan,
    PlannedRun,
    RunGraph,
    RunSession,
    RunSpec,
)
from langgraft.benchmarks.harness.verify import check_done, read_items, spec_json
from langgraft.memory.bank import banks_under
from langgraft.memory.model import MemoryDelta
from langgraft.memory.stores.programs import erase


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
        RunDirectoryError: The files contradict the run or its source, or cannot be written; or the
            directory is gone.
    """

    def __init__(self, out: Path, graph: RunGraph, run: PlannedRun, clock: Clock) -> None:
        self.run = run
        self.folder = run_folder(out, run)
        if not (out / "manifest.json").exists():
            msg = "is gone: mount its disk or put it back, and run again; nothing committed is lost"
            raise RunDirectoryError(msg, path=out)
        start = start_deltas(out, graph, run)
        self.earlier = read_earlier(out, graph, run)
        """The runs that it reads, by name."""
        self._bank = fold_log(start, self.folder)
        make_directory(self.folder, parents=False)  # the disk may have gone a moment ago
        _keep_spec(self.folder, spec_json(run, self._bank, self.earlier))
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
        if not content.records:  # a commit syncs the file, not that there is one
            with disk_errors("sync", self.folder):
                sync(self.folder)
        self._events = EventWriter(self.folder / "events.jsonl", clock)
        self._events.write_opened(self.committed, content.tail)
        self._finished = False

    def commit(
        self, outcome: ItemOutcome, seconds: float, success: bool | None = None
    ) -> Mapping[str, JSON]:
        """Commit the next item with its deltas, and return what its event holds.

        Args:
            outcome: What the item gave.
            seconds: How long it took.
            success: Whether it went well, for those who watch.

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
            **({} if success is None else {"success": success}),
            "data": outcome.events,
        }
        self._events.write("item", fields)
        return fields

    def _apply(self, deltas: tuple[MemoryDelta, ...]) -> None:
        if self.run.spec.frozen and any(deltas):
            msg = "it changes memory in a run whose bank is frozen"
            raise InputError(msg)
        for delta in deltas:
            for change in delta:
                self._bank.apply(change)

    def note(self, kind: str, text: str, reason: str = "") -> None:
        """Write an event that commits nothing."""
        self._events.write(kind, {"text": text, **({"reason": reason} if reason else {})})

    def finish(self) -> None:
        """Mark the run as done.

        Raises:
            RunDirectoryError: The mark cannot be written.
        """
        done: dict[str, JSON] = {"items": self.committed, "sha256": self._log.sha256}
        atomic_write(self.folder / "DONE.json", f"{canonical_json(done)}\n".encode())
        self._events.write("done", {"items": self.committed})
        self._finished = True

    def close(self) -> None:
        """Close the files; of a run that is not done it is noted that nobody works on it now."""
        self._log.close()
        if not self._finished:
            with contextlib.suppress(RunDirectoryError):  # a full disk is told of elsewhere
                self._events.write("closed", {"committed": self.committed})
        self._events.close()


def is_done(out: Path, run: PlannedRun) -> bool:
    """Return whether a run is finished and its log unharmed.

    Raises:
        RunDirectoryError: It was finished, and its log has changed since.
    """
    folder = run_folder(out, run)
    if not (folder / "DONE.json").exists():
        return False
    return check_done(folder, run, read_items(folder, run))


def _keep_spec(folder: Path, spec: Mapping[str, JSON]) -> None:
    path = folder / "spec.json"
    if not path.exists():
        atomic_write(path, f"{canonical_json(spec)}\n".encode())
        return
    found = read_json(path, REDO)
    if found == json.loads(canonical_json(spec)):
        return
    msg = f"does not describe this run; {REDO}"
    if found.get("bank") != spec["bank"]:
        msg = (
            "the bank the run started from no longer comes out of its source's log "
            f"({_short(found, 'bank')} → {_short(spec, 'bank')}); restore the log, or delete "
            "this folder to redo the run"
        )
    elif found.get("read") != spec.get("read"):
        msg = "a log that the run read has changed since; restore it, or delete this folder to redo the run"
    raise RunDirectoryError(msg, path=path)


def _short(spec: Mapping[str, JSON], key: str) -> str:
    return str(spec.get(key))[:12]


P = ParamSpec("P")
T = TypeVar("T")

ModelFor: TypeAlias = Callable[[Any, RunSpec], BaseChatModel]
"""Makes the model for a plan and one of its runs."""


class Slots:
    """Room for items under way, shared by all runs of a process; belongs to one event loop.

    Args:
        size: How many items may be under way at once.
        lease: Of one of several processes, what it is lent of them; `None`: they are this one's.

    Attributes:
        on_idle: Called when a slot is given back and nobody waits for it.
    """

    def __init__(self, size: int, lease: Lease | None = None) -> None:
        self.size = size
        self.on_idle: Callable[[], None] = lambda: None
        self._lease = lease
        self._used = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    @property
    def free(self) -> int:
        """Slots that nobody holds."""
        return (self.size if self._lease is None else self._lease.held) - self._used

    @asynccontextmanager
    async def held(self, rank: int) -> AsyncIterator[None]:
        """Wait for a slot and hold it; the lowest rank comes first, and of equals who came first."""
        await self._take(rank)
        try:
            yield
        finally:
            self._give()

    async def _take(self, rank: int) -> None:
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._arrivals), ticket))
        self._hand_out()
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():  # it was given to one who left
                self._give()
            raise

    def _give(self) -> None:
        self._used -= 1
        if self._lease is not None:
            self._lease.settle(self._used)
        self._hand_out()
        if self.free > 0:
            self.on_idle()

    def _hand_out(self) -> None:
        if self._lease is not None:
            self._lease.note(self._used + len(self._waiting))
        while self._waiting and self.free > 0:
            *_, ticket = heapq.heappop(self._waiting)
            if not ticket.done():
                ticket.set_result(None)
                self._used += 1

    def granted(self, grant: Grant) -> None:
        """Take what the process is lent."""
        assert self._lease is not None
        self._lease.take(grant)
        self._hand_out()
        self._lease.settle(self._used)

    def tick(self) -> None:
        """Tell what was needed of what was lent."""
        assert self._lease is not None
        self._lease.tick(self._used + len(self._waiting))


@dataclass(frozen=True)
class Execution:
    """What all runs of a plan share while they are executed.

    The `prepared` plan, the model of each run (`model_for`), who is told of `progress`, and the
    `clock`.
    """

    prepared: PreparedPlan[Any]
    out: Path
    """The run directory; its lock is held."""
    model_for: ModelFor
    slots: Slots = field(default_factory=lambda: Slots(1))
    """Room for items under way, of all runs together."""
    progress: Progress = field(default_factory=NoProgress)
    clock: Clock = field(default_factory=SystemClock)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Once it is set, no item is started."""
    places: Places = field(default_factory=places_in_memory)
    """Where the runs keep their banks."""

    @property
    def plan(self) -> Plan:
        """The plan."""
        plan: Plan = self.prepared.plan
        return plan


async def execute_run(
    execution: Execution, run: PlannedRun, on_commit: Callable[[int], None] = lambda _: None
) -> RunOutcome:
    """Work through the items of a run that are not committed yet.

    Args:
        execution: What the runs of the plan share.
        run: The run; its source must have come as far as it needs.
        on_commit: Called with the number of committed items once the run is opened, and after each
            commit.

    Returns:
        How the run ended. A failing infrastructure and an exhausted budget end it without an
        exception; the item they hit is not committed.

    Raises:
        StudyError: The study or the harness has a bug.
        RunDirectoryError: The run directory is damaged or the disk failed.
        InputError: The study refused a setting.
    """
    if await in_thread(is_done, execution.out, run):
        return RunOutcome(run.name, "done", run.length, run.length)
    stream = await in_thread(
        RunStream, execution.out, execution.prepared.graph, run, execution.clock
    )
    try:
        return await _Execution(execution, run, stream, on_commit).work()
    finally:
        stream.close()


class _Execution:
    """One run under way."""

    def __init__(
        self,
        execution: Execution,
        run: PlannedRun,
        stream: RunStream,
        on_commit: Callable[[int], None],
    ) -> None:
        self._shared = execution
        self._run = run
        self._stream = stream
        self._on_commit = on_commit
        self._width = execution.slots.size if run.spec.frozen else 1

    async def work(self) -> RunOutcome:
        if self._stream.dropped:
            text = f"dropped {self._stream.dropped} bytes of an unfinished record"
            self._report("note", text=text)
        if self._stream.committed < self._run.length:
            self._stream.note("store", self._shared.places.kind)
            stopped = await self._work_in_session()
            if stopped is not None:
                return stopped
        await in_thread(self._finish)
        return self._outcome("done")

    def _finish(self) -> None:
        self._stream.finish()
        shutil.rmtree(self._stream.folder / WORK, ignore_errors=True)

    async def _work_in_session(self) -> RunOutcome | None:
        """Return why the run was stopped, or `None` when all items are committed."""
        place = replace(self._shared.places.of(self._run), earlier=self._stream.earlier)
        try:
            await self._empty(place)  # of what a killed process may have left
            try:
                await self._work_at(place)
            finally:
                await self._tidied("emptying the store", self._empty(place))
        except (InfrastructureError, BudgetExceededError) as error:
            return self._stopped_by(error)
        if self._stream.committed < self._run.length:
            return self._outcome("interrupted")
        return None

    async def _work_at(self, place: BankPlace) -> None:
        await in_thread(_remove_work, place, range(self._stream.committed))  # of a killed process
        session = await self._open_session(place)
        self._on_commit(self._stream.committed)
        try:
            await self._work_items(session, place)
        finally:
            await self._tidied("closing", session.aclose())

    async def _empty(self, place: BankPlace) -> None:
        for prefix in (banks_under(place.namespace), place.namespace):
            await in_thread(drive, erase(prefix), place.store)

    async def _open_session(self, place: BankPlace) -> RunSession:
        prepared, spec, deltas = self._shared.prepared, self._run.spec, self._stream.deltas
        try:
            model = self._shared.model_for(self._shared.plan, spec)
            study_open = prepared.study.open
            return await in_thread(study_open, prepared.plan, spec, deltas, model, place)
        except (InfrastructureError, BudgetExceededError):
            raise
        except InputError as error:
            error.add_note(f"in run {spec.name!r}")
            raise
        except Exception as error:
            msg = f"cannot be opened: {type(error).__name__}: {error}"
            raise StudyError(msg, run=spec.name) from error

    async def _tidied(self, what: str, tidying: Awaitable[None]) -> None:
        """Tidy up; what is left behind changes no result, so a failure is only noted."""
        try:
            await tidying
        except Exception as error:  # noqa: BLE001 - any failure is noted, none may hide another
            text = f"{what} failed: {type(error).__name__}: {one_line(error)}"
            self._stream.note("untidy", text)
            self._report("note", text=text)

    async def _work_items(self, session: RunSession, place: BankPlace) -> None:
        """Keep up to `width` items under way or waiting for a slot; commit them in order."""
        window: deque[asyncio.Task[tuple[ItemOutcome, float] | None]] = deque()
        try:
            while self._may_start(len(window)) or window:
                if self._may_start(len(window)):
                    index = self._stream.committed + len(window)
                    window.append(asyncio.create_task(self._run_item(session, index)))
                    continue
                item_id = self._run.spec.item_ids[self._stream.committed]
                ended = await window[0]
                if ended is None:  # nor do those after it start any more
                    break
                told = await in_thread(self._commit, *ended, place)
                window.popleft()
                self._report("item", text=item_id, data=told)
                self._on_commit(self._stream.committed)
        finally:
            for task in window:
                task.cancel()
            await asyncio.gather(*window, return_exceptions=True)

    def _commit(self, outcome: ItemOutcome, seconds: float, place: BankPlace) -> Mapping[str, JSON]:
        well = self._shared.prepared.study.went_well(outcome.result)
        told = self._stream.commit(outcome, seconds, well)
        _remove_work(place, [self._stream.committed - 1])
        return told

    def _may_start(self, under_way: int) -> bool:
        left = self._run.length - self._stream.committed - under_way
        return left > 0 and under_way < self._width and not self._shared.stop.is_set()

    async def _run_item(self, session: RunSession, index: int) -> tuple[ItemOutcome, float] | None:
        """Work through an item once there is a slot, unless somebody asked to stop meanwhile."""
        item_id = self._run.spec.item_ids[index]
        clock = self._shared.clock
        # A stream that learns goes first: all that is tested afterwards waits for it.
        async with self._shared.slots.held(rank=int(self._run.spec.frozen)):
            if self._shared.stop.is_set():
                return None
            started = clock.monotonic()
            outcome = await self._guard_item(session.run_item(index, item_id), item_id)
            return outcome, clock.monotonic() - started

    async def _guard_item(
        self, item: Coroutine[Any, Any, ItemOutcome], item_id: str
    ) -> ItemOutcome:
        """Sort what an item raises into failures of the world, of the user, and bugs."""
        name = self._run.name
        try:
            return await item
        except (InfrastructureError, BudgetExceededError):
            raise
        except InputError as error:
            error.add_note(f"in run {name!r}, item {item_id!r}")
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            msg = "was cancelled from inside"
            raise StudyError(msg, run=name, item=item_id) from error
        except Exception as error:
            msg = f"{type(error).__name__}: {error}"
            raise StudyError(msg, run=name, item=item_id) from error

    def _stopped_by(self, error: InfrastructureError | BudgetExceededError) -> RunOutcome:
        # Items before the failing one are committed, so the failing one is the next.
        item_id = self._run.spec.item_ids[self._stream.committed]
        message = f"item {item_id!r}: {error}"
        reason = getattr(error, "reason", "") or type(error).__name__
        self._stream.note("failed", message, reason)
        self._report("failed", text=message, data={"reason": reason, "text": message})
        status: RunStatus = "capped" if isinstance(error, BudgetExceededError) else "failed"
        return self._outcome(status, message)

    def _outcome(self, status: RunStatus, message: str = "") -> RunOutcome:
        return RunOutcome(self._run.name, status, self._stream.committed, self._run.length, message)

    def _report(
        self, kind: EventKind, text: str = "", data: Mapping[str, JSON] | None = None
    ) -> None:
        done, planned = self._stream.committed, self._run.length
        self._shared.progress.report(
            ProgressEvent(kind, self._run.name, done, planned, text, data or {})
        )


def _remove_work(place: BankPlace, indices: Iterable[int]) -> None:
    """Remove what committed items needed; what cannot be removed harms nobody."""
    if place.files is not None:
        for index in indices:
            shutil.rmtree(place.files.work(index), ignore_errors=True)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function in a thread and wait for its end, even when cancelled.

    A commit must not go on in the background while its files are closed.
    """
    call = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        while not call.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({call})
        call.exception()  # the cancellation comes first; asks so that nobody warns of it
        raise
