"""`SupervisedKernel`: an interpreter in a place of its own, kept between cells."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from typing_extensions import override

from langgraft._core.effects import run_in_thread
from langgraft._core.errors import InputError, SandboxFailureError
from langgraft.environments.sandboxes.conversation import Collected, Conversation, OverdueError
from langgraft.environments.sandboxes.places import ChannelClosedError, Place, ProtocolError
from langgraft.environments.sandboxes.programs import Command, ExecutionResult, Limits
from langgraft.environments.sandboxes.requests import (
    check_files,
    check_patterns,
    check_seconds,
    check_type,
    prepare_command,
)
from langgraft.environments.sandboxes.sandbox import Closing, Kernel

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
