"""What all sandboxes with a supervisor share: `SupervisedSandbox`, and the kernels it keeps between cells."""

import contextlib
import dataclasses
import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from typing_extensions import override

from langgraft._core.effects import run_in_thread
from langgraft._core.errors import InputError, SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes.conversation import Collected, Conversation, OverdueError
from langgraft.environments.sandboxes.places import ChannelClosedError, Death, Place, ProtocolError
from langgraft.environments.sandboxes.requests import (
    check_files,
    check_patterns,
    check_seconds,
    check_texts,
    check_type,
    environment_of,
    prepare,
    prepare_command,
)
from langgraft.environments.sandboxes.sandbox import (
    Closing,
    Command,
    ExecutionResult,
    Job,
    Kernel,
    Limits,
    Sandbox,
)

T = TypeVar("T")

_LOOK: Final = 0.1
"""Seconds between looks whether a cell that waits for others is still wanted."""
_LOST = "\n[the sandbox was lost with this, and with it the files of its workspace]\n"


class _KilledByProgramError(Exception):
    """A cell's memory took the place with it."""


class _Turn:
    """One cell or command, which may be called off before and while it runs."""

    def __init__(self) -> None:
        self.off = False
        self._stop: Callable[[], None] | None = None

    def begin(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self.check()

    def check(self) -> None:
        if self.off:
            raise SandboxFailureError("called off before it began")

    def call_off(self) -> None:
        self.off = True
        if self._stop is not None:
            with contextlib.suppress(ChannelClosedError):  # it has ended by itself
                self._stop()


class SupervisedKernel(Closing, Kernel):
    """A Python interpreter that lives on between cells; opened by `Sandbox.kernel`.

    One cell runs at a time; calls from several threads or tasks wait for each other.

    Args:
        limits: Of each cell and command.
        open_place: Opens a place with a kernel that is ready.
        let_go: Gives a place back.
        told: Makes a result what is told of it.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        open_place: Callable[[], tuple[Place, Conversation]],
        let_go: Callable[[Place], None],
        told: Callable[[Place, ExecutionResult], ExecutionResult],
    ) -> None:
        self._limits = limits
        self._open_place = open_place
        self._let_go = let_go
        self._as_told = told
        self._lock = threading.Lock()
        self._number = 0
        self._gone = ""
        self._opened: tuple[Place, Conversation] | None = open_place()

    @override
    def execute(self, code: str, *, seconds: float | None = None) -> ExecutionResult:
        return self._execute(code, seconds, _Turn())

    @override
    async def aexecute(self, code: str, *, seconds: float | None = None) -> ExecutionResult:
        turn = _Turn()
        return await run_in_thread(lambda: self._execute(code, seconds, turn), turn.call_off)

    @override
    def run(
        self, command: Command, *, seconds: float | None = None, collect: Sequence[str] = ()
    ) -> ExecutionResult:
        return self._run(command, seconds, collect, _Turn())

    @override
    async def arun(
        self, command: Command, *, seconds: float | None = None, collect: Sequence[str] = ()
    ) -> ExecutionResult:
        turn = _Turn()
        return await run_in_thread(
            lambda: self._run(command, seconds, collect, turn), turn.call_off
        )

    @override
    def put(self, files: Mapping[str, bytes | Path]) -> None:
        outgoing = check_files(files, self._limits)
        self._do(lambda conversation: conversation.put(outgoing))

    @override
    async def aput(self, files: Mapping[str, bytes | Path]) -> None:
        await run_in_thread(lambda: self.put(files))

    @override
    def collect(self, patterns: Sequence[str]) -> Collected:
        checked = check_patterns(patterns)
        return self._do(lambda conversation: conversation.collect(checked))

    @override
    async def acollect(self, patterns: Sequence[str]) -> Collected:
        return await run_in_thread(lambda: self.collect(patterns))

    @override
    def close(self) -> None:
        self._gone = self._gone or "it was closed"
        opened = self._opened
        if opened is not None:
            self._let_go(opened[0])

    @override
    async def aclose(self) -> None:
        await run_in_thread(self.close)

    def _execute(self, code: str, seconds: float | None, turn: _Turn) -> ExecutionResult:
        allowed = check_seconds(seconds, self._limits)
        check_type("code", code, str)
        return self._watched(
            lambda conversation, number: conversation.cell(number, code, seconds=allowed), turn
        )

    def _run(
        self, command: Command, seconds: float | None, collect: Sequence[str], turn: _Turn
    ) -> ExecutionResult:
        request = prepare_command(command, self._limits, seconds=seconds, collect=collect)
        return self._watched(lambda conversation, number: conversation.run(number, request), turn)

    def _watched(
        self, work: Callable[[Conversation, int], ExecutionResult], turn: _Turn
    ) -> ExecutionResult:
        """Run a cell or command; one that takes its place with it is told as its own doing."""
        with self._in_turn(turn):
            place, conversation = self._current()
            self._number += 1
            number = self._number
            turn.begin(lambda: conversation.interrupt(number))
            try:
                result = self._guarded(place, lambda: work(conversation, number))
            except OverdueError:
                self._drop(place)
                result = _lost(conversation.cut_off(oom=False))
            except _KilledByProgramError:
                result = _lost(conversation.cut_off(oom=True))
            return self._as_told(place, result)

    @contextlib.contextmanager
    def _in_turn(self, turn: _Turn) -> Iterator[None]:
        """Wait for the cells before it, unless it is called off meanwhile."""
        while not self._lock.acquire(timeout=_LOOK):
            turn.check()
        try:
            yield
        finally:
            self._lock.release()

    def _do(self, work: Callable[[Conversation], T]) -> T:
        with self._lock:
            place, conversation = self._current()
            try:
                return self._guarded(place, lambda: work(conversation))
            except _KilledByProgramError as error:
                raise self._end("it ran out of memory") from error

    def _current(self) -> tuple[Place, Conversation]:
        if not self._gone and self._opened is None:
            self._opened = self._open_place()
            if self._gone:
                # Closed meanwhile, when there was nothing to close.
                self._drop(self._opened[0])
        if self._gone or self._opened is None:
            raise SandboxFailureError(f"this kernel is gone, since {self._gone}: open another")
        return self._opened

    def _guarded(self, place: Place, work: Callable[[], T]) -> T:
        try:
            return work()
        except ChannelClosedError as error:
            death = place.post_mortem()
            self._drop(place)
            if death.oom:
                raise _KilledByProgramError from error
            raise self._end(str(death)) from error
        except (TimeoutError, ProtocolError, OSError) as error:
            self._drop(place)
            raise self._end(str(error) or type(error).__name__) from error
        except (InputError, OverdueError):
            raise
        except BaseException:
            # An interrupted wait, as by Ctrl-C: what comes next would answer the wrong question.
            self._drop(place)
            self._gone = self._gone or "a call of it was interrupted"
            raise

    def _drop(self, place: Place) -> None:
        self._opened = None
        self._let_go(place)

    def _end(self, reason: str) -> SandboxFailureError:
        self._gone = self._gone or reason
        return SandboxFailureError(f"the kernel's sandbox failed: {self._gone}; open another")


def _lost(result: ExecutionResult) -> ExecutionResult:
    stderr = result.stderr + _LOST
    return dataclasses.replace(result, kernel_lost=True, workspace_lost=True, stderr=stderr)


logger = logging.getLogger(__name__)


FAILURES: Final = (ChannelClosedError, TimeoutError, ProtocolError, SandboxFailureError, OSError)
"""What a place or engine raises when it fails; none of it is a program's doing."""

_FILES_TOO_LARGE: Final = (
    "the sandbox ran out of memory before any code ran: files of the workspace and preloaded "
    "modules count in Limits.memory; raise it, or give fewer"
)

_PAUSE: Final = 0.5
"""Seconds before the first retry, doubled for each further one: an engine may be restarting."""


class _CalledOffError(Exception):
    """The caller does not want the result any more."""


class _Errand:
    """One piece of work in one place at a time, which may be called off from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._place: Place | None = None
        self.off = False

    def go_to(self, place: Place) -> None:
        with self._lock:
            self._place = place
            self.check()

    def check(self) -> None:
        if self.off:
            raise _CalledOffError

    def call_off(self) -> None:
        with self._lock:
            self.off = True
            place = self._place
        if place is not None:
            place.destroy()


class SupervisedSandbox(Sandbox):
    """Runs programs in places that a subclass opens; retries what is not the program's doing.

    Args:
        limits: Of every program.
        retries: Fresh places a program gets after one died under it.

    Raises:
        InputError: `limits` are none, or `retries` is below 0.
    """

    def __init__(self, limits: Limits | None = None, *, retries: int = 2) -> None:
        if limits is not None and not isinstance(limits, Limits):
            raise InputError(f"limits={limits!r}: give `Limits`, such as Limits(seconds=600)")
        if retries < 0:
            raise InputError(
                f"retries is {retries}: give how many fresh places a program gets, or 0"
            )
        self.limits = limits or Limits()
        self._retries = retries
        self._places: set[Place] = set()
        self._lock = threading.Lock()
        self._closed = False

    @abstractmethod
    def _open(self) -> Place:
        """Return a started place whose supervisor was greeted; from a pool it comes at once.

        Called from any number of threads. Whoever gets the place destroys it.

        Raises:
            SandboxUnavailableError: There is no engine or image: trying again is of no use.
            SandboxFailureError, OSError, TimeoutError, ChannelClosedError, ProtocolError: It
                failed this time; it is tried again.
        """

    def _release(self) -> None:
        """Remove what a subclass keeps besides open places: its pool, its client. Once, last."""

    def _told(self, place: Place, result: ExecutionResult) -> ExecutionResult:  # noqa: ARG002
        """Return a result as it is told; a subclass may leave out what names the machine."""
        return result

    @override
    def run(self, job: Job) -> ExecutionResult:
        return self._run(job, _Errand())

    @override
    async def arun(self, job: Job) -> ExecutionResult:
        errand = _Errand()
        return await run_in_thread(lambda: self._run(job, errand), errand.call_off)

    @override
    def kernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> SupervisedKernel:
        return self._kernel(preload, files or {}, _Errand())

    @override
    async def akernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> SupervisedKernel:
        errand = _Errand()
        return await run_in_thread(
            lambda: self._kernel(preload, files or {}, errand),
            errand.call_off,
            lambda kernel: kernel.close(),
        )

    @override
    def close(self) -> None:
        with self._lock:
            first, self._closed = not self._closed, True
            places = list(self._places)
        for place in places:
            place.destroy()
        if first:
            self._release()

    @override
    async def aclose(self) -> None:
        await run_in_thread(self.close)

    # Programs

    def _run(self, job: Job, errand: _Errand) -> ExecutionResult:
        files, request = prepare(job, self.limits)

        def work(place: Place) -> ExecutionResult:
            conversation = Conversation(place.channel, self.limits)
            try:
                conversation.put(files)
                return conversation.run(1, request)
            except OverdueError:
                return conversation.cut_off(oom=False)
            except ChannelClosedError as error:
                death = place.post_mortem()
                if death.oom and conversation.asked:
                    return conversation.cut_off(oom=True)
                raise _gone(death) from error

        place, result = self._retried(work, errand)
        self._let_go(place)
        return self._told(place, result)

    # Kernels

    def _kernel(
        self, preload: Sequence[str], files: Mapping[str, bytes | Path], errand: _Errand
    ) -> SupervisedKernel:
        outgoing = check_files(files, self.limits)
        modules = check_texts("preload", preload)

        def start(place: Place) -> Conversation:
            conversation = Conversation(place.channel, self.limits)
            try:
                conversation.put(outgoing)
                refused = conversation.open_kernel(modules, environment_of(seed=0))
            except ChannelClosedError as error:
                raise _gone(place.post_mortem()) from error
            if refused:
                raise SandboxFailureError(refused)
            return conversation

        return SupervisedKernel(
            self.limits,
            open_place=lambda: self._retried(start, errand),
            let_go=self._let_go,
            told=self._told,
        )

    # Places

    def _retried(self, task: Callable[[Place], T], errand: _Errand) -> tuple[Place, T]:
        """Do a task in a fresh place, in another one where a place fails; hand over both."""
        for attempt in range(self._retries + 1):
            try:
                return self._tried(task, errand)
            except SandboxUnavailableError:
                # There was an engine a moment ago: it may be coming back.
                if attempt == 0 or self._closed or attempt == self._retries:
                    raise
                reason = "the engine is away"
            except FAILURES as error:
                errand.check()
                self._check_open()
                reason = str(error) or type(error).__name__
                if attempt == self._retries:
                    raise SandboxFailureError(
                        f"the sandbox failed {attempt + 1} times, last because {reason}: see that "
                        "its engine is well and has room, then run again"
                    ) from error
            logger.warning(
                "a sandbox failed, attempt %d of %d: %s", attempt + 1, self._retries + 1, reason
            )
            time.sleep(_PAUSE * 2**attempt)
        raise AssertionError  # the last attempt returns or raises

    def _tried(self, task: Callable[[Place], T], errand: _Errand) -> tuple[Place, T]:
        errand.check()
        self._check_open()
        place = self._open()
        try:
            with self._lock:
                self._places.add(place)
            self._check_open()
            errand.go_to(place)
            return place, task(place)
        except BaseException:
            self._let_go(place)
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxUnavailableError("this sandbox is closed: make another")

    def _let_go(self, place: Place) -> None:
        with contextlib.suppress(KeyError), self._lock:
            self._places.remove(place)
        place.destroy()


def _gone(death: Death) -> Exception:
    """Return what it means that a place died before any code ran in it."""
    return InputError(_FILES_TOO_LARGE) if death.oom else SandboxFailureError(str(death))
