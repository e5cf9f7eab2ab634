"""One attack, and how the ending of a program is named."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Final

from langgraft.environments.sandboxes.hostile.surroundings import Surroundings
from langgraft.environments.sandboxes.limits import MIB, Limits
from langgraft.environments.sandboxes.programs import Job, PythonProgram
from langgraft.environments.sandboxes.results import ExecutionResult
from langgraft.environments.sandboxes.sandbox import Sandbox

LIMITS: Final = Limits(
    seconds=20,
    memory=256 * MIB,
    cpus=1,
    pids=64,
    workspace=32 * MIB,
    tmp=16 * MIB,
    shm=16 * MIB,
    file=24 * MIB,
    open_files=256,
    output=8000,
    flood=128 * MIB,
    collected=8 * MIB,
    collected_files=50,
)
"""Small, so that every one is reached within a second or two."""

SUCCEEDED: Final = "GOT "
"""How a program begins a line about something that should have failed."""

Check = Callable[[ExecutionResult], list[str]]
"""Says what is wrong with a result, a line each."""
Move = Callable[[Sandbox], ExecutionResult]
"""Carries an attack out in place of running its program; raises `NotContainedError`."""


class NotContainedError(Exception):
    """An attack in which the host took part reached something."""


def nothing_more(_: ExecutionResult) -> list[str]:
    """Ask for nothing beyond what holds for every attack."""
    return []


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack."""

    name: str
    tries: str
    """In a few words, for the table."""
    endings: frozenset[str]
    """How it may be classified, as `ending` names it."""
    program: str = ""
    """Its file in `programs`; empty where `move` does it all."""
    seconds: float | None = None
    """Wall clock, in place of the battery's."""
    collect: tuple[str, ...] = ()
    check: Check = nothing_more
    local: bool = False
    """Whether it needs an engine that sees this machine's folders."""
    move: Move | None = None

    def carry_out(self, sandbox: Sandbox, surroundings: Surroundings) -> ExecutionResult:
        """Do it, and return what came of it.

        Raises:
            NotContainedError: It reached something.
        """
        if self.move is not None:
            return self.move(sandbox)
        return sandbox.run(self.job(surroundings))

    def job(self, surroundings: Surroundings) -> Job:
        """Return the program with what it is told of the host."""
        return Job(
            PythonProgram(source(self.program), name=self.program),
            files={"attempts.py": source("attempts.py").encode()},
            collect=self.collect,
            seconds=self.seconds,
            environment=surroundings.told,
        )


def source(name: str) -> str:
    """Return a hostile program."""
    folder = resources.files("langgraft.environments.sandboxes.hostile.programs")
    return folder.joinpath(name).read_text(encoding="utf-8")


def ending(result: ExecutionResult) -> str:
    """Name how a program ended, in a word or two.

    `timeout`, `oom, exit 137`, `ValueError`, `SIGSEGV`, `exit 0`, or `alive` for a kernel.
    """
    if result.stopped is not None:
        return result.stopped
    if result.oom:
        return f"oom, exit {result.exit_code}"
    # A program can forge what its interpreter tells of an exception: a name at least it must be.
    if result.error is not None and result.error.type.replace(".", "_").isidentifier():
        return result.error.type.rpartition(".")[2]
    if result.signal is not None:
        return result.signal
    return "alive" if result.exit_code is None else f"exit {result.exit_code}"
