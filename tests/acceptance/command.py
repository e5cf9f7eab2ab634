"""Commands as a user gives them, in processes of their own."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TESTS: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    """Wall time."""


def run(
    command: list[str], *, folder: Path | None = None, environment: dict[str, str] | None = None
) -> Ended:
    """Run a command to its end."""
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment() if environment is None else environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, time.perf_counter() - started)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took."""

    ended: Ended
    seconds: float
    """CPU time."""
    megabytes: float
    """Most memory at a time."""


def cost(command: list[str]) -> Cost:
    """Run a command to its end, and measure it.

    It is started by a small process: a child is charged with the memory of what started it.
    """
    ended = run([sys.executable, "-S", "-c", _MEASURING, *command])
    stderr, _, used = ended.stderr.rpartition("\0")
    seconds, kilobytes = map(float, used.split())
    said = Ended(ended.code, ended.stdout, stderr, ended.seconds)
    return Cost(said, seconds, kilobytes / 1024)


_MEASURING = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
sys.stderr.write(f"\\0{used.ru_utime + used.ru_stime} {used.ru_maxrss}")
sys.exit(done.returncode)
"""


def command_line(*arguments: object) -> list[str]:
    """Return the command of `langgraft` with these arguments."""
    return [sys.executable, "-m", "langgraft", *map(str, arguments)]


def langgraft(*arguments: object) -> Ended:
    """Run `langgraft` as a process."""
    return run(command_line(*arguments))


def clean_environment() -> dict[str, str]:
    """Return the environment without keys, tracing and what Python was told."""
    dropped = ("PYTHON", "VIRTUAL_ENV", "LANGSMITH", "LANGCHAIN", "MAKE", "MFLAGS")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) and not name.endswith("_API_KEY")
    }


def worker_environment() -> dict[str, str]:
    """Return a clean environment in which Python finds this package, and what it measures.

    Another checkout may be installed in the Python that runs this.
    """
    return clean_environment() | {"PYTHONPATH": f"{_TESTS}{os.pathsep}{_TESTS.parent / 'src'}"}


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, by its path in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
