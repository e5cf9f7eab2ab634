"""Runs carried out by several processes, for the one that holds the run directory.

That one decides which run comes when. A process that dies takes the items under way with it and no
more: its runs go on in another, once its lock is free, since one that is only out of reach may still
write. It also lends them the slots for items and calls (`limits.py`). Should the one that holds the directory die, the others end at once, and until they have, nobody
else gets the directory.

Processes are spawned here, or started by whoever is handed in as `Start`, as on the nodes of a Ray
cluster (`cluster.py`): they say the same and are told the same.
"""

import asyncio
import contextlib
import os
import pickle
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from socket import gethostname
from typing import Any, Final, Protocol, TypeAlias

from langgraft._core.errors import (
    LanggraftError,
    RunDirectoryError,
    SettingsError,
    StudyError,
)
from langgraft.benchmarks.harness.directory import (
    hold_place_of_process,
    hold_process,
    process_works,
)
from langgraft.benchmarks.harness.execute import Execution, ModelFor, Slots, execute_run
from langgraft.benchmarks.harness.limits import (
    ITEMS,
    NO_LIMIT,
    TICK_SECONDS,
    CallLimits,
    Grant,
    Lease,
    Need,
    SlotKeeper,
)
from langgraft.benchmarks.harness.models import PlanModels
from langgraft.benchmarks.harness.plans import PreparedPlan, look_here
from langgraft.benchmarks.harness.progress import Progress, ProgressEvent, RunOutcome
from langgraft.benchmarks.harness.study import PlannedRun

_DEATHS: Final = 5
"""Processes that may die without an item committed in between: then something kills them all."""
_START_SECONDS: Final = 30.0
"""How long the first runs wait for all processes to be ready; then those that are begin."""
_LOOK_SECONDS: Final = 0.5
"""How often a lost process is looked for."""
_DYING_LOOKS: Final = 4
"""So often one that died may be found at work: its locks go a moment after its connection."""
_END_SECONDS: Final = 0.5
"""How long processes may take, all together, to end by themselves."""
_SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM})
"""Sent to all at once by a terminal and by batch systems: they mean the process that started the others."""

_STOP: Final = "\0stop"
"""In the place of a run's name: no further item is to be started."""
_QUIT: Final = "\0quit"
"""The process is to end."""

_READY: Final = -1
"""Said of no run: the process can be given some."""

_Answer: TypeAlias = "RunOutcome | ProgressEvent | Need | BaseException | int"
Message: TypeAlias = tuple[str, _Answer]
"""What a process says, and of which run; of none where it is ready, needs slots, or cannot work at all."""


@dataclass(frozen=True)
class Work:
    """What each process is told first; it has to be pickled."""

    prepared: PreparedPlan[Any]
    out: Path
    model_for: ModelFor
    slots: int
    """Items under way at once, in all processes."""
    store: str

    @property
    def limits(self) -> CallLimits | None:
        """How many calls may be in flight, where models tell."""
        return self.model_for.limits if isinstance(self.model_for, PlanModels) else None


class Worker(Protocol):
    """A process that was started to carry out runs, as the one that started it sees it."""

    def send(self, word: str | Grant) -> None:
        """Tell it something.

        Raises:
            OSError: It is gone.
        """
        ...

    def receive(self) -> Sequence[Message]:
        """Wait for what it says.

        Raises:
            EOFError: It is gone, or out of reach.
            OSError: Likewise.
        """
        ...

    def end(self, seconds: float = 0.0) -> None:
        """End it, after so many seconds at the latest: what it still does is wanted by nobody."""
        ...


Start: TypeAlias = Callable[[int, Work], Worker]
"""Starts the process of a number."""


class _Spawned:
    """A process on this machine."""

    def __init__(self, number: int, work: Work) -> None:
        context = get_context("spawn")
        self._connection, there = context.Pipe()
        self._process = context.Process(
            target=_main, args=(there, number, work), name=f"langgraft-{number}", daemon=True
        )
        resource_tracker.ensure_running()  # which would let signals through again
        # Held back until the process ignores them, as it is long in loading.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()

    def send(self, word: str | Grant) -> None:
        self._connection.send(word)

    def receive(self) -> Sequence[Message]:
        return [self._connection.recv()]

    def end(self, seconds: float = 0.0) -> None:
        self._process.join(seconds)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


class _DiedError(Exception):
    """The process that carried out a run died."""


@dataclass(eq=False)
class _Process:
    """A process, and what it is doing."""

    number: int
    worker: Worker
    ready: bool = False
    end: str = ""
    """What is known of its death."""
    runs: dict[str, "_UnderWay"] = field(default_factory=dict)


@dataclass(frozen=True)
class _UnderWay:
    """A run that a process works on."""

    run: PlannedRun
    on_commit: Callable[[int], None]
    ended: "asyncio.Future[RunOutcome]"


def _lend(process: _Process, grant: Grant) -> None:
    with contextlib.suppress(OSError):  # it is dying, and what it holds will be taken back
        process.worker.send(grant)


class Processes:
    """Processes that carry out runs; `start` them as a context.

    Args:
        work: What they work on.
        count: How many there are.
        progress: Told what happens in them.
        start: Starts one of them; `None`: on this machine.
    """

    def __init__(
        self, work: Work, count: int, progress: Progress, start: Start | None = None
    ) -> None:
        self._work = work
        self._count = count
        self._progress = progress
        self._starter: Start = start or _Spawned
        self._alive: list[_Process] = []
        self._listeners: list[threading.Thread] = []
        self._deaths = 0
        self._last_death = ""
        self._refusal: BaseException | None = None
        self._stopping = self._ending = False
        self._patient = True
        self._news = asyncio.Event()
        calls = NO_LIMIT if work.limits is None else work.limits.most
        self._keeper: SlotKeeper[_Process] = SlotKeeper(work.slots, calls, _lend)

    @asynccontextmanager
    async def started(self) -> AsyncIterator["Processes"]:
        """Start the processes, and end them.

        Raises:
            SettingsError: What they are to work on cannot be sent to another process.
        """
        try:
            pickle.dumps(self._work)
        except Exception as error:
            msg = (
                f"the plan cannot be carried out by {self._count} processes, as it cannot be sent to"
                f" another one ({type(error).__name__}: {error}): take one, or define in a module what"
                " it is made of"
            )
            raise SettingsError(msg) from error
        waiting = asyncio.get_running_loop().call_later(_START_SECONDS, self._lose_patience)
        try:
            for number in range(self._count):
                self._start(number)
            yield self
        finally:
            waiting.cancel()
            self._ending = True
            await asyncio.to_thread(self._end)

    def _start(self, number: int) -> None:
        started = _Process(number, self._starter(number, self._work))
        self._alive.append(started)
        loop = asyncio.get_running_loop()
        listener = threading.Thread(target=self._listen, args=(started, loop), daemon=True)
        self._listeners.append(listener)
        listener.start()

    def _listen(self, process: _Process, loop: asyncio.AbstractEventLoop) -> None:
        """Hand on what a process says, until it is gone for good."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            while True:
                try:
                    messages = process.worker.receive()
                except (EOFError, OSError) as error:
                    process.end = str(error)
                    break
                for name, answer in messages:
                    loop.call_soon_threadsafe(self._told, process, name, answer)
            loop.call_soon_threadsafe(self._lost, process)
            waited = 0
            while not self._ending and process_works(self._work.out, process.number):
                if waited == _DYING_LOOKS:
                    text = f"process {process.number} is out of reach and still works: waiting for its end"
                    loop.call_soon_threadsafe(self._note, text)
                waited += 1
                time.sleep(_LOOK_SECONDS)
            loop.call_soon_threadsafe(self._gone, process)

    def _note(self, text: str) -> None:
        self._progress.report(ProgressEvent("note", "", 0, 0, text))

    def _told(self, process: _Process, name: str, answer: _Answer) -> None:
        if isinstance(answer, ProgressEvent):
            if answer.kind == "item":
                self._deaths = 0
            self._progress.report(answer)
            return
        if isinstance(answer, Need):
            self._keeper.told(process, answer)
            return
        if not name:
            self._introduced(process, answer)
            return
        under_way = process.runs.get(name)
        if under_way is None:
            return
        if isinstance(answer, int):
            under_way.on_commit(answer)
            return
        del process.runs[name]
        if under_way.ended.done():
            return
        if isinstance(answer, BaseException):
            under_way.ended.set_exception(answer)
        else:
            under_way.ended.set_result(answer)

    def _introduced(self, process: _Process, answer: _Answer) -> None:
        if isinstance(answer, BaseException):
            self._refusal = self._refusal or answer
        elif not process_works(self._work.out, process.number):
            msg = (
                "is not the folder that the other machine writes to, or its file system has no locks"
                " (`flock`): a run directory has to lie where all machines see it, locks included"
            )
            self._refusal = RunDirectoryError(msg, path=self._work.out)
        else:
            process.ready = True
        if all(each.ready for each in self._alive):
            self._patient = False
        self._notify()

    def _notify(self) -> None:
        """Wake the runs that wait for a process."""
        self._news.set()
        self._news = asyncio.Event()

    def _lose_patience(self) -> None:
        self._patient = False
        self._notify()

    def _lost(self, process: _Process) -> None:
        if process in self._alive:
            self._alive.remove(process)

    def _gone(self, process: _Process) -> None:
        self._keeper.gone(process)
        if not (self._stopping or self._ending or self._refusal):
            self._deaths += 1
            self._last_death = process.end
            self._note(f"process {process.number} died{process.end and ': '}{process.end}")
            if self._deaths <= _DEATHS:
                self._start(process.number)
        for under_way in process.runs.values():
            if not under_way.ended.done():
                under_way.ended.set_exception(_DiedError())
        self._notify()

    async def execute(self, run: PlannedRun, on_commit: Callable[[int], None]) -> RunOutcome:
        """Have a run carried out by the process that has least to do; see `execute_run`.

        Raises:
            LanggraftError: As by `execute_run`, or a process cannot work on the plan at all.
            StudyError: Processes die, one after the other.
        """
        while True:
            process = await self._free(run)
            ended: asyncio.Future[RunOutcome] = asyncio.get_running_loop().create_future()
            process.runs[run.name] = _UnderWay(run, on_commit, ended)
            with contextlib.suppress(OSError):  # it is dying, and will be found dead
                process.worker.send(run.name)
            try:
                return await ended
            except _DiedError:
                continue

    async def _free(self, run: PlannedRun) -> _Process:
        """Wait for the process that has least to do, at first for all of them to be ready."""
        while True:
            if self._refusal is not None:
                raise self._refusal
            if self._deaths > _DEATHS and not self._alive:
                msg = f"{self._deaths} processes died that carried out runs, {run.name!r} last"
                msg += f": {self._last_death}" if self._last_death else ""
                raise StudyError(msg, run=run.name)
            ready = [each for each in self._alive if each.ready]
            if ready and not self._patient:
                return min(ready, key=lambda each: (len(each.runs), each.number))
            await self._news.wait()

    def stop(self) -> None:
        """Have no further item started."""
        self._stopping = True
        for process in self._alive:
            with contextlib.suppress(OSError):
                process.worker.send(_STOP)

    def _end(self) -> None:
        alive, until = list(self._alive), time.monotonic() + _END_SECONDS
        for process in alive:
            with contextlib.suppress(OSError):
                process.worker.send(_QUIT)
        for process in alive:
            process.worker.end(max(0.0, until - time.monotonic()))
        for listener in self._listeners:
            listener.join(_END_SECONDS)


# In the process ---------------------------------------------------------------------------


def _main(connection: Connection, number: int, work: Work) -> None:
    """Carry out the runs that are named, until nobody names any."""
    for number_of_signal in _SIGNALS:
        signal.signal(number_of_signal, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    serve(connection, number, work, _check_starter)


def _check_starter() -> None:
    starter = parent_process()
    if starter is None or not starter.is_alive():  # somebody else may have the directory by now
        os._exit(1)


def serve(
    connection: Connection,
    number: int,
    work: Work,
    check: Callable[[], None],
    part: str = "",
) -> None:
    """Carry out the runs that are named, until nobody names any.

    Args:
        connection: To the one that names them.
        number: Which of the processes this is.
        work: What they work on.
        check: Called once no other process has this number; raises what is in the way.
        part: Name of a folder for caches that only processes of this machine may share.
    """
    look_here()
    asyncio.run(_serve(connection, number, work, check, part))


async def _serve(
    connection: Connection, number: int, work: Work, check: Callable[[], None], part: str
) -> None:
    told = _Told(connection)
    with ExitStack() as held:
        try:
            if not (work.out / "manifest.json").exists():
                msg = f"is not there on {gethostname()}: all machines have to share it"
                raise RunDirectoryError(msg, path=work.out)
            held.enter_context(hold_process(work.out, number))
            check()
            places = held.enter_context(
                hold_place_of_process(work.out, work.store, number, part=part)
            )
        except LanggraftError as error:
            told.send("", error)
            return
        limits = work.limits or CallLimits(NO_LIMIT)
        limits.lent_by(told.need)
        slots = Slots(work.slots, Lease(ITEMS, told.need))
        execution = Execution(work.prepared, work.out, work.model_for, slots, told, places=places)
        server = _Server(connection, execution, told.send, limits)
        threading.Thread(target=server.listen, daemon=True).start()
        told.send("", _READY)
        while True:
            await asyncio.sleep(TICK_SECONDS)
            slots.tick()
            limits.tick()


class _Told:
    """Sends what happens to the process that started this one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, name: str, answer: _Answer) -> None:
        """Send what is to be said of a run; where nobody listens, this process is about to end."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send((name, answer))

    def report(self, event: ProgressEvent) -> None:
        """Send an event."""
        self.send(event.run, event)

    def need(self, need: Need) -> None:
        """Send what is needed of slots."""
        self.send("", need)

    def close(self) -> None:
        """Nothing is open."""


class _Server:
    """Carries out runs as they are named, side by side."""

    def __init__(
        self,
        connection: Connection,
        execution: Execution,
        send: Callable[[str, _Answer], None],
        limits: CallLimits,
    ) -> None:
        self._connection = connection
        self._execution = execution
        self._limits = limits
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._tasks = set[asyncio.Task[None]]()

    def listen(self) -> None:
        """Take in, in a thread, what is to be done."""
        while True:
            try:
                name = self._connection.recv()
            except (EOFError, OSError):
                os._exit(1)  # whoever started this is gone
            if isinstance(name, Grant):
                if name.name == ITEMS:
                    self._loop.call_soon_threadsafe(self._execution.slots.granted, name)
                else:
                    self._limits.of(name.name).granted(name)
                continue
            if name == _QUIT:
                os._exit(0)  # what threads still do here is wanted by nobody
            if name == _STOP:
                self._loop.call_soon_threadsafe(self._execution.stop.set)
            else:
                self._loop.call_soon_threadsafe(self._begin, name)

    def _begin(self, name: str) -> None:
        task = asyncio.create_task(self._carry_out(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, name: str) -> None:
        run = self._execution.prepared.graph[name]
        try:
            answer: _Answer = await execute_run(
                self._execution, run, lambda done: self._send(name, done)
            )
        except LanggraftError as error:
            answer = error
        except Exception as error:  # noqa: BLE001 - told where runs are collected
            answer = StudyError(f"{type(error).__name__}: {error}", run=name)
        self._send(name, answer)
