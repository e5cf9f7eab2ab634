"""`kill -9` in the middle of runs of the chain agent and MLAB, with a live workspace."""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from langgraph.checkpoint.sqlite import SqliteSaver

from acceptance.chain_worker import STEPS
from acceptance.command import langgraft, run, worker_environment
from acceptance.figure import Figure, Setting, share
from acceptance.solving import LOOK, Kills, Solving, compare, ends
from langgraft.graphs.building import ARTIFACTS
from langgraft.nodes.artifacts import FolderArtifacts
from langgraft.nodes.workbench.log import Action, Observation, read_log

COMPETITION: Final = "weather"
BETWEEN: Final = (0.15, 0.8)
"""When to kill, in units of the time that an undisturbed run takes."""
FILES: Final = ("events.jsonl", "steps.json", "solution.py", "submission.csv", "grade.json")


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent, and the action after which its workspace holds what only a replay can bring back."""

    name: str
    action: str
    holds: str
    seeds: tuple[int, int]
    """Of a run in which the action goes well, at full and at reduced size."""


AGENTS: Final = (
    _Agent("chain", "run_python", "a kernel with variables", (2, 2)),
    _Agent("mlab", "Execute Script", "files that a script wrote", (5, 5)),
)


def measure(setting: Setting) -> list[Figure]:
    """Kill runs of both agents at seeded moments, and once right after the action.

    At reduced size the one whose kernel is to come back: tests stop and repeat runs of both.
    """
    agents = AGENTS[: setting.size(2, 1)]
    return [*(_measured(setting, agent) for agent in agents), _scripted(setting)]


def _measured(setting: Setting, agent: _Agent) -> Figure:
    steps, seed = setting.size(16, 8), setting.size(*agent.seeds)
    options = ("--agent", agent.name, "--steps", steps, "--seconds", 60, "--seed", seed)
    out = setting.work / f"{agent.name}-whole"
    whole = Solving(out, setting.work / "data", COMPETITION, options, "steps.json")
    setting.say(f"a run of {agent.name}, undisturbed")
    seconds = whole.undisturbed()
    kills = Kills()
    chance = random.Random(2612)
    setting.say("the same, killed")
    for number in range(setting.size(3, 1)):
        again = replace(whole, out=setting.work / f"{agent.name}-killed-{number}")
        again.strike(lambda process: _ends_before(process, again, agent), kills)  # noqa: B023
        kills.hits += _just_did(again, agent.action)
        for _ in range(setting.size(3, 0)):
            moment = chance.uniform(*BETWEEN) * seconds
            again.strike(lambda process: ends(process, moment), kills)  # noqa: B023
        again.finish(kills)
        compare(whole, again, FILES, kills)
    same = kills.files - len(kills.different)
    at_moments = "" if setting.reduced else " at seeded moments and"
    return Figure(
        f"A run of {agent.name} killed in the middle ends as one that was left alone",
        f"`langgraft solve {COMPETITION} --agent {agent.name} --steps {steps}` with memory in Chroma"
        f" and real Docker; {kills.killed} times SIGKILL,{at_moments} once a run when its workspace"
        f" holds {agent.holds} ({kills.hits} hit that); each begun again until it ended",
        share(same, kills.files, [*kills.different, *kills.complaints])
        + " files (event log, steps, program, submission, grade, bank)",
        "all equal, byte for byte, and one hit",
        kills.harmless and kills.hits > 0,
    )


def _ends_before(process: "subprocess.Popen[bytes]", solving: Solving, agent: _Agent) -> bool:
    while not ends(process, LOOK):
        if _just_did(solving, agent.action):
            return False
    return True


def _scripted(setting: Setting) -> Figure:
    """Kill a run whose cells build on each other after some of its steps, or after every one."""
    data, out = setting.work / "data", setting.work / "scripted"
    langgraft("competitions", "prepare", COMPETITION, "--data-dir", data)
    setting.say("a scripted run whose cells build on each other, killed after its steps")
    whole = _Scripted(out, data)
    done = run(whole.command(), environment=worker_environment())
    expected = whole.left()
    if len(expected) < len(LEFT):
        msg = f"the undisturbed script ended with {done.code}: {done.stderr[-300:]}"
        raise RuntimeError(msg)
    moments = [[7]] if setting.reduced else [*([n] for n in range(1, len(STEPS) + 1)), [2, 5, 7, 9]]
    kills, complaints = 0, []
    for number, steps in enumerate(moments):
        again = replace(whole, out=setting.work / f"scripted-{number}")
        kills += sum(again.killed_after(step) for step in steps)
        done = run(again.command(), environment=worker_environment())
        if again.left() != expected:
            complaints.append(f"after {steps}: {done.stderr.strip()[-200:] or 'other bytes'}")
    return Figure(
        "Variables, functions, modules and random numbers of a live kernel are there again",
        f"the chain agent's graph in Docker, {len(STEPS)} scripted steps whose cells build on each"
        f" other; {kills} times SIGKILL after a step, gone on with in another process",
        share(len(moments) - len(complaints), len(moments), complaints)
        + f" runs leave the same {', '.join(LEFT)}",
        "all, byte for byte",
        not complaints and kills == sum(map(len, moments)),
    )


LEFT: Final = ("events.jsonl", "submission.csv", "solution.py")


@dataclass(frozen=True, slots=True)
class _Scripted:
    """A scripted run, in a process."""

    out: Path
    data: Path

    def command(self) -> list[str]:
        """Return the command that begins it, or goes on with it."""
        module = "acceptance.chain_worker"
        return [sys.executable, "-m", module, str(self.data), str(self.out)]

    def killed_after(self, step: int) -> bool:
        """Kill it once so many steps are done; return whether it was still running."""
        with subprocess.Popen(
            self.command(),
            env=worker_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            while not ends(process, LOOK):
                if int(last_state(self.out / "work").get("steps", 0)) >= step:
                    process.kill()
                    return True
        return False

    def left(self) -> dict[str, bytes]:
        """Return what it left."""
        paths = (self.out / name for name in LEFT)
        return {path.name: path.read_bytes() for path in paths if path.is_file()}


def _just_did(solving: Solving, action: str) -> bool:
    """Say whether the last that was executed in a run is that action, and went well."""
    reference = str(last_state(solving.work).get("log") or "")
    events = (
        read_log(FolderArtifacts(solving.work / ARTIFACTS), reference).events if reference else ()
    )
    for event in reversed(events):
        if isinstance(event, Observation) and event.executed and event.cause is not None:
            done = events[event.cause]
            return isinstance(done, Action) and done.name == action and not event.failed
    return False


def last_state(work: Path) -> Mapping[str, Any]:
    """Return the state of a run as its last checkpoint has it; nothing where there is none yet."""
    place = f"{(work / 'checkpoints.sqlite').as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(place, uri=True)) as connection:
            last = SqliteSaver(connection).get_tuple({"configurable": {"thread_id": "search"}})
    except sqlite3.OperationalError:  # not there, or not whole yet
        return {}
    return {} if last is None else last.checkpoint["channel_values"]
