"""The protocols: a place that runs programs, and a kernel that keeps its state between cells."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from langgraft.environments.sandboxes.programs import Command, ExecutionResult, Job, Limits


class Closing(Protocol):
    """Closed when its `with` or `async with` ends, however it ends."""

    @abstractmethod
    def close(self) -> None:
        """End all that this started; it cannot be used afterwards. Safe to call twice."""
        ...

    @abstractmethod
    async def aclose(self) -> None:
        """Do what `close` does."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


@runtime_checkable
class Kernel(Protocol):
    """A Python interpreter that lives on between cells, with a workspace of its own.

    All but `close` raise `InputError` for what is not usable, and `SandboxFailureError` where the
    container or engine died: all state is gone then.
    """

    def execute(self, code: str, *, seconds: float | None = None) -> ExecutionResult:
        """Run one cell in the kernel's variables; the value of a last expression is printed.

        A cell that takes too long is interrupted (`KeyboardInterrupt`, variables stay), and where
        it does not stop within three seconds, its kernel is killed (`kernel_lost`). The next cell
        then starts a new one. A top-level `await` works.
        """
        ...

    async def aexecute(self, code: str, *, seconds: float | None = None) -> ExecutionResult:
        """Do what `execute` does; cancelling interrupts the cell."""
        ...

    def run(
        self, command: Command, *, seconds: float | None = None, collect: Sequence[str] = ()
    ) -> ExecutionResult:
        """Run a command beside the kernel, in its workspace; what it leaves running is killed.

        Processes that cells left running go on, but for one that comes into being, of a parent
        that ends at once, while the command runs: it cannot be told from the command's own.
        """
        ...

    async def arun(
        self, command: Command, *, seconds: float | None = None, collect: Sequence[str] = ()
    ) -> ExecutionResult:
        """Do what `run` does; cancelling kills the command."""
        ...

    def put(self, files: Mapping[str, bytes | Path]) -> None:
        """Write files into the workspace, as `Job.files`."""
        ...

    async def aput(self, files: Mapping[str, bytes | Path]) -> None:
        """Do what `put` does; cancelling waits until it is done."""
        ...

    def collect(self, patterns: Sequence[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Take files out: those collected, and those left out with the reason."""
        ...

    async def acollect(self, patterns: Sequence[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Do what `collect` does; cancelling waits until it is done."""
        ...

    def close(self) -> None:
        """End the kernel and all it started, also while a cell runs."""
        ...

    async def aclose(self) -> None:
        """Do what `close` does."""
        ...


@runtime_checkable
class Sandbox(Closing, Protocol):
    """Runs programs that nobody has read, one place for each.

    `limits` are those of programs whose job names none.
    """

    limits: Limits

    @property
    @abstractmethod
    def digest(self) -> str:
        """What else decides a result: image, mounts, limits; a part of the execution cache's key."""
        ...

    def run(self, job: Job) -> ExecutionResult:
        """Run a program in a fresh place and return what came of it.

        Whatever the program does ends in a result; what is not its doing is retried.

        Raises:
            InputError: The job is not usable: its files cannot be put, its names leave the
                workspace, something in it is of the wrong type.
            SandboxUnavailableError: There is no engine or image, or this sandbox is closed.
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

        Raises:
            InputError: The files cannot be put, or `preload` is no sequence of names.
            SandboxUnavailableError: There is no engine or image, or this sandbox is closed.
            SandboxFailureError: It could not be opened, and again when retried.
        """
        ...

    async def akernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Do what `kernel` does."""
        ...
