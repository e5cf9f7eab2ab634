"""Live workspaces: a kernel for each run, kept between its steps and built anew where it is gone.

The log of a run says all that was done in its workspace. Where no kernel is there in which exactly
that was done (another process goes on with the run, a container died, there were too many at a
time), one is opened and those actions are done again, in order. What was observed the first time
stays the truth; a repetition that shows something else is only noted.

What was lost is lost again. An action that took its whole place with it left a workspace as at
first: nothing up to it is repeated. One that ended the interpreter alone left all files: it is
repeated, and an interpreter that lives on this time is ended.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError, SandboxFailureError
from langgraft.environments.sandboxes.sandbox import Kernel, Sandbox
from langgraft.nodes.workbench.log import Action, EventLog, Observation
from langgraft.nodes.workbench.performing import (
    KernelProgram,
    Performed,
    Performer,
    observed,
    run_cell,
)

T = TypeVar("T")

Repeater: TypeAlias = Callable[[Action, Observation], KernelProgram[Performed]]

logger = logging.getLogger(__name__)

TRIES: Final = 3
"""Kernels that an action gets, where the first ones are gone by no doing of its own."""
_END: Final = "import os\nos._exit(0)"


def _ignored() -> None:
    pass


class Workspaces:
    """The live workspaces of an agent's runs.

    Any number of threads and tasks may use it; a run's actions come one after the other.

    Args:
        sandbox: Made with `inputs={"input": competition.input_dir}`.
        perform: Does an action; see `langgraft.nodes.workbench.performing`.
        repeat: Does an action again that was observed before; `None`: as `perform` does.
        changing: Names of the actions that may change a workspace: those are done again.
        metric: The competition's name of its metric.
        preload: Modules imported by each kernel beforehand.
        seconds: Wall clock of one execution.
        capacity: Kernels that are kept for the next action of their run.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        perform: Performer,
        *,
        repeat: Repeater | None = None,
        changing: Collection[str],
        metric: str = "",
        preload: Sequence[str] = (),
        seconds: float = 7200.0,
        capacity: int = 8,
    ) -> None:
        self.sandbox = sandbox
        self.seconds = seconds
        self._perform = perform
        self._repeat: Repeater = repeat or (lambda action, _before: perform(action))
        self._changing = frozenset(changing)
        self._metric = metric
        self._preload = tuple(preload)
        self._live = LiveKernels(capacity)

    def run(
        self,
        episode_id: str,
        log: EventLog,
        action: Action,
        *,
        seconds: float | None = None,
        begins: Callable[[], None] = _ignored,
    ) -> Observation:
        """Do an action in a run's workspace, and return what was observed of it.

        Args:
            episode_id: The run.
            log: Of the run, before this action.
            action: Its `id` is the next one of the log; the observation's follows it.
            seconds: Wall clock of what it executes, where that is less than usual.
            begins: Called as the action begins, in a workspace where all before it is done; again
                where it begins again.

        Raises:
            SandboxUnavailableError: There is no engine or image.
            SandboxFailureError: The engine or container died, and again in fresh ones.
        """
        return run(self._running(episode_id, log, action, seconds, begins), do)

    async def arun(
        self,
        episode_id: str,
        log: EventLog,
        action: Action,
        *,
        seconds: float | None = None,
        begins: Callable[[], None] = _ignored,
    ) -> Observation:
        """Do what `run` does; cancelling ends the action, and the kernel with it."""
        running = self._running(episode_id, log, action, seconds, begins)
        return await arun(running, ado, in_threads=True)

    def look(self, episode_id: str, log: EventLog, begin: Callable[[], KernelProgram[T]]) -> T:
        """Look into a run's workspace: run a program on its kernel that changes nothing there.

        Raises:
            InputError: The program asks for what no kernel does.
            SandboxUnavailableError: There is no engine or image.
            SandboxFailureError: The engine or container died, and again in fresh ones.
        """
        return run(self._looking(episode_id, log, begin), do)

    async def alook(
        self, episode_id: str, log: EventLog, begin: Callable[[], KernelProgram[T]]
    ) -> T:
        """Do what `look` does, asynchronously."""
        return await arun(self._looking(episode_id, log, begin), ado, in_threads=True)

    def end(self, episode_id: str) -> None:
        """Close a run's workspace; what is asked of it afterwards builds it anew."""
        _close(self._live.end(episode_id))

    def close(self) -> None:
        """Close all workspaces, also those in use; what is asked afterwards builds them anew."""
        _close(self._live.end())

    def _running(
        self,
        episode_id: str,
        log: EventLog,
        action: Action,
        seconds: float | None,
        begins: Callable[[], None],
    ) -> Program[Call, Observation]:
        done = self._done(log)
        after = (*done, action) if action.name in self._changing else done
        allowed = self.seconds if seconds is None else min(seconds, self.seconds)

        def perform() -> KernelProgram[Performed]:
            begins()
            return _guarded(self._perform(action))

        performed = yield from self._held(episode_id, log, perform, done, after, seconds=allowed)
        return self._observed(performed, action, allowed)

    def _looking(
        self, episode_id: str, log: EventLog, begin: Callable[[], KernelProgram[T]]
    ) -> Program[Call, T]:
        done = self._done(log)
        return (yield from self._held(episode_id, log, begin, done, done))

    def _held(
        self,
        episode_id: str,
        log: EventLog,
        begin: Callable[[], KernelProgram[T]],
        done: tuple[Action, ...],
        after: tuple[Action, ...],
        *,
        seconds: float | None = None,
    ) -> Program[Call, T]:
        """Run a program in a workspace, in a fresh one where that dies."""
        for left in reversed(range(TRIES)):
            kernel, stale = self._live.take(episode_id, done)
            yield from _closed(stale)
            try:
                if kernel is None:
                    kernel = yield Call(
                        self.sandbox.kernel, self.sandbox.akernel, preload=self._preload
                    )
                    self._live.opened(episode_id, kernel)
                    yield from self._replay(kernel, log)
                value = yield from self._on(kernel, begin(), seconds)
            except GeneratorExit:  # nobody goes on with it: nothing may be yielded any more
                if kernel is not None:
                    self._live.drop(kernel)
                    kernel.close()
                raise
            except BaseException as error:
                wanted = kernel is None or self._live.drop(kernel)
                if kernel is not None:
                    yield from _closed([kernel])
                if not (wanted and left and isinstance(error, SandboxFailureError)):
                    raise
                logger.warning(
                    "%s: its workspace is gone (%s): it is built anew", episode_id, error
                )
                continue
            yield from _closed(self._live.give(episode_id, kernel, after))
            return value
        raise AssertionError  # the last try returns or raises

    def _done(self, log: EventLog) -> tuple[Action, ...]:
        return tuple(action for action, _ in _pairs(log) if action.name in self._changing)

    def _replay(self, kernel: Kernel, log: EventLog) -> Program[Call, None]:
        """Do again what was done since the workspace was last as at first."""
        for action, before in _since_lost(_pairs(log)):
            if action.name not in self._changing:
                continue
            allowed = before.allowed or self.seconds
            repeating = _guarded(self._repeat(action, before))
            performed = yield from self._on(kernel, repeating, allowed)
            again = self._observed(performed, action, allowed)
            if before.lost == "kernel" and not again.lost:
                yield from self._on(kernel, run_cell(_END))
            told = again.text != before.text and not before.running
            if told or again.lost != before.lost:
                logger.warning("event %d shows something else when it is done again", action.id)

    def _on(
        self, kernel: Kernel, program: KernelProgram[T], seconds: float | None = None
    ) -> Program[Call, T]:
        """Run a program on a kernel: what that refuses is raised in it."""
        answer: Any = None
        refused: InputError | None = None
        while True:
            try:
                call = program.send(answer) if refused is None else program.throw(refused)
            except StopIteration as stop:
                value: T = stop.value
                return value
            answer, refused = None, None
            try:
                answer = yield call(kernel, seconds or self.seconds)
            except InputError as error:
                if not _is_refusal(error):
                    raise
                refused = error

    def _observed(self, performed: Performed, action: Action, allowed: float) -> Observation:
        # How little time was left shows only where it ended what ran: a log has no clock.
        stopped = performed.result is not None and performed.result.timed_out
        limits, seconds = self.sandbox.limits, allowed if stopped else self.seconds
        return observed(performed, action, limits=limits, seconds=seconds, metric=self._metric)


def _guarded(program: KernelProgram[Performed]) -> KernelProgram[Performed]:
    """Perform an action; what the kernel refuses of it is observed."""
    try:
        return (yield from program)
    except InputError as error:
        if not _is_refusal(error):
            raise
        return Performed(str(error), failed=True)


def _is_refusal(error: InputError) -> bool:
    """Whether what was asked cannot be done; else there is no engine, or no data."""
    return type(error) is InputError


def _pairs(log: EventLog) -> list[tuple[Action, Observation]]:
    """Return the actions of a log that were observed, each with what was."""
    seen = {event.cause: event for event in log.events if isinstance(event, Observation)}
    return [
        (event, seen[event.id])
        for event in log.events
        if isinstance(event, Action) and event.id in seen
    ]


def _since_lost(pairs: list[tuple[Action, Observation]]) -> list[tuple[Action, Observation]]:
    lost = [place for place, (_, seen) in enumerate(pairs) if seen.lost == "workspace"]
    return pairs[lost[-1] + 1 :] if lost else pairs


def _closed(kernels: Sequence[Kernel]) -> Program[Call, None]:
    left = list(kernels)
    try:
        while left:
            yield Call(left[-1].close, left[-1].aclose)
            left.pop()
    finally:  # called off in between
        _close(left)


def _close(kernels: Sequence[Kernel]) -> None:
    for kernel in kernels:
        kernel.close()


@dataclass(frozen=True, slots=True)
class _Live:
    kernel: Kernel
    done: tuple[Action, ...]


class LiveKernels:
    """Kernels by run, each with what was done in it. It closes none itself: closing takes time.

    A kernel in use is not in the table, so that no two use it, and none of a run that failed
    half-way is ever found there.

    Args:
        capacity: Kernels that wait for their run's next action; the one longest unused goes first.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._idle: OrderedDict[str, _Live] = OrderedDict()
        self._busy: dict[int, tuple[str, Kernel]] = {}
        self._lock = threading.Lock()

    def take(self, run: str, done: tuple[Action, ...]) -> tuple[Kernel | None, list[Kernel]]:
        """Return a run's kernel if exactly this was done in it, and those to be closed."""
        with self._lock:
            live = self._idle.pop(run, None)
            if live is None:
                return None, []
            if live.done != done:
                return None, [live.kernel]
            self._busy[id(live.kernel)] = (run, live.kernel)
            return live.kernel, []

    def opened(self, run: str, kernel: Kernel) -> None:
        """Note a kernel that was opened and is in use."""
        with self._lock:
            self._busy[id(kernel)] = (run, kernel)

    def give(self, run: str, kernel: Kernel, done: tuple[Action, ...]) -> list[Kernel]:
        """Put a kernel back after use, and return those to be closed."""
        with self._lock:
            if self._busy.pop(id(kernel), None) is None:  # its run ended meanwhile
                return [kernel]
            before = self._idle.pop(run, None)
            self._idle[run] = _Live(kernel, done)
            over = [] if before is None else [before.kernel]
            while len(self._idle) > self._capacity:
                over.append(self._idle.popitem(last=False)[1].kernel)
            return over

    def drop(self, kernel: Kernel) -> bool:
        """Forget a kernel in use, and return whether it was still wanted."""
        with self._lock:
            return self._busy.pop(id(kernel), None) is not None

    def end(self, run: str | None = None) -> list[Kernel]:
        """Forget all kernels of a run, or of all, and return them to be closed."""
        with self._lock:
            idle = [name for name in self._idle if run in (None, name)]
            busy = [key for key, (name, _) in self._busy.items() if run in (None, name)]
            return [
                *(self._idle.pop(name).kernel for name in idle),
                *(self._busy.pop(key)[1] for key in busy),
            ]

    def __len__(self) -> int:
        """Return how many kernels wait for their run."""
        with self._lock:
            return len(self._idle)
