"""Run a plan on one machine: workers take any run whose source has come far enough.

The first signal asks to stop, the second one stops at once.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from langgraft._core.clock import Clock, SystemClock
from langgraft._core.errors import LanggraftError, StudyError
from langgraft.benchmarks.harness.directory import hold_places
from langgraft.benchmarks.harness.execute import (
    DEFAULT_PARALLEL_ITEMS,
    Execution,
    ModelFor,
    execute_run,
    in_thread,
)
from langgraft.benchmarks.harness.log import run_progress
from langgraft.benchmarks.harness.plans import PreparedPlan
from langgraft.benchmarks.harness.progress import (
    EventKind,
    NoProgress,
    PlanOutcome,
    Progress,
    ProgressEvent,
    RunOutcome,
)
from langgraft.benchmarks.harness.study import PlannedRun

GRACE = 5.0
"""Seconds items under way may take to finish after a request to stop."""


async def run_plan(
    prepared: PreparedPlan[Any],
    out: Path,
    *,
    model_for: ModelFor,
    workers: int | None = None,
    parallel_items: int = DEFAULT_PARALLEL_ITEMS,
    store: str | None = None,
    progress: Progress | None = None,
    stop: asyncio.Event | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
) -> PlanOutcome:
    """Run a plan, or go on with it where it was stopped.

    The items committed are the same for every number of workers and parallel items, and for
    every store; a plan may be gone on with over another store than it was begun with.

    Args:
        prepared: The plan, made by `prepare`.
        out: The run directory; made where it is not there.
        model_for: Makes the model for a run.
        workers: How many runs go on at the same time; `None`: as the study has it.
        parallel_items: How many items of a run with a frozen bank go on at the same time.
        store: Where banks are kept meanwhile: `memory`, `chroma` (in the run directory), or
            another name that `langgraft.memory.stores.named.open_store` knows; `None`: as the
            study has it.
        progress: Told what happens.
        stop: Set it to stop: no item is started, those under way get `grace` seconds.
        clock: Stamps events.
        grace: Seconds items under way may take after `stop` is set; then they are dropped.

    Returns:
        How each run ended.

    Raises:
        ResumeRefusedError: The directory was started with something else.
        RunDirectoryError: The directory cannot be used.
        StudyError: The study or the harness has a bug; what was committed is kept.
        InputError: The study refused a setting, misses what its runs need, or the store cannot
            be opened.
        MissingExtraError: What talks to the store is not installed.
    """
    study = prepared.study
    await in_thread(study.make_ready, prepared.plan)
    with hold_places(out, prepared, study.default_store if store is None else store) as places:
        execution = Execution(
            prepared,
            out,
            model_for,
            parallel_items,
            progress or NoProgress(),
            clock or SystemClock(),
            places=places,
        )
        width = study.default_workers if workers is None else workers
        return await _Dispatcher(execution, width, stop or asyncio.Event(), grace).run()


class _Dispatcher:
    """Starts runs when they can start, and collects how they end."""

    def __init__(
        self, execution: Execution, workers: int, stop: asyncio.Event, grace: float
    ) -> None:
        self._execution = execution
        self._graph = execution.prepared.graph
        self._workers = workers
        self._stop = stop
        self._grace = grace
        self._committed = {run.name: 0 for run in self._graph}
        self._sources = {name for run in self._graph for name in run.spec.parents}
        self._waiting = {run.name: run for run in self._graph}
        self._running: dict[asyncio.Task[RunOutcome], PlannedRun] = {}
        self._outcomes: dict[str, RunOutcome] = {}
        self._wake = asyncio.Event()

    async def run(self) -> PlanOutcome:
        self._take_stock()
        listener = asyncio.create_task(self._listen())
        try:
            await self._dispatch()
            if self._running:
                await self._wind_down()
        finally:
            listener.cancel()
            await self._drop(list(self._running))
        interrupted = self._stop.is_set()
        outcome = PlanOutcome(tuple(self._outcome(run) for run in self._graph), interrupted)
        self._report("end", text=outcome.summary())
        return outcome

    def _take_stock(self) -> None:
        done = 0
        for run in self._graph:
            progress = run_progress(self._execution.out, run)
            done += progress.done
            # Only a finished run serves as a source before it is opened and repaired.
            self._committed[run.name] = progress.done if progress.finished else 0
        total = sum(run.length for run in self._graph)
        self._execution.progress.report(ProgressEvent("plan", "", done, total))

    async def _listen(self) -> None:
        await self._stop.wait()
        self._execution.stop.set()
        self._wake.set()

    async def _dispatch(self) -> None:
        """Start what can start until nothing is under way, or someone asks to stop."""
        while True:
            self._wake.clear()
            self._collect()
            for run in list(islice(self._ready(), self._room())):
                self._start(run)
            if not self._running or self._stop.is_set():
                return
            await self._wake.wait()

    def _room(self) -> int:
        if self._stop.is_set() or self._execution.stop.is_set():
            return 0
        return self._workers - len(self._running)

    def _ready(self) -> Iterator[PlannedRun]:
        for run in self._waiting.values():
            if self._missing(run) is None:
                yield run

    def _missing(self, run: PlannedRun) -> tuple[PlannedRun, int] | None:
        """Return a run that has not come as far as `run` needs, and how many of its items that is."""
        awaited = self._graph.awaited(run)
        return next((each for each in awaited if self._committed[each[0].name] < each[1]), None)

    def _start(self, run: PlannedRun) -> None:
        del self._waiting[run.name]
        task = asyncio.create_task(self._run_one(run), name=run.name)
        task.add_done_callback(lambda _: self._wake.set())
        self._running[task] = run
        self._report("run", run)

    async def _run_one(self, run: PlannedRun) -> RunOutcome:
        def on_commit(committed: int) -> None:
            self._committed[run.name] = committed
            if run.name in self._sources:
                self._wake.set()

        try:
            return await execute_run(self._execution, run, on_commit)
        except LanggraftError:
            raise
        except Exception as error:
            msg = f"{type(error).__name__}: {error}"
            raise StudyError(msg, run=run.name) from error

    def _collect(self) -> None:
        """Take the outcomes of runs that ended; raise what one of them raised."""
        for task in [task for task in self._running if task.done()]:
            run = self._running.pop(task)
            if task.cancelled():
                continue
            outcome = task.result()
            self._outcomes[run.name] = outcome
            self._committed[run.name] = outcome.done
            self._report("run_end", run, text=outcome.status)
            if outcome.status == "capped":
                self._execution.stop.set()  # every other run would meet the same cap

    async def _wind_down(self) -> None:
        """Give items under way their grace, then drop them."""
        await asyncio.wait(self._running, timeout=self._grace * 0.8)
        await self._drop([task for task in self._running if not task.done()])
        self._collect()

    async def _drop(self, tasks: list[asyncio.Task[RunOutcome]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            ended, _ = await asyncio.wait(tasks, timeout=self._grace * 0.2)
            for task in ended:
                if not task.cancelled():
                    task.exception()  # asks so that nobody warns of it

    def _outcome(self, run: PlannedRun) -> RunOutcome:
        if run.name in self._outcomes:
            return self._outcomes[run.name]
        done = self._committed[run.name]
        if run.name not in self._waiting:
            return RunOutcome(run.name, "interrupted", done, run.length)
        done = run_progress(self._execution.out, run).done
        missing = self._missing(run)
        if missing is None:
            return RunOutcome(run.name, "waiting", done, run.length)
        message = f"needs {missing[1]} items of {missing[0].name!r}"
        return RunOutcome(run.name, "blocked", done, run.length, message)

    def _report(self, kind: EventKind, run: PlannedRun | None = None, text: str = "") -> None:
        name, total = ("", 0) if run is None else (run.name, run.length)
        done = self._committed[name] if name else 0
        self._execution.progress.report(ProgressEvent(kind, name, done, total, text))


SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what batch systems send before they kill."""


@contextmanager
def stop_on_signals(
    stop: asyncio.Event, before_dying: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Set `stop` at the first signal; at the second, let it end the process as by default.

    Ending at any moment is safe: what is committed is on disk, what is not is run again.

    Args:
        stop: The event to set; belongs to the loop that is running.
        before_dying: Called at the second signal, to put a terminal in order.

    Raises:
        ValueError: This is not the main thread, which alone may handle signals.
    """
    loop = asyncio.get_running_loop()

    # Not `loop.add_signal_handler`: that would wait while an item keeps the loop busy.
    def on_signal(number: int, _frame: FrameType | None) -> None:
        if asked:
            before_dying()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        asked.append(number)
        loop.call_soon_threadsafe(stop.set)

    asked: list[int] = []
    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
