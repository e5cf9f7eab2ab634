"""Talks with the kernels of live workspaces, held sync or async.

A `Session` yields what to do and is sent what came of it; what that raises is thrown into it. Async
it advances in threads, so that no event loop waits while a submission of a million rows is checked.
"""

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from langgraft.environments.sandboxes.aside import do_aside
from langgraft.environments.sandboxes.sandbox import Kernel, Sandbox
from langgraft.nodes.workbench.kernel_calls import KernelCall

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenKernel:
    """Open a kernel."""

    sandbox: Sandbox
    preload: tuple[str, ...]

    def do(self) -> Kernel:
        """Do it."""
        return self.sandbox.kernel(preload=self.preload)

    async def ado(self) -> Kernel:
        """Do it, asynchronously."""
        return await self.sandbox.akernel(preload=self.preload)


@dataclass(frozen=True, slots=True)
class AskKernel:
    """Ask a kernel for something."""

    kernel: Kernel
    call: KernelCall
    seconds: float

    def do(self) -> Any:
        """Do it."""
        return self.call.on(self.kernel, self.seconds)

    async def ado(self) -> Any:
        """Do it, asynchronously."""
        return await self.call.aon(self.kernel, self.seconds)


@dataclass(frozen=True, slots=True)
class CloseKernel:
    """Close a kernel."""

    kernel: Kernel

    def do(self) -> None:
        """Do it."""
        self.kernel.close()

    async def ado(self) -> None:
        """Do it, asynchronously."""
        await self.kernel.aclose()


Doing: TypeAlias = OpenKernel | AskKernel | CloseKernel
Session: TypeAlias = Generator[Doing, Any, T]


def hold(session: Session[T]) -> T:
    """Hold a session to its end, and return its result."""
    step = _advance(session, None, None)
    while not isinstance(step, _Ended):
        try:
            answer = step.do()
        except BaseException as error:  # noqa: BLE001 - the session decides what it means
            step = _advance(session, None, error)
        else:
            step = _advance(session, answer, None)
    return step.value


async def ahold(session: Session[T]) -> T:
    """Do what `hold` does, asynchronously; cancelling is thrown into the session."""
    try:
        step = await _aside(session, None, None)
        while not isinstance(step, _Ended):
            try:
                answer = await step.ado()
            except BaseException as error:  # noqa: BLE001 - the session decides what it means
                step = await _aside(session, None, error)
            else:
                step = await _aside(session, answer, None)
        return step.value
    finally:
        session.close()  # cancelled again, while it was about to close its kernel


@dataclass(frozen=True, slots=True)
class _Ended(Generic[T]):
    value: T


async def _aside(
    session: Session[T], answer: Any, error: BaseException | None
) -> "Doing | _Ended[T]":
    """Advance in a thread: a submission of a million rows is checked there.

    Cancelled meanwhile, the session hears of it once it has come so far.
    """
    try:
        return await do_aside(lambda: _advance(session, answer, error), lambda: None)
    except asyncio.CancelledError as cancelled:
        if error is not None:
            raise
        return await _aside(session, None, cancelled)


def _advance(session: Session[T], answer: Any, error: BaseException | None) -> "Doing | _Ended[T]":
    try:
        return session.send(answer) if error is None else session.throw(error)
    except StopIteration as stop:
        return _Ended(stop.value)
