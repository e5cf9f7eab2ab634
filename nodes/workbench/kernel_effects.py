"""What is asked of a live workspace: calls of its kernel, and effects that open, ask and close one.

A `KernelTalk` yields calls, and is sent what the kernel answered. A `Session` yields effects; what
performing one raises is thrown into it. Async it goes on in threads, so that no event loop waits
while a submission of a million rows is checked.
"""

import glob
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from langgraft._core.effects import ado, arun, do, run
from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.programs import Command, ExecutionResult
from langgraft.environments.sandboxes.sandbox import Kernel, Sandbox

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunCell:
    """Run a cell."""

    code: str

    def on(self, kernel: Kernel, seconds: float) -> ExecutionResult:
        """Do it."""
        return kernel.execute(self.code, seconds=seconds)

    async def aon(self, kernel: Kernel, seconds: float) -> ExecutionResult:
        """Do it, asynchronously."""
        return await kernel.aexecute(self.code, seconds=seconds)


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a command beside the kernel, and take files out afterwards."""

    command: Command
    collect: tuple[str, ...] = ()

    def on(self, kernel: Kernel, seconds: float) -> ExecutionResult:
        """Do it."""
        return kernel.run(self.command, seconds=seconds, collect=self.collect)

    async def aon(self, kernel: Kernel, seconds: float) -> ExecutionResult:
        """Do it, asynchronously."""
        return await kernel.arun(self.command, seconds=seconds, collect=self.collect)


@dataclass(frozen=True, slots=True)
class TakeOut:
    """Take files out, by names or patterns."""

    patterns: tuple[str, ...]

    def on(self, kernel: Kernel, _seconds: float) -> tuple[dict[str, bytes], dict[str, str]]:
        """Do it."""
        return kernel.collect(self.patterns)

    async def aon(self, kernel: Kernel, _seconds: float) -> tuple[dict[str, bytes], dict[str, str]]:
        """Do it, asynchronously."""
        return await kernel.acollect(self.patterns)


@dataclass(frozen=True, slots=True)
class PutIn:
    """Write files."""

    files: Mapping[str, bytes]

    def on(self, kernel: Kernel, _seconds: float) -> None:
        """Do it."""
        kernel.put(self.files)

    async def aon(self, kernel: Kernel, _seconds: float) -> None:
        """Do it, asynchronously."""
        await kernel.aput(self.files)


KernelCall: TypeAlias = RunCell | RunCommand | TakeOut | PutIn
KernelTalk: TypeAlias = Generator[KernelCall, Any, T]


def run_cell(code: str) -> KernelTalk[ExecutionResult]:
    """Run a cell in the kernel's variables, for at most the agent's `seconds`."""
    result: ExecutionResult = yield RunCell(code)
    return result


def run_command(command: Command, *, collect: tuple[str, ...] = ()) -> KernelTalk[ExecutionResult]:
    """Run a command in the workspace, for at most the agent's `seconds`."""
    result: ExecutionResult = yield RunCommand(command, collect)
    return result


def take_out(*patterns: str) -> KernelTalk[tuple[dict[str, bytes], dict[str, str]]]:
    """Take files out: those collected, and those left out with the reason."""
    collected: tuple[dict[str, bytes], dict[str, str]] = yield TakeOut(patterns)
    return collected


def put_in(files: Mapping[str, bytes]) -> KernelTalk[None]:
    """Write files into the workspace."""
    yield PutIn(files)


def read_file(path: str) -> KernelTalk[bytes | str]:
    """Read a file of the workspace: its content, or as text why it cannot be read."""
    try:
        files, left_out = yield from take_out(glob.escape(path))
    except InputError as error:
        return str(error)
    if path in files:
        return files[path]
    return left_out.get(path, "there is no such file")


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
    return run(session, do)


async def ahold(session: Session[T]) -> T:
    """Do what `hold` does, asynchronously; cancelling is thrown into the session."""
    return await arun(session, ado, in_threads=True)
