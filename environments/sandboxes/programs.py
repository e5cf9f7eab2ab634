"""What runs in a sandbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """Python source, run as the main module of a fresh interpreter."""

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
    """A program with all that decides what it does: what an execution is cached by."""

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
