"""What came of a program."""

from dataclasses import dataclass, field
from typing import Final, Literal

Stopped = Literal["timeout", "output"]
"""Why the sandbox ended a program: its wall clock, or what it printed."""

OUTPUT_HEAD: Final = 2500
OUTPUT_TAIL: Final = 2500
"""Characters that an agent is shown of a longer output (AIDE's figures)."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback."""

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
