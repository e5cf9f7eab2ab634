"""`SupervisedSandbox`: what all sandboxes with a supervisor share."""

import contextlib
import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from typing_extensions import override

from langgraft._core.effects import run_in_thread
from langgraft._core.errors import InputError, SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes.conversation import Conversation, OverdueError
from langgraft.environments.sandboxes.kernels import SupervisedKernel
from langgraft.environments.sandboxes.places import ChannelClosedError, Death, Place, ProtocolError
from langgraft.environments.sandboxes.programs import ExecutionResult, Job, Limits
from langgraft.environments.sandboxes.requests import (
    check_files,
    check_texts,
    environment_of,
    prepare,
)
from langgraft.environments.sandboxes.sandbox import Sandbox

logger = logging.getLogger(__name__)

T = TypeVar("T")

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
