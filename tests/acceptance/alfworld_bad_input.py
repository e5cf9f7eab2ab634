"""ALFWorld and bad input: replies, damaged games, missing data, other versions than were meant."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from acceptance.alfworld_damage import measure_damage
from acceptance.alfworld_replies import measure_replies
from acceptance.command import Ended, clean_environment, run
from acceptance.figure import Figure, Setting, share
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld import GeneratedALFWorld

_AT_ONCE: Final = 2
"""Processes."""


def measure(setting: Setting) -> list[Figure]:
    """Give bad replies, bad files, bad names, no data and other versions."""
    return [
        *measure_replies(setting),
        *measure_damage(setting),
        _names(),
        _no_data(setting),
        *_versions(setting),
    ]


# Names -------------------------------------------------------------------------------------------


def _names() -> Figure:
    ids = (
        "", "alfworld", "alfworld-generated/pick/0", "babyai/find_obj/0", "alfworld/pick_and_place/0",
        "alfworld-generated/pick_and_place/300", "alfworld-generated/pick_and_place/-1",
        "alfworld-generated/pick_and_place/007", "alfworld-generated/pick_and_place/\u0661",
        "alfworld-generated/pick_and_place/../0", "alfworld-generated/pick_and_place/\ud83d",
    )  # fmt: skip
    wrong = [ascii(each) for each in ids if not _refused(each)]
    return Figure(
        "A task that there is not is refused in one line",
        ", ".join(ascii(each) for each in ids),
        share(len(ids) - len(wrong), len(ids), wrong),
        "all",
        not wrong,
    )


def _refused(task_id: str) -> bool:
    try:
        GeneratedALFWorld()(task_id)
    except SettingsError as error:
        return "\n" not in str(error)
    return False


# What is there, and what is installed -------------------------------------------------------------

_PLAY: Final = """
import sys
for name in sys.argv[2:]:
    sys.modules[name] = None
from langgraft._core.errors import LanggraftError
from langgraft.environments.alfworld import ALFWorld, GeneratedALFWorld
try:
    worlds = GeneratedALFWorld() if sys.argv[1] == "generated" else ALFWorld()
    kind = "alfworld-generated" if sys.argv[1] == "generated" else "alfworld"
    episode = worlds(worlds.tasks(kind + "/pick_clean_then_place", "test")[0].id)
    shown = [episode.reset().observation]
    shown += [episode.step(command).observation for command in episode.game.walkthrough]
    print(repr(shown))
except LanggraftError as error:
    print(type(error).__name__ + ":", error)
"""


def _played(kind: str, *absent: str, **variables: str) -> Ended:
    environment = {**clean_environment(), **variables}
    for name in ("ALFWORLD_DATA", "LANGGRAFT_DATA"):
        if name not in variables:
            environment.pop(name, None)
    return run([sys.executable, "-c", _PLAY, kind, *absent], environment=environment)


def _no_data(setting: Setting) -> Figure:
    setting.say("ALFWorld: no data, no packages, other versions")
    empty, file = setting.work / "empty", setting.work / "file"
    empty.mkdir()
    file.write_text("no games")
    cases: dict[str, dict[str, str]] = {
        "neither variable set": {},
        "an empty LANGGRAFT_DATA": {"LANGGRAFT_DATA": str(empty)},
        "an empty ALFWORLD_DATA": {"ALFWORLD_DATA": str(empty)},
        "an ALFWORLD_DATA that is not there": {"ALFWORLD_DATA": str(empty / "none")},
        "an ALFWORLD_DATA that is a file": {"ALFWORLD_DATA": str(file)},
    }
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ended = pool.map(lambda variables: _played("released", **variables), cases.values())
    wrong = []
    for what, done in zip(cases, ended, strict=True):
        lines = done.stdout.splitlines()
        named = ("SettingsError", "GameError")
        if done.code or done.stderr or len(lines) != 1 or not lines[0].startswith(named):
            wrong.append(f"{what} ({(done.stdout + done.stderr).strip()[-200:]})")
    return Figure(
        "Without games it is said in one line what to do",
        "; ".join(cases),
        share(len(cases) - len(wrong), len(cases), wrong),
        "all",
        not wrong,
    )


@dataclass(frozen=True, slots=True)
class _Other:
    """Another installation, and what must come of it."""

    what: str
    wanted: str
    installed: tuple[tuple[str, str], ...] = ()
    """Packages, and the versions that are to be found."""
    absent: tuple[str, ...] = ()
    """Modules that cannot be imported."""


OTHERS: Final = (
    _Other("alfworld 0.3.3", "SettingsError", installed=(("alfworld", "0.3.3"),)),
    _Other("alfworld 0.5.0", "SettingsError", installed=(("alfworld", "0.5.0"),)),
    _Other(
        "textworld 1.6.2",
        "the same text, and one line in the log",
        installed=(("textworld", "1.6.2"),),
    ),
    _Other("no textworld", "MissingExtraError", absent=("textworld",)),
    _Other("no fast_downward", "MissingExtraError", absent=("fast_downward",)),
    _Other("no alfworld", "MissingExtraError", absent=("alfworld", "alfworld.agents")),
)


def _versions(setting: Setting) -> list[Figure]:
    """Play where other versions are found, or none; what is played is the same or refused."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # The first has nothing else installed, and nothing absent.
        usual, *ended = pool.map(partial(_played_with, setting.work), (_Other("", ""), *OTHERS))
    pairs = zip(OTHERS, ended, strict=True)
    return [_version_figure(other, done, usual.stdout) for other, done in pairs]


def _played_with(work: Path, other: _Other) -> Ended:
    folder = work / f"with {other.what}"
    for package, version in other.installed:
        about = folder / f"{package}-{version}.dist-info" / "METADATA"
        about.parent.mkdir(parents=True)
        about.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    variables = {"PYTHONPATH": str(folder)} if other.installed else {}
    return _played("generated", *other.absent, **variables)


def _version_figure(other: _Other, done: Ended, expected: str) -> Figure:
    same = done.stdout == expected and expected.startswith("[")
    said_once = len(done.stderr.splitlines()) == 1
    refused = done.stdout.startswith(f"{other.wanted}:") and not done.stderr
    one_line = refused and len(done.stdout.splitlines()) == 1
    played = same and said_once
    said = done.stderr if same else done.stdout + done.stderr
    return Figure(
        f"ALFWorld with {other.what}",
        "a generated game played in a process that finds this",
        ("the same text; " if same else "") + " ".join(said.split())[:300],
        other.wanted,
        one_line if other.wanted.endswith("Error") else played,
    )
