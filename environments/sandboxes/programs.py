"""A program, what it may use, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

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
