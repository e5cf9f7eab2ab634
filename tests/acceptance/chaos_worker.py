"""A client of a sandbox that may be killed: it is given programs on standard input, one a line.

Of each it says on standard output how it ended, or that the sandbox failed under it.
"""

import json
import sys
import time
from dataclasses import dataclass
from typing import Final

from langgraft._core.errors import SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import (
    MIB,
    ExecutionResult,
    Job,
    Limits,
    PythonProgram,
)

LIMITS: Final = Limits(
    seconds=30,
    memory=128 * MIB,
    workspace=8 * MIB,
    tmp=8 * MIB,
    shm=8 * MIB,
    flood=MIB,
)

_BEYOND: Final = 0.4
"""Seconds that a program without end is given after its delay."""

_PROGRAMS: Final = {
    "ok": "print('done', sum(range(1000)))",
    "ValueError": "raise ValueError('on purpose')",
    "exit 3": "sys.exit(3)",
    "oom": "held = []\nwhile True: held.append(bytearray(1 << 20))",
    "timeout": "while True: time.sleep(1)",
    "output": "while True: print('x' * 1000)",
    "SIGSEGV": "import ctypes; ctypes.string_at(0)",
}
ENDINGS: Final = tuple(_PROGRAMS)
"""What a program does, and so what must be said of it."""


@dataclass(frozen=True, slots=True)
class Errand:
    """One program to run."""

    number: int
    ending: str
    delay: float
    """Seconds until it ends as it does."""

    def job(self) -> Job:
        """Return what to run."""
        code = f"import sys, time\ntime.sleep({self.delay})\n{_PROGRAMS[self.ending]}\n"
        seconds = self.delay + _BEYOND if self.ending == "timeout" else None
        return Job(PythonProgram(code), seconds=seconds)


def ending(result: ExecutionResult) -> str:
    """Say how a program ended, by its result alone, in the words of `ENDINGS`."""
    if result.oom:
        return "oom"
    if result.stopped is not None:
        return result.stopped
    if result.error is not None:
        return result.error.type
    if result.signal is not None:
        return result.signal
    if result.exit_code == 0:
        return "ok" if result.stdout == "done 499500\n" else f"printed {result.stdout!r}"
    return f"exit {result.exit_code}"


_PAUSE: Final = 0.5
"""Seconds before it takes the next program after the sandbox failed: an engine may be away."""


def main(image: str, pool: str) -> None:
    """Run what comes until there is no more."""
    with DockerSandbox(image, limits=LIMITS, pool=int(pool)) as sandbox:
        for line in sys.stdin:
            errand = Errand(**json.loads(line))
            answer: dict[str, object] = {"number": errand.number}
            try:
                answer["ending"] = ending(sandbox.run(errand.job()))
            except (SandboxFailureError, SandboxUnavailableError) as error:
                answer |= {"failure": type(error).__name__, "message": str(error)}
                time.sleep(_PAUSE)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
