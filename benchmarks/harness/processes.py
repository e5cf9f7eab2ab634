"""Runs carried out by several processes, for the one that holds the run directory.

That one decides which run comes when. A process that dies takes the items under way with it and no
more: its runs go on in another. Should the one that holds the directory die, the others end at once,
and until they have, nobody else gets the directory.
"""

import asyncio
import contextlib
import os
import pickle
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Final, TypeAlias

from langgraft._core.errors import LanggraftError, SettingsError, StudyError
from langgraft.benchmarks.harness.directory import hold_place_of_process, hold_process
from langgraft.benchmarks.harness.execute import Execution, ModelFor, Slots, execute_run
from langgraft.benchmarks.harness.plans import PreparedPlan, look_here
from langgraft.benchmarks.harness.progress import Progress, ProgressEvent, RunOutcome
from langgraft.benchmarks.harness.study import PlannedRun

_DEATHS: Final = 5
"""Processes that may die before the plan is stopped: something kills them all."""
_END_SECONDS: Final = 0.5
"""How long processes may take, all together, to end by themselves."""
_SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM})
"""Sent to all at once by a terminal and by batch systems: they mean the process that started the others."""

_STOP: Final = "\0stop"
"""In the place of a run's name: no further item is to be started."""
_QUIT: Final = "\0quit"
"""The process is to end."""

_Answer: TypeAlias = "RunOutcome | ProgressEvent | BaseException | int"


@dataclass(frozen=True)
class Work:
    """What each process is told first; it has to be pickled."""

    prepared: PreparedPlan[Any]
    out: Path
    model_for: ModelFor
    slots: int
    store: str


class _DiedError(Exception):
    """The process that carried out a run died."""


@dataclass(eq=False)
class _Process:
    """A process, as seen from the one that started it."""

    number: int
    process: SpawnProcess
    connection: Connection
    runs: dict[str, "_UnderWay"] = field(default_factory=dict)


@dataclass(frozen=True)
class _UnderWay:
    """A run that a process works on."""

    run: PlannedRun
    on_commit: Callable[[int], None]
    ended: "asyncio.Future[RunOutcome]"


class Processes:
    """Processes that carry out runs; `start` them as a context.

    Args:
        work: What they work on.
        count: How many there are.
        progress: Told what happens in them.
    """

    def __init__(self, work: Work, count: int, progress: Progress) -> None:
        self._work = work
        self._count = count
        self._progress = progress
        self._alive: list[_Process] = []
        self._deaths = 0
        self._ending = False

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
        try:
            for number in range(self._count):
                self._start(number)
            yield self
        finally:
            self._ending = True
            await asyncio.to_thread(self._end)

    def _start(self, number: int) -> None:
        context = get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(
            target=_main, args=(there, number, self._work), name=f"langgraft-{number}", daemon=True
        )
        resource_tracker.ensure_running()  # which would let signals through again
        # Held back until the process ignores them, as it is long in loading.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()
        started = _Process(number, process, here)
        self._alive.append(started)
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(started, loop), daemon=True).start()

    def _listen(self, process: _Process, loop: asyncio.AbstractEventLoop) -> None:
        """Hand on what a process says, until it is gone."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            while True:
                try:
                    name, answer = process.connection.recv()
                except (EOFError, OSError):
                    break
                loop.call_soon_threadsafe(self._told, process, name, answer)
            loop.call_soon_threadsafe(self._gone, process)

    def _told(self, process: _Process, name: str, answer: _Answer) -> None:
        if isinstance(answer, ProgressEvent):
            self._progress.report(answer)
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

    def _gone(self, process: _Process) -> None:
        if process in self._alive:
            self._alive.remove(process)
        if not self._ending:
            self._deaths += 1
            if self._deaths <= _DEATHS:
                self._start(process.number)
        for under_way in process.runs.values():
            if not under_way.ended.done():
                under_way.ended.set_exception(_DiedError())

    async def execute(self, run: PlannedRun, on_commit: Callable[[int], None]) -> RunOutcome:
        """Have a run carried out by the process that has least to do; see `execute_run`.

        Raises:
            LanggraftError: As by `execute_run`.
            StudyError: Processes die, one after the other.
        """
        while True:
            if not self._alive:
                msg = f"{self._deaths} processes died that carried out runs, {run.name!r} last"
                raise StudyError(msg, run=run.name)
            process = min(self._alive, key=lambda each: (len(each.runs), each.number))
            ended: asyncio.Future[RunOutcome] = asyncio.get_running_loop().create_future()
            process.runs[run.name] = _UnderWay(run, on_commit, ended)
            with contextlib.suppress(OSError):  # it is dying, and will be found dead
                process.connection.send(run.name)
            try:
                return await ended
            except _DiedError:
                continue

    def stop(self) -> None:
        """Have no further item started."""
        self._tell(_STOP)

    def _tell(self, word: str) -> None:
        for process in self._alive:
            with contextlib.suppress(OSError):
                process.connection.send(word)

    def _end(self) -> None:
        self._tell(_QUIT)
        until = time.monotonic() + _END_SECONDS
        for process in list(self._alive):
            process.process.join(max(0.0, until - time.monotonic()))
            if process.process.is_alive():
                process.process.kill()
                process.process.join()


# In the process ---------------------------------------------------------------------------


def _main(connection: Connection, number: int, work: Work) -> None:
    """Carry out the runs that are named, until nobody names any."""
    for number_of_signal in _SIGNALS:
        signal.signal(number_of_signal, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    look_here()
    asyncio.run(_serve(connection, number, work))


async def _serve(connection: Connection, number: int, work: Work) -> None:
    with ExitStack() as held:
        held.enter_context(hold_process(work.out, number))
        starter = parent_process()
        if starter is None or not starter.is_alive():  # somebody else may have the directory by now
            os._exit(1)
        places = held.enter_context(hold_place_of_process(work.out, work.store, number))
        told = _Told(connection)
        execution = Execution(
            work.prepared, work.out, work.model_for, Slots(work.slots), told, places=places
        )
        server = _Server(connection, execution, told.send)
        threading.Thread(target=server.listen, daemon=True).start()
        await asyncio.Event().wait()


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

    def close(self) -> None:
        """Nothing is open."""


class _Server:
    """Carries out runs as they are named, side by side."""

    def __init__(
        self, connection: Connection, execution: Execution, send: Callable[[str, _Answer], None]
    ) -> None:
        self._connection = connection
        self._execution = execution
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
