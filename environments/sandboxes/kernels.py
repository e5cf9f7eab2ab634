"""`SupervisedKernel`: an interpreter in a place of its own, kept between cells."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from langgraft._core.effects import run_in_thread
from langgraft._core.errors import InputError, SandboxFailureError
from langgraft.environments.sandboxes.closing import Closing
from langgraft.environments.sandboxes.conversation import Collected, Conversation, OverdueError
from langgraft.environments.sandboxes.files import check_files, check_patterns
from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.places import ChannelClosedError, Place
from langgraft.environments.sandboxes.programs import Command
from langgraft.environments.sandboxes.requests import (
    check_seconds,
    check_type,
    environment_of,
    program_request,
)
from langgraft.environments.sandboxes.results import ExecutionResult
from langgraft.environments.sandboxes.wire import ProtocolError

T = TypeVar("T")

_LOOK: Final = 0.1
"""Seconds between looks whether a cell that waits for others is still wanted."""
_LOST = "\n[the sandbox was lost with this, and with it the files of its workspace]\n"


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


class SupervisedKernel(Closing):
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

    def execute(self, code: str, *, seconds: float | None = None) -> ExecutionResult:
        """Run one cell in the kernel's variables; the value of a last expression is printed.

        A cell that takes too long is interrupted (`KeyboardInterrupt`, variables stay), and where
        it does not stop within three seconds its kernel is killed (`kernel_lost`). The next cell
        then starts a new one. A top-level `await` works.

        Raises:
            SandboxFailureError: The container or engine died: all state is gone.
        """
        return self._execute(code, seconds, _Turn())

    async def aexecute(self, code: str, *, seconds: float | None = None) -> ExecutionResult:
        """Do what `execute` does; cancelling interrupts the cell."""
        turn = _Turn()
        return await run_in_thread(lambda: self._execute(code, seconds, turn), turn.call_off)

    def run(
        self, command: Command, *, seconds: float | None = None, collect: Sequence[str] = ()
    ) -> ExecutionResult:
        """Run a command beside the kernel, in its workspace; what it leaves running is killed.

        Processes that cells left running go on, but for one that comes into being, of a parent
        that ends at once, while the command runs: it cannot be told from the command's own.

        Raises:
            InputError: The command or a pattern is not usable.
            SandboxFailureError: The container or engine died: all state is gone.
        """
        return self._run(command, seconds, collect, _Turn())

    async def arun(
        self, command: Command, *, seconds: float | None = None, collect: Sequence[str] = ()
    ) -> ExecutionResult:
        """Do what `run` does; cancelling kills the command."""
        turn = _Turn()
        return await run_in_thread(
            lambda: self._run(command, seconds, collect, turn), turn.call_off
        )

    def put(self, files: Mapping[str, bytes | Path]) -> None:
        """Write files into the workspace, as `Job.files`.

        Raises:
            InputError: A name leaves the workspace, or there is no room.
            SandboxFailureError: The container or engine died: all state is gone.
        """
        outgoing = check_files(files, self._limits)
        self._do(lambda conversation: conversation.put(outgoing))

    async def aput(self, files: Mapping[str, bytes | Path]) -> None:
        """Do what `put` does; cancelling waits until it is done."""
        await run_in_thread(lambda: self.put(files))

    def collect(self, patterns: Sequence[str]) -> Collected:
        """Take files out: those collected, and those left out with the reason.

        Raises:
            InputError: A pattern leaves the workspace.
            SandboxFailureError: The container or engine died: all state is gone.
        """
        checked = check_patterns(patterns)
        return self._do(lambda conversation: conversation.collect(checked))

    async def acollect(self, patterns: Sequence[str]) -> Collected:
        """Do what `collect` does; cancelling waits until it is done."""
        return await run_in_thread(lambda: self.collect(patterns))

    def close(self) -> None:
        """End the kernel and all it started, also while a cell runs."""
        self._gone = self._gone or "it was closed"
        opened = self._opened
        if opened is not None:
            self._let_go(opened[0])

    async def aclose(self) -> None:
        """Do what `close` does."""
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
        allowed = check_seconds(seconds, self._limits)
        patterns = check_patterns(collect)
        # Of a Python program there is no file here: put it, and run `Command(["python3", name])`.
        check_type("command", command, Command)
        request = program_request(command)
        return self._watched(
            lambda conversation, number: conversation.run(
                number,
                request,
                seconds=allowed,
                environment=environment_of(seed=0),
                patterns=patterns,
            ),
            turn,
        )

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
        if self._gone:
            raise SandboxFailureError(f"this kernel is gone, since {self._gone}: open another")
        if self._opened is None:
            self._opened = self._open_place()
            if self._gone:
                # Closed meanwhile, when there was nothing to close.
                self._drop(self._opened[0])
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


class _KilledByProgramError(Exception):
    """A cell's memory took the place with it."""


def _lost(result: ExecutionResult) -> ExecutionResult:
    stderr = result.stderr + _LOST
    return dataclasses.replace(result, kernel_lost=True, workspace_lost=True, stderr=stderr)
