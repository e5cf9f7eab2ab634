"""`kill -9` in the middle of a tree search, and what its checkpoints weigh."""

import random
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from langgraph.checkpoint.serde.types import TASKS
from langgraph.checkpoint.sqlite import SqliteSaver

from acceptance.figure import Figure, Setting, share
from acceptance.solving import LOOK, Kills, Solving, compare, ends

COMPETITION: Final = "weather"
WIDTH: Final = 2
BETWEEN: Final = (0.15, 0.6)
"""When to kill, in units of the time that an undisturbed search takes."""
FILES: Final = ("journal.json", "solution.py", "submission.csv", "grade.json")
MOST_BYTES: Final = 50_000
"""What the checkpoints of one step may take."""
MOST_GROWTH: Final = 1.25
"""How much larger than one in the middle a checkpoint at the end of a search may be."""


def measure(setting: Setting) -> list[Figure]:
    """Kill searches at seeded moments, and weigh the checkpoints of one that was left alone."""
    setting.say("a tree search, undisturbed")
    steps, data = setting.size(16, 6), setting.work / "data"
    options = ("--steps", steps, "--width", WIDTH, "--seconds", 60)
    whole = Solving(setting.work / "tree-whole", data, COMPETITION, options, "journal.json")
    seconds = whole.undisturbed()
    kills = Kills()
    setting.say("the same, killed")
    chance = random.Random(2605)
    for number in range(setting.size(4, 1)):
        again = replace(whole, out=setting.work / f"tree-killed-{number}")
        moments = [chance.uniform(*BETWEEN) * seconds for _ in range(setting.size(3, 0))]
        _killed(again, moments, kills)
        compare(whole, again, FILES, kills)
    at_moments = "" if setting.reduced else " at seeded moments and"
    how = (
        f"`langgraft solve {COMPETITION} --width {WIDTH} --steps {steps}` with memory in Chroma and"
        f" real Docker; {kills.killed} times SIGKILL,{at_moments} once a search when"
        f" {WIDTH} branches are under way: {kills.hits} hit {WIDTH} in flight; each begun again"
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
            not kills.different and not kills.complaints and kills.hits > 0,
        ),
        *_weights(setting, whole.checkpoints, steps),
    ]


def _killed(search: Solving, moments: Sequence[float], report: Kills) -> None:
    """Begin a search again and again, killed after so many seconds each, then once in mid-step."""
    for moment in moments:
        search.strike(lambda process: ends(process, moment), report)  # noqa: B023  (called at once)
        report.hits += _branches(search.checkpoints) >= WIDTH
    search.strike(lambda process: _ends_before_both_run(process, search.checkpoints), report)
    report.hits += _branches(search.checkpoints) >= WIDTH
    search.finish(report)


def _ends_before_both_run(process: "subprocess.Popen[bytes]", checkpoints: Path) -> bool:
    while not ends(process, LOOK):
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
