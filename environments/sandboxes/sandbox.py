"""The protocols: a place that runs programs, and a kernel that keeps its state between cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.programs import Command, Job
from langgraft.environments.sandboxes.results import ExecutionResult


@runtime_checkable
class Kernel(Protocol):
    """A Python interpreter that lives on between cells, with a workspace of its own."""

    def execute(self, code: str, *, seconds: float | None = None) -> ExecutionResult:
        """Run one cell in the kernel's variables; the value of a last expression is printed.

        A cell that takes too long is interrupted (`KeyboardInterrupt`, variables stay), and where
        it does not stop, its kernel is killed (`kernel_lost`). The next cell then starts a new one.

        Raises:
            SandboxFailureError: The container or engine died: all state is gone.
        """
        ...

    async def aexecute(self, code: str, *, seconds: float | None = None) -> ExecutionResult:
        """Do what `execute` does; cancelling interrupts the cell."""
        ...

    def run(
        self, command: Command, *, seconds: float | None = None, collect: Sequence[str] = ()
    ) -> ExecutionResult:
        """Run a command beside the kernel, in its workspace; what it leaves running is killed."""
        ...

    async def arun(
        self, command: Command, *, seconds: float | None = None, collect: Sequence[str] = ()
    ) -> ExecutionResult:
        """Do what `run` does."""
        ...

    def put(self, files: Mapping[str, bytes | Path]) -> None:
        """Write files into the workspace, as `Job.files`."""
        ...

    async def aput(self, files: Mapping[str, bytes | Path]) -> None:
        """Do what `put` does."""
        ...

    def collect(self, patterns: Sequence[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Take files out: those collected, and those left out with the reason."""
        ...

    async def acollect(self, patterns: Sequence[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Do what `collect` does."""
        ...

    def close(self) -> None:
        """End the kernel and all it started."""
        ...

    async def aclose(self) -> None:
        """Do what `close` does."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """Runs programs that nobody has read, one place for each."""

    limits: Limits

    @property
    def digest(self) -> str:
        """What else decides a result: image, mounts, limits; a part of the execution cache's key."""
        ...

    def run(self, job: Job) -> ExecutionResult:
        """Run a program in a fresh place and return what came of it.

        Whatever the program does ends in a result; what is not its doing is retried.

        Raises:
            InputError: The job's files cannot be put: a path that leaves the workspace, no file.
            SandboxUnavailableError: There is no engine or image.
            SandboxFailureError: The engine or container died, and again when retried.
        """
        ...

    async def arun(self, job: Job) -> ExecutionResult:
        """Do what `run` does; cancelling kills the program."""
        ...

    def kernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Open a persistent kernel with modules imported beforehand.

        Args:
            preload: Modules; one that is not there is no error until a cell imports it.
            files: Put into its workspace first.
        """
        ...

    async def akernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Do what `kernel` does."""
        ...

    def close(self) -> None:
        """Remove everything this sandbox started; it cannot be used afterwards."""
        ...

    async def aclose(self) -> None:
        """Do what `close` does."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
