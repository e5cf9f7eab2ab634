"""ALFWorld killed in the middle of an episode: another process goes on from the checkpoint."""

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from acceptance.alfworld_worker import play
from acceptance.command import run, worker_environment
from acceptance.figure import Figure, Setting, share
from langgraft._core.errors import LanggraftError
from langgraft.environments.alfworld import ALFWorld, GeneratedALFWorld, TreeLibrary, open_library
from langgraft.environments.alfworld.game_files import GAME_FILE
from langgraft.environments.alfworld.games import FAMILIES

Places = tuple[tuple[str, int], ...]
"""Where one process after the other kills itself."""

PLACES: Final[Sequence[Places]] = (
    (("think", 5),),
    (("act", 4),),
    (("think", 0), ("act", 2), ("act", 5), ("think", 10)),
)
_AT_ONCE: Final = 2
_MODULE: Final = "acceptance.alfworld_worker"


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
    families = list(FAMILIES)
    tasks = [f"alfworld-generated/{each}/0" for each in families[: setting.size(6, 2)]]
    figures = [_figure(setting, "generated", tasks, GeneratedALFWorld())]
    try:
        library, tasks = _written(setting.work / "games", families[-setting.size(6, 1) :])
    except LanggraftError as error:
        promise = "A killed episode of a released game ends as an undisturbed one"
        return [*figures, Figure(promise, "no games here", str(error), "", None)]
    return [*figures, _figure(setting, "released", tasks, ALFWorld(library))]


def _figure(setting: Setting, kind: str, tasks: Sequence[str], worlds: ALFWorld) -> Figure:
    setting.say(f"ALFWorld: {kind} games, killed in the middle of an episode")
    folder = setting.work / kind
    wholes = {task: _undisturbed(folder, task, worlds) for task in tasks}
    cases = [
        (task, _within(places, wholes[task]))
        for turn, task in enumerate(tasks)
        for places in ((PLACES[turn % 2],) if setting.reduced else PLACES)
    ]
    environment = worker_environment() | {"ALFWORLD_DATA": str(setting.work / "games")}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        killed = list(pool.map(lambda case: _killed(folder, wholes, environment, *case), cases))
    wrong = [f"{each.task} {each.places}: {each.complaint}" for each in killed if each.complaint]
    deaths = sum(each.deaths for each in killed)
    won = sum(whole["success"] for whole in wholes.values())
    return Figure(
        f"A killed episode of a {kind} game ends as an undisturbed one",
        f"ReAct with memory on {len(tasks)} {kind} games, a family each ({won} won by"
        f" the script), SQLite checkpoints; {deaths} times SIGKILL, before the model answers or"
        " after the world moved; each time a new process makes the world again by its actions",
        share(len(killed) - len(wrong), len(killed), wrong) + " episodes",
        "all: the same steps, recalls, lessons, deltas and outcome",
        not wrong and won == len(tasks) and deaths == sum(len(each.places) for each in killed),
    )


def _within(places: Places, whole: Mapping[str, Any]) -> Places:
    """Leave out what comes after an episode's end: the shortest have ten replies."""
    replies = len(whole["steps"]) - 1
    return tuple((name, turn) for name, turn in places if turn < replies)


def _written(root: Path, families: Sequence[str]) -> tuple[TreeLibrary, list[str]]:
    """Write a game of each family as a tree: a process reads it sooner than all the games."""
    library = open_library()
    tasks = []
    for family in families:
        name = library.names(family, "test")[0]
        place = root / "json_2.1.2" / "valid_seen" / f"{FAMILIES[family]}-A-None-B-1" / name
        place.mkdir(parents=True)
        content = json.dumps(library.find(family, name).as_data())
        (place / GAME_FILE).write_text(content, encoding="utf-8")
        tasks.append(f"alfworld/{family}/{name}")
    return TreeLibrary(root), tasks


def _undisturbed(folder: Path, task: str, worlds: ALFWorld) -> dict[str, Any]:
    place = folder / "whole" / task
    place.mkdir(parents=True)
    return play(task, place, worlds=worlds)


def _killed(
    folder: Path,
    wholes: Mapping[str, Mapping[str, Any]],
    environment: dict[str, str],
    task: str,
    places: Places,
) -> _Killed:
    where = "-".join(f"{place}{number}" for place, number in places)
    place = folder / where / task
    place.mkdir(parents=True)
    for number, (name, turn) in enumerate(places):
        died = run(_command(place, task, name, str(turn)), environment=environment)
        if died.code != -signal.SIGKILL:
            said = died.stderr.strip()[-200:] or "it ended"
            return _Killed(task, places, number, f"was not killed in {name} {turn}: {said}")
    ended = run(_command(place, task), environment=environment)
    if ended.code:
        return _Killed(task, places, len(places), ended.stderr.strip()[-200:])
    return _Killed(task, places, len(places), _difference(json.loads(ended.stdout), wholes[task]))


def _command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", _MODULE, str(folder), *arguments]


def _difference(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    plain = json.loads(json.dumps(wanted))
    differing = sorted(key for key in {*got, *plain} if got.get(key) != plain.get(key))
    return f"other {', '.join(differing)}" if differing else ""
