"""What a sandbox is: a program, what it may use, what came of it, and the protocols of a place and of a kernel."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Protocol, Self, runtime_checkable

from pydantic import Field

from langgraft._core.arguments import Settings


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """Python source, run as the main module of a fresh interpreter.

    `code` is run with `arguments` on its command line.
    """

    code: str
    name: str = "program.py"
    """The file it is written to in the workspace, and that its tracebacks name."""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the sandbox: `Command(["ls", "-l"])`, or a line for its shell."""

    line: str | Sequence[str]
    """A text goes to `sh -c`; a sequence is the argument vector."""


Program = PythonProgram | Command


@dataclass(frozen=True, slots=True)
class Job:
    """A program with all that decides what it does: what an execution is cached by.

    `program` is what runs.
    """

    program: Program
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    """Put into the workspace first: relative POSIX path to content, or to a file of this machine."""
    collect: tuple[str, ...] = ()
    """Taken out afterwards, also after a timeout: relative paths or globs (`working/**`).

    Only regular files; links are never followed.
    """
    seconds: float | None = None
    """Wall clock, in place of the sandbox's limit."""
    seed: int = 0
    """`PYTHONHASHSEED` of the program."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables."""


MIB: Final = 1 << 20


class Limits(Settings):
    """The bounds of one program, or of one cell of a kernel. Sizes are bytes."""

    seconds: float = Field(60.0, gt=0, allow_inf_nan=False)
    """Wall clock, from the program's first instruction; then its whole tree is killed."""
    memory: int = Field(2048 * MIB, ge=64 * MIB)
    """Of all processes together; swap is off. What lies in `tmp`, `shm` and a `workspace` in memory
    counts."""
    cpus: float = Field(2.0, gt=0, allow_inf_nan=False)
    """Processors, also as `OMP_NUM_THREADS` and its like (rounded up)."""
    pids: int = Field(256, ge=32)
    """Processes and threads; numeric libraries start a thread for each processor."""
    workspace: int = Field(512 * MIB, ge=MIB)
    """Of the workspace, all files together: beyond it writes fail with `ENOSPC`, or on disk the
    program is stopped."""
    workspace_on: Literal["memory", "disk"] = "memory"
    """Where the workspace lies. On the engine's disk it takes no memory, and its bound is watched, a
    few times a second, and not held to the byte."""
    tmp: int = Field(256 * MIB, ge=MIB)
    """Of `/tmp`."""
    shm: int = Field(256 * MIB, ge=MIB)
    """Of `/dev/shm`; where it is short, workers die of `SIGBUS`."""
    file: int = Field(512 * MIB, ge=MIB)
    """Of any one file (`RLIMIT_FSIZE`)."""
    open_files: int = Field(4096, ge=64)
    """Open files of one process."""
    output: int = Field(64_000, ge=1000)
    """Kept of each of standard output and standard error: half from the head, half from the tail."""
    flood: int = Field(256 * MIB, ge=1000)
    """Printed in all before the program is stopped."""
    collected: int = Field(256 * MIB, ge=0)
    """Of all files taken out together. The largest submission of MLE-bench lite, to
    denoising-dirty-documents, has 5.35 million rows: 157 MB with all digits of each value."""
    collected_files: int = Field(1000, ge=0)
    """How many files are taken out at most."""


Stopped = Literal["timeout", "output", "disk"]
"""Why the sandbox ended a program: its wall clock, what it printed, or what its workspace on disk
held."""

OUTPUT_HEAD: Final = 2500
OUTPUT_TAIL: Final = 2500
"""Characters that an agent is shown of a longer output (AIDE's figures)."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback. `function` at a `line` of a `file`."""

    file: str
    line: int
    function: str
    text: str
    """The source line, stripped; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class ProgramError:
    """The exception that ended a Python program, told by its own interpreter."""

    type: str
    """Class, qualified where it is no builtin: `ValueError`, `numpy.linalg.LinAlgError`."""
    message: str
    """`str()` of the exception."""
    frames: tuple[Frame, ...] = ()
    """Outermost first; frames of the launcher are left out."""


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What a program did, as the sandbox saw it.

    `stderr` is what it wrote there, `stopped` why it was ended from outside, `error` the exception that
    ended it; `None`: not so.

    Output and files are the program's own word. How it ended (`timed_out`, `oom`, `signal`) is
    not: that is told by what watches it.
    """

    exit_code: int | None
    """As a shell tells it (128 + n for signal n); `None` for a cell of a kernel that lives on."""
    stdout: str
    """Decoded as UTF-8 with replacement characters, head and tail where it was cut."""
    stderr: str
    duration: float
    """Seconds of wall clock."""
    stopped: Stopped | None = None
    oom: bool = False
    """The kernel's OOM killer ended the program or one of its children."""
    signal: str | None = None
    """The signal that ended it, such as `SIGSEGV`."""
    error: ProgramError | None = None
    printed: tuple[int, int] = (0, 0)
    """Bytes written to standard output and standard error, cut ones included."""
    files: dict[str, bytes] = field(default_factory=dict)
    """What was collected, by path relative to the workspace, sorted."""
    left_out: dict[str, str] = field(default_factory=dict)
    """What matched and was not collected, with the reason: a link, no regular file, too large."""
    kernel_lost: bool = False
    """A cell ended its kernel: the variables are gone, the next cell starts a new one."""
    workspace_lost: bool = False
    """It took its whole place with it: the workspace is again as the kernel was opened with it."""

    @property
    def timed_out(self) -> bool:
        """Whether the wall clock ended it."""
        return self.stopped == "timeout"

    @property
    def ok(self) -> bool:
        """Whether it ran to its end without an error."""
        return (
            self.exit_code in (0, None)
            and self.stopped is None
            and self.signal is None
            and self.error is None
            and not self.kernel_lost
        )


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
