"""Run a plan on one machine: runs are opened as they are needed to keep all slots for items busy.

What waits longest for others comes first: a run is opened before another if more items have to follow
one another from its first one on. A stream that learns keeps one slot busy, a run with a frozen bank as
many as there are, so tests fill what the streams leave free. The first signal asks to stop, the second one stops at once.
"""

import asyncio
import heapq
import os
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from langgraft._core.effects import Clock, SystemClock
from langgraft._core.errors import LanggraftError, SettingsError, StudyError
from langgraft.benchmarks.harness.directory import hold_directory, hold_places, hold_shard
from langgraft.benchmarks.harness.execute import (
    Execution,
    ModelFor,
    Slots,
    execute_run,
    in_thread,
)
from langgraft.benchmarks.harness.log import run_progress
from langgraft.benchmarks.harness.plans import PreparedPlan
from langgraft.benchmarks.harness.processes import Processes, Start, Work
from langgraft.benchmarks.harness.progress import (
    EventKind,
    NoProgress,
    PlanOutcome,
    Progress,
    ProgressEvent,
    RunOutcome,
)
from langgraft.benchmarks.harness.study import PlannedRun, RunGraph

GRACE = 2.0
"""Seconds items under way may take to finish after a request to stop, and be dropped: to close what is open
takes a second where others keep the machine busy, and three are promised."""


@dataclass(frozen=True)
class Shard:
    """A part of a plan's runs, the same whoever asks."""

    index: int
    """From 0."""
    count: int
    """How many there are."""

    def runs(self, graph: RunGraph) -> frozenset[str]:
        """Return the names of its runs: of runs that go on with another's bank all or none."""
        families: defaultdict[str, list[PlannedRun]] = defaultdict(list)
        for run in graph:
            lineage = graph.lineage(run)
            families[lineage[0][0].name if lineage else run.name].append(run)
        loads = [0] * self.count
        own: list[str] = []
        # The longest first, each to whom has least: shards are then about as long as one another.
        for _, family in sorted(families.items(), key=lambda each: -sum(r.length for r in each[1])):
            place = loads.index(min(loads))
            loads[place] += sum(run.length for run in family)
            if place == self.index:
                own += (run.name for run in family)
        return frozenset(own)

    @property
    def name(self) -> str:
        """What its files are called by."""
        return f"{self.index}-of-{self.count}"


async def run_plan(
    prepared: PreparedPlan[Any],
    out: Path,
    *,
    model_for: ModelFor,
    concurrency: int | None = None,
    processes: int = 1,
    start: Start | None = None,
    hours: float | None = None,
    shard: Shard | None = None,
    store: str | None = None,
    progress: Progress | None = None,
    stop: asyncio.Event | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
) -> PlanOutcome:
    """Run a plan, or go on with it where it was stopped.

    The items committed are the same for every concurrency and every store; a plan may be gone on with
    over another store than it was begun with.

    Args:
        prepared: The plan, made by `prepare`.
        out: The run directory; made where it is not there.
        model_for: Makes the model for a run.
        concurrency: How many items go on at the same time, over all runs, and so how many model calls of
            agents that make one at a time; `None`: as the study has it.
        processes: How many processes share the runs, and the concurrency, among them; with more than
            one, plan and model must be such that they can be pickled.
        start: Starts each of the processes, as on another machine that shares the directory; `None`:
            they are spawned here.
        hours: After so long no item is started any more.
        shard: Carry out this part of the runs alone, while others do the rest in the same directory,
            on other machines too.
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
    spec = study.default_store if store is None else store
    size = study.default_concurrency if concurrency is None else concurrency
    told, asked = progress or NoProgress(), stop or asyncio.Event()
    if processes == 1 and start is None:
        hold = hold_directory if shard is None else partial(hold_shard, **asdict(shard))
        part = "" if shard is None else shard.name
        with hold_places(out, prepared, spec, hold, part=part) as places:
            execution = Execution(
                prepared,
                out,
                model_for,
                Slots(size),
                told,
                clock or SystemClock(),
                places=places,
            )
            here = _Crew(
                partial(execute_run, execution), execution.stop.set, size, size, execution.slots
            )
            own = None if shard is None else shard.runs(prepared.graph)
            return await _Dispatcher(
                prepared.graph, out, told, here, stop=asked, grace=grace, hours=hours, own=own
            ).run()
    if shard is not None:
        msg = "a shard is carried out by one process; take more shards instead"
        raise SettingsError(msg)
    with hold_directory(out, prepared):
        work = Work(prepared, out, model_for, size, spec)
        crew = Processes(work, processes, told, start)
        async with crew.started():
            # Counted so, as many runs are opened as give each process its part.
            there = _Crew(crew.execute, crew.stop, size, -(-size // processes))
            return await _Dispatcher(
                prepared.graph, out, told, there, stop=asked, grace=grace, hours=hours
            ).run()


_LOOK_SECONDS: Final = 2.0
"""How often a shard looks how far the others are, where its runs need theirs."""
_ITEMS_A_PROCESS: Final = 100
"""A process takes seconds to start, in which so many items of a simulated model are worked through."""


def worth_processes(prepared: PreparedPlan[Any], cores: int | None = None) -> int:
    """Return how many processes a plan is worth: one a core, if there are items enough for each.

    Args:
        prepared: The plan.
        cores: How many there are; `None`: as many as this machine has.
    """
    study = prepared.study
    if study.default_processes is not None:
        return study.default_processes
    items = sum(run.length for run in prepared.graph)
    if cores is None:
        many = hasattr(os, "sched_getaffinity")
        cores = (len(os.sched_getaffinity(0)) if many else os.cpu_count()) or 1
    return max(1, min(cores, items // _ITEMS_A_PROCESS))


@dataclass(frozen=True)
class _Crew:
    """Who carries out runs, as the dispatcher sees them."""

    execute: Callable[[PlannedRun, Callable[[int], None]], Awaitable[RunOutcome]]
    stop: Callable[[], None]
    """Has no further item started."""
    size: int
    """Items under way at once, over all runs."""
    widest: int
    """Items of one run under way at once."""
    slots: Slots | None = None
    """Those of this process, which tell when one stays free."""


def _heights(graph: RunGraph) -> dict[str, int]:
    """Return how many items follow one another from the first of each run on, over all that need it."""
    children: defaultdict[str, list[PlannedRun]] = defaultdict(list)
    for run in graph:
        for name in run.spec.parents:
            children[name].append(run)
    heights: dict[str, int] = {}
    todo = list(graph)
    while todo:  # a loop, so that long chains need no deep stack
        run = todo[-1]
        if unknown := [each for each in children[run.name] if each.name not in heights]:
            todo += unknown
            continue
        todo.pop()
        after = max((heights[each.name] for each in children[run.name]), default=0)
        heights[run.name] = after + (1 if run.spec.frozen else run.length)
    return heights


class _Dispatcher:
    """Starts runs when they can start, and collects how they end."""

    def __init__(
        self,
        graph: RunGraph,
        out: Path,
        progress: Progress,
        crew: _Crew,
        *,
        stop: asyncio.Event,
        grace: float,
        hours: float | None,
        own: frozenset[str] | None = None,
    ) -> None:
        self._graph = graph
        self._own = frozenset(run.name for run in graph) if own is None else own
        self._out = out
        self._progress = progress
        self._crew = crew
        self._stop = stop
        self._seconds = None if hours is None else hours * 3600
        self._capped = False
        self._grace = grace
        self._committed = {run.name: 0 for run in self._graph}
        self._waiting = {run.name: run for run in self._graph if run.name in self._own}
        self._awaiting: defaultdict[str, list[PlannedRun]] = defaultdict(list)
        for run in self._graph:
            for name in run.spec.parents:
                self._awaiting[name].append(run)
        heights = _heights(self._graph)
        self._rank = {
            run.name: (-heights[run.name], place) for place, run in enumerate(self._graph)
        }
        self._ready: list[tuple[tuple[int, int], str]] = []
        self._queued: set[str] = set()
        self._running: dict[asyncio.Task[RunOutcome], PlannedRun] = {}
        self._opening: set[str] = set()
        self._outcomes: dict[str, RunOutcome] = {}
        self._wake = asyncio.Event()

    async def run(self) -> PlanOutcome:
        self._take_stock()
        if self._crew.slots is not None:
            self._crew.slots.on_idle = self._wake.set
        watchers = [asyncio.create_task(each()) for each in (self._listen, self._watch_others)]
        try:
            await self._dispatch()
            if self._running:
                await self._wind_down()
        finally:
            for each in watchers:
                each.cancel()
            await self._drop(list(self._running))
        interrupted = self._stop.is_set()
        own = (run for run in self._graph if run.name in self._own)
        outcome = PlanOutcome(tuple(self._outcome(run) for run in own), interrupted)
        self._report("end", text=outcome.summary())
        return outcome

    def _take_stock(self) -> None:
        done = 0
        for run in self._graph:
            progress = run_progress(self._out, run)
            done += progress.done if run.name in self._own else 0
            # Only a finished run serves as a source before it is opened and repaired.
            self._committed[run.name] = progress.done if progress.finished else 0
        self._queue(self._graph)
        total = sum(run.length for run in self._graph if run.name in self._own)
        self._progress.report(ProgressEvent("plan", "", done, total))

    async def _listen(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                await self._stop.wait()
        self._stop.set()
        self._crew.stop()
        self._wake.set()

    async def _watch_others(self) -> None:
        """Look now and then how far runs of other shards are that runs of this one need."""
        while needed := self._needed_of_others():
            await asyncio.sleep(_LOOK_SECONDS)
            for run in needed:
                self._committed[run.name] = (await in_thread(run_progress, self._out, run)).done
                self._queue(self._awaiting[run.name])
            self._wake.set()
        self._wake.set()

    def _needed_of_others(self) -> list[PlannedRun]:
        names = {name for run in self._waiting.values() for name in run.spec.parents} - self._own
        runs = (self._graph[name] for name in sorted(names))
        return [run for run in runs if self._committed[run.name] < run.length]

    async def _dispatch(self) -> None:
        """Start what can start until nothing is under way, or someone asks to stop."""
        while True:
            self._wake.clear()
            self._collect()
            while self._ready and self._wants_more():
                self._start(self._waiting[heapq.heappop(self._ready)[1]])
            idle = not self._running and not self._needed_of_others()
            if idle or self._stop.is_set() or (self._capped and not self._running):
                return
            await self._wake.wait()

    def _wants_more(self) -> bool:
        """Say whether slots would stay free without another run."""
        if self._stop.is_set() or self._capped:
            return False
        size, slots = self._crew.size, self._crew.slots
        used = sum(map(self._use, self._running.values()))
        # A few more than can go on are opened, since folding a bank takes a moment.
        if used < size + size // 8:
            return True
        # Items end before the first of their run does, which alone may be committed: others have the slots.
        stuck = any(run.spec.frozen for run in self._running.values())
        free = slots is None or slots.free > 0
        return stuck and used < 2 * size and free and not self._opening

    def _use(self, run: PlannedRun) -> int:
        """Return how many slots a run under way can use."""
        if not run.spec.frozen:
            return 1
        return min(run.length - self._committed[run.name], self._crew.widest)

    def _queue(self, runs: Iterable[PlannedRun]) -> None:
        """Put runs that can start in order."""
        for run in runs:
            mine = run.name in self._own and run.name not in self._queued
            if mine and self._missing(run) is None:
                self._queued.add(run.name)
                heapq.heappush(self._ready, (self._rank[run.name], run.name))

    def _missing(self, run: PlannedRun) -> tuple[PlannedRun, int] | None:
        """Return a run that has not come as far as `run` needs, and how many of its items that is."""
        awaited = self._graph.awaited(run)
        return next((each for each in awaited if self._committed[each[0].name] < each[1]), None)

    def _start(self, run: PlannedRun) -> None:
        del self._waiting[run.name]
        task = asyncio.create_task(self._run_one(run), name=run.name)
        task.add_done_callback(lambda _: self._wake.set())
        self._running[task] = run
        self._opening.add(run.name)
        self._report("run", run)

    async def _run_one(self, run: PlannedRun) -> RunOutcome:
        def on_commit(committed: int) -> None:
            self._committed[run.name] = committed
            self._opening.discard(run.name)
            self._queue(self._awaiting[run.name])
            self._wake.set()

        try:
            return await self._crew.execute(run, on_commit)
        except LanggraftError:
            raise
        except Exception as error:
            msg = f"{type(error).__name__}: {error}"
            raise StudyError(msg, run=run.name) from error

    def _collect(self) -> None:
        """Take the outcomes of runs that ended; raise what one of them raised."""
        for task in [task for task in self._running if task.done()]:
            run = self._running.pop(task)
            self._opening.discard(run.name)
            if task.cancelled():
                continue
            outcome = task.result()
            self._outcomes[run.name] = outcome
            self._committed[run.name] = outcome.done
            self._queue(self._awaiting[run.name])
            self._report("run_end", run, text=outcome.status)
            if outcome.status == "capped":
                self._capped = True  # every other run would meet the same cap
                self._crew.stop()

    async def _wind_down(self) -> None:
        """Give items under way their grace, then drop them."""
        # The rest is left for dropping them.
        await asyncio.wait(self._running, timeout=self._grace * 0.6)
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
        done = run_progress(self._out, run).done
        missing = self._missing(run)
        if missing is None:
            return RunOutcome(run.name, "waiting", done, run.length)
        message = f"needs {missing[1]} items of {missing[0].name!r}"
        return RunOutcome(run.name, "blocked", done, run.length, message)

    def _report(self, kind: EventKind, run: PlannedRun | None = None, text: str = "") -> None:
        name, total = ("", 0) if run is None else (run.name, run.length)
        done = self._committed[name] if name else 0
        self._progress.report(ProgressEvent(kind, name, done, total, text))


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
