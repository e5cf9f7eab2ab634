"""ALFWorld killed in the middle of an episode: another process goes on from the checkpoint."""

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.acceptance.alfworld_worker import play, worlds_of
from langgraft.benchmarks.acceptance.command import clean_environment, run
from langgraft.benchmarks.acceptance.figure import Figure, Setting, share
from langgraft.environments.alfworld.games import FAMILIES

Places = tuple[tuple[str, int], ...]
"""Where one process after the other kills itself."""

PLACES: Final[Sequence[Places]] = (
    (("think", 5),),
    (("act", 4),),
    (("think", 0), ("act", 2), ("think", 9)),
    (("act", 0), ("act", 5), ("think", 10)),
)
_AT_ONCE: Final = 2
_MODULE: Final = "langgraft.benchmarks.acceptance.alfworld_worker"


@dataclass(frozen=True, slots=True)
class _Killed:
    """An episode that was killed and gone on with."""

    task: str
    places: Places
    deaths: int
    complaint: str
    """What went another way than in the undisturbed episode; empty: nothing."""


def measure(setting: Setting) -> list[Figure]:
    """Kill episodes of all six families at several places, of generated and of released games."""
    figures = [_figure(setting, "generated", _generated())]
    released = _released()
    if isinstance(released, str):
        promise = "A killed episode of a released game ends as an undisturbed one"
        return [*figures, Figure(promise, "no games here", released, "", None)]
    return [*figures, _figure(setting, "released", released)]


def _figure(setting: Setting, kind: str, tasks: Sequence[str]) -> Figure:
    setting.say(f"ALFWorld: {kind} games, killed in the middle of an episode")
    plans = PLACES[: setting.size(len(PLACES), 2 if kind == "generated" else 1)]
    folder = setting.work / kind
    wholes = {task: _undisturbed(folder, task) for task in tasks}
    cases = [(task, places) for task in tasks for places in plans]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        killed = list(pool.map(lambda case: _killed(folder, wholes, *case), cases))
    wrong = [f"{each.task} {each.places}: {each.complaint}" for each in killed if each.complaint]
    deaths = sum(each.deaths for each in killed)
    won = sum(whole["success"] for whole in wholes.values())
    return Figure(
        f"A killed episode of a {kind} game ends as an undisturbed one",
        f"ReAct with memory on {len(tasks)} {kind} games of {len(FAMILIES)} families ({won} won by"
        f" the script), SQLite checkpoints; {deaths} times SIGKILL, before the model answers or"
        " after the world moved; each time a new process makes the world again by its actions",
        share(len(killed) - len(wrong), len(killed), wrong) + " episodes",
        "all: the same steps, recalls, lessons, deltas and outcome",
        not wrong and won == len(tasks) and deaths == sum(len(each.places) for each in killed),
    )


def _generated() -> list[str]:
    return [f"alfworld-generated/{family}/0" for family in FAMILIES]


def _released() -> list[str] | str:
    """Name a game of each family, or say why there are none."""
    worlds = worlds_of("alfworld/")
    try:
        return [worlds.tasks(f"alfworld/{family}", "test")[0].id for family in FAMILIES]
    except LanggraftError as error:
        return str(error)


def _undisturbed(folder: Path, task: str) -> dict[str, Any]:
    place = folder / "whole" / task
    place.mkdir(parents=True)
    return play(task, place)


def _killed(
    folder: Path, wholes: Mapping[str, Mapping[str, Any]], task: str, places: Places
) -> _Killed:
    where = "-".join(f"{place}{number}" for place, number in places)
    place = folder / where / task
    place.mkdir(parents=True)
    for number, (name, turn) in enumerate(places):
        died = run(_command(place, task, name, str(turn)), environment=clean_environment())
        if died.code != -signal.SIGKILL:
            said = died.stderr.strip()[-200:] or "it ended"
            return _Killed(task, places, number, f"was not killed in {name} {turn}: {said}")
    ended = run(_command(place, task), environment=clean_environment())
    if ended.code:
        return _Killed(task, places, len(places), ended.stderr.strip()[-200:])
    return _Killed(task, places, len(places), _difference(json.loads(ended.stdout), wholes[task]))


def _command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", _MODULE, str(folder), *arguments]


def _difference(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    plain = json.loads(json.dumps(wanted))
    differing = sorted(key for key in {*got, *plain} if got.get(key) != plain.get(key))
    return f"other {', '.join(differing)}" if differing else ""
