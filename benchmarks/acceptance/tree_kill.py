"""`kill -9` in the middle of a tree search, and what its checkpoints weigh."""

import random
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from langgraph.checkpoint.serde.types import TASKS
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraft.benchmarks.acceptance.command import (
    Ended,
    clean_environment,
    command_line,
    langgraft,
    run,
)
from langgraft.benchmarks.acceptance.figure import Figure, Setting, share

COMPETITION: Final = "weather"
WIDTH: Final = 2
BETWEEN: Final = (0.15, 0.6)
"""When to kill, in units of the time that an undisturbed search takes."""
_LOOK: Final = 0.05
"""Seconds between looks at the checkpoints of a search that runs."""
MOST_BYTES: Final = 50_000
"""What the checkpoints of one step may take."""
MOST_GROWTH: Final = 1.25
"""How much larger than one in the middle a checkpoint at the end of a search may be."""


@dataclass
class Kills:
    """What happened to searches that were killed."""

    killed: int = 0
    in_flight: int = 0
    """Kills while two branches were under way, as the last checkpoint has it."""
    different: list[str] = field(default_factory=list)
    files: int = 0
    complaints: list[str] = field(default_factory=list)


def measure(setting: Setting) -> list[Figure]:
    """Kill searches at seeded moments, and weigh the checkpoints of one that was left alone."""
    setting.say("a tree search, undisturbed")
    steps, data = setting.size(16, 6), setting.work / "data"
    whole = _Search(setting.work / "tree-whole", data, steps)
    seconds = _undisturbed(whole)
    kills = Kills()
    setting.say("the same, killed")
    chance = random.Random(2605)  # noqa: S311  (not for secrets)
    for number in range(setting.size(4, 1)):
        again = replace(whole, out=setting.work / f"tree-killed-{number}")
        moments = [chance.uniform(*BETWEEN) * seconds for _ in range(setting.size(3, 1))]
        _killed(again, moments, kills)
        _compare(whole, again, kills)
    how = (
        f"`langgraft solve {COMPETITION} --width {WIDTH} --steps {steps}` with memory in Chroma and"
        f" real Docker; {kills.killed} times SIGKILL, at seeded moments and once a search when"
        f" {WIDTH} branches are under way: {kills.in_flight} hit {WIDTH} in flight; each begun again"
        " until it ended"
    )
    same = kills.files - len(kills.different)
    return [
        Figure(
            "A tree search killed in the middle ends as one that was left alone",
            how,
            share(same, kills.files, [*kills.different, *kills.complaints])
            + " files (journal, solution, submission, bank)",
            "all equal, and a kill with two branches in flight",
            not kills.different and not kills.complaints and kills.in_flight > 0,
        ),
        *_weights(setting, whole.checkpoints, steps),
    ]


@dataclass(frozen=True, slots=True)
class _Search:
    """A search to run: where, on what data, and how long."""

    out: Path
    data: Path
    steps: int

    @property
    def checkpoints(self) -> Path:
        """Where its checkpoints lie."""
        return self.out / "work" / "checkpoints.sqlite"

    @property
    def memory(self) -> Path:
        """Where its memory lies."""
        return self.out.with_name(f"{self.out.name}-memory")

    def command(self) -> list[str]:
        """Return the command that begins it, or goes on with it."""
        options = ("--steps", self.steps, "--width", WIDTH, "--seconds", 60)
        places = ("--data-dir", self.data, "--memory", f"chroma:{self.memory}", "--out", self.out)
        return command_line("solve", COMPETITION, *options, *places)

    def run(self) -> Ended:
        """Run it to its end."""
        return run(self.command())


def _undisturbed(search: _Search) -> float:
    langgraft("competitions", "prepare", COMPETITION, "--data-dir", search.data)
    done = search.run()
    if not (search.out / "journal.json").is_file():
        msg = f"the undisturbed search ended with {done.code}: {done.stderr[-300:]}"
        raise RuntimeError(msg)
    return done.seconds


def _killed(search: _Search, moments: Sequence[float], report: Kills) -> None:
    """Begin a search again and again, killed after so many seconds each, then once in mid-step."""
    for moment in moments:
        _struck(search, partial(_ends, seconds=moment), report)
    _struck(search, partial(_ends_before_both_run, checkpoints=search.checkpoints), report)
    done = search.run()
    if done.code not in (0, 1):
        report.complaints.append(f"{search.out.name}: {done.stderr[-200:]}")


def _struck(
    search: _Search, ends: Callable[["subprocess.Popen[bytes]"], bool], report: Kills
) -> None:
    """Begin a search, or go on with it, and kill it unless it ends before its moment."""
    with subprocess.Popen(  # noqa: S603
        search.command(),
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        if not ends(process):
            process.kill()  # SIGKILL
            report.killed += 1
    report.in_flight += _branches(search.checkpoints) >= WIDTH


def _ends(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
    return process.poll() is not None


def _ends_before_both_run(process: "subprocess.Popen[bytes]", checkpoints: Path) -> bool:
    while not _ends(process, _LOOK):
        if _branches(checkpoints) >= WIDTH:
            return False
    return True


def _branches(checkpoints: Path) -> int:
    """Return how many programs are being written and run, or were when a search was killed."""
    try:
        with closing(sqlite3.connect(f"{checkpoints.as_uri()}?mode=ro", uri=True)) as connection:
            thread = connection.execute("SELECT thread_id FROM checkpoints LIMIT 1").fetchone()
            if thread is None:
                return 0
            whole_search = {"thread_id": thread[0], "checkpoint_ns": ""}
            last = SqliteSaver(connection).get_tuple({"configurable": whole_search})
    except sqlite3.OperationalError:  # not there, or not whole yet
        return 0
    if last is None:
        return 0
    sent = last.checkpoint["channel_values"].get(TASKS, ())
    brought = [channel for _, channel, _ in last.pending_writes or () if channel == "finished"]
    return len(sent) - len(brought) if sent else 0


def _compare(whole: _Search, again: _Search, report: Kills) -> None:
    for name in ("journal.json", "solution.py", "submission.csv", "grade.json"):
        report.files += 1
        if _content(whole.out / name) != _content(again.out / name):
            report.different.append(f"{again.out.name}/{name}")
    report.files += 1
    if _bank(whole) != _bank(again):
        report.different.append(f"{again.out.name}: the bank")


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _bank(search: _Search) -> bytes:
    file = search.out.with_name(f"{search.out.name}.jsonl")
    store = ("--store", f"chroma:{search.memory}", "--provider", "coding", "--force")
    done = langgraft("memory", "export", file, *store)
    if done.code != 0:
        msg = f"the bank of {search.out.name} cannot be exported: {done.stderr.strip()}"
        raise RuntimeError(msg)
    return file.read_bytes()


def _weights(setting: Setting, checkpoints: Path, steps: int) -> list[Figure]:
    """Weigh what the checkpoints of each part of the search take."""
    with closing(sqlite3.connect(checkpoints)) as connection:
        saved = connection.execute(
            "SELECT checkpoint_id, length(checkpoint) + length(metadata) FROM checkpoints"
        ).fetchall()
        written = connection.execute("SELECT length(value) FROM writes WHERE value IS NOT NULL")
        extra = sum(size for (size,) in written)
    sizes = [size for _, size in sorted(saved)]
    third = len(sizes) // 3
    growth = max(sizes[-third:]) / max(sizes[third:-third])
    each = (sum(sizes) + extra) / steps
    how = f"SQLite, all checkpoints and writes of a search of {steps} steps, branches included"
    return [
        Figure(
            "Checkpoints of a step stay small",
            how,
            f"{each / 1000:.1f} kB a step",
            f"< {MOST_BYTES / 1000:.0f} kB",
            each < MOST_BYTES,
        ),
        Figure(
            "Checkpoints grow linearly with the steps",
            how,
            f"the largest of the last third takes {growth:.2f} times the largest of the second",
            "" if setting.reduced else f"≤ {MOST_GROWTH} times",
            None if setting.reduced else growth <= MOST_GROWTH,
        ),
    ]
