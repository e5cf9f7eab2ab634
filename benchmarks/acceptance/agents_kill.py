"""`kill -9` in the middle of runs of the chain agent and MLAB, with a live workspace."""

import random
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from langgraph.checkpoint.sqlite import SqliteSaver

from langgraft._core.errors import InputError
from langgraft.benchmarks.acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.acceptance.solving import LOOK, Kills, Solving, compare, ends
from langgraft.benchmarks.mle.searching import ARTIFACTS
from langgraft.nodes.artifacts import FolderArtifacts
from langgraft.nodes.workbench.events import Action, Observation
from langgraft.nodes.workbench.log import read_log

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
    seed: int
    """Of a run in which the action occurs, also at reduced size."""


AGENTS: Final = (
    _Agent("chain", "run_python", "a kernel with variables", 0),
    _Agent("mlab", "Execute Script", "files that a script wrote", 0),
)


def measure(setting: Setting) -> list[Figure]:
    """Kill runs of both agents at seeded moments, and once right after the action."""
    return [_measured(setting, agent) for agent in AGENTS]


def _measured(setting: Setting, agent: _Agent) -> Figure:
    steps = setting.size(16, 8)
    options = ("--agent", agent.name, "--steps", steps, "--seconds", 60, "--seed", agent.seed)
    out = setting.work / f"{agent.name}-whole"
    whole = Solving(out, setting.work / "data", COMPETITION, options, "steps.json")
    setting.say(f"a run of {agent.name}, undisturbed")
    seconds = whole.undisturbed()
    kills = Kills()
    chance = random.Random(2612)  # noqa: S311  (not for secrets)
    setting.say("the same, killed")
    for number in range(setting.size(3, 1)):
        again = replace(whole, out=setting.work / f"{agent.name}-killed-{number}")
        again.strike(lambda process: _ends_before(process, again, agent), kills)  # noqa: B023
        kills.hits += _just_did(again, agent.action)
        for _ in range(setting.size(3, 1)):
            moment = chance.uniform(*BETWEEN) * seconds
            again.strike(lambda process: ends(process, moment), kills)  # noqa: B023
        again.finish(kills)
        compare(whole, again, FILES, kills)
    same = kills.files - len(kills.different)
    return Figure(
        f"A run of {agent.name} killed in the middle ends as one that was left alone",
        f"`langgraft solve {COMPETITION} --agent {agent.name} --steps {steps}` with memory in Chroma"
        f" and real Docker; {kills.killed} times SIGKILL, at seeded moments and once a run when its"
        f" workspace holds {agent.holds} ({kills.hits} hit that); each begun again until it ended",
        share(same, kills.files, [*kills.different, *kills.complaints])
        + " files (event log, steps, program, submission, grade, bank)",
        "all equal, byte for byte, and one hit",
        kills.harmless and kills.hits > 0,
    )


def _ends_before(process: "subprocess.Popen[bytes]", run: Solving, agent: _Agent) -> bool:
    while not ends(process, LOOK):
        if _just_did(run, agent.action):
            return False
    return True


def _just_did(run: Solving, action: str) -> bool:
    """Say whether the last that was executed in a run is that action, and went well."""
    events = (
        read_log(FolderArtifacts(run.work / ARTIFACTS), reference).events
        if (reference := _log_of(run))
        else ()
    )
    for event in reversed(events):
        if isinstance(event, Observation) and event.executed and event.cause is not None:
            done = events[event.cause]
            return isinstance(done, Action) and done.name == action and not event.failed
    return False


def _log_of(run: Solving) -> str:
    """Return the reference of a run's log as its last checkpoint has it."""
    place = f"{run.checkpoints.as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(place, uri=True)) as connection:
            last = SqliteSaver(connection).get_tuple({"configurable": {"thread_id": "search"}})
    except (sqlite3.OperationalError, InputError):  # not there, or not whole yet
        return ""
    return "" if last is None else str(last.checkpoint["channel_values"].get("log") or "")
