"""`langgraft solve` as a process that is killed, begun again, and compared with one left alone."""

import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from acceptance.command import (
    Ended,
    clean_environment,
    command_line,
    langgraft,
    run,
)

LOOK: Final = 0.05
"""Seconds between looks at the checkpoints of a run."""


@dataclass
class Kills:
    """What happened to runs that were killed."""

    killed: int = 0
    hits: int = 0
    """Kills at the very moment that was wanted, as the checkpoints have it."""
    different: list[str] = field(default_factory=list)
    files: int = 0
    complaints: list[str] = field(default_factory=list)

    @property
    def harmless(self) -> bool:
        """Whether nothing tells that a run was killed."""
        return not self.different and not self.complaints


@dataclass(frozen=True, slots=True)
class Solving:
    """A run: where, on what data, and how."""

    out: Path
    data: Path
    competition: str
    options: tuple[object, ...]
    record: str
    """The file that is there once it has ended."""

    @property
    def work(self) -> Path:
        """What it needs to go on."""
        return self.out / "work"

    @property
    def checkpoints(self) -> Path:
        """Where its checkpoints lie."""
        return self.work / "checkpoints.sqlite"

    @property
    def memory(self) -> Path:
        """Where its memory lies."""
        return self.out.with_name(f"{self.out.name}-memory")

    def command(self) -> list[str]:
        """Return the command that begins it, or goes on with it."""
        places = ("--data-dir", self.data, "--memory", f"chroma:{self.memory}", "--out", self.out)
        return command_line("solve", self.competition, *self.options, *places)

    def undisturbed(self) -> float:
        """Run it from its beginning to its end; return the seconds it took."""
        langgraft("competitions", "prepare", self.competition, "--data-dir", self.data)
        done = run(self.command())
        if not (self.out / self.record).is_file():
            msg = f"the undisturbed run ended with {done.code}: {done.stderr[-300:]}"
            raise RuntimeError(msg)
        return done.seconds

    def strike(self, ended: Callable[["subprocess.Popen[bytes]"], bool], report: Kills) -> None:
        """Begin it, or go on with it, and kill it unless it ends before its moment."""
        with subprocess.Popen(
            self.command(),
            env=clean_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            if not ended(process):
                process.kill()  # SIGKILL
                report.killed += 1

    def finish(self, report: Kills) -> Ended:
        """Go on with it to its end."""
        done = run(self.command())
        if done.code not in (0, 1):
            report.complaints.append(f"{self.out.name}: {done.stderr[-200:]}")
        return done

    def bank(self) -> bytes:
        """Return what its memory holds."""
        file = self.out.with_name(f"{self.out.name}.jsonl")
        store = ("--store", f"chroma:{self.memory}", "--provider", "coding", "--force")
        done = langgraft("memory", "export", file, *store)
        if done.code != 0:
            msg = f"the bank of {self.out.name} cannot be exported: {done.stderr.strip()}"
            raise RuntimeError(msg)
        return file.read_bytes()


def ends(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Say whether a process ends within so many seconds."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
    return process.poll() is not None


def compare(whole: Solving, again: Solving, names: Sequence[str], report: Kills) -> None:
    """Hold the files and the bank of a run that was killed against those of one that was not."""
    for name in names:
        report.files += 1
        if _content(whole.out / name) != _content(again.out / name):
            report.different.append(f"{again.out.name}/{name}")
    report.files += 1
    if whole.bank() != again.bank():
        report.different.append(f"{again.out.name}: the bank")


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
