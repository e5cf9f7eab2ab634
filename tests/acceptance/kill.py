"""`kill -9` at random moments: what is left on disk is what an uninterrupted run leaves."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import crash_points
import yaml
from warm_python import Warm

from acceptance.command import clean_environment, command_line
from acceptance.figure import Figure, Setting, share
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.game_files import open_library

TESTS = "tests/cli/test_kill.py"
"""What kills a smaller plan."""
TESTS_OF_WORLDS = "tests/benchmarks/continual/test_pairs.py"
"""What cuts streams of a plan of two worlds in the middle."""
Started: TypeAlias = "subprocess.Popen[str] | Warm"
"""A command in a process of its own."""
BEYOND = 1.25
"""The latest moment of a kill, in units of the time until the last episode is committed."""


@dataclass
class Kills:
    """What happened to one plan that was killed again and again."""

    killed: int = 0
    while_playing: int = 0
    """Kills after which some but not all runs, or some items, were on disk."""
    directories: int = 0
    different: list[str] = field(default_factory=list)
    """Files that differ from those of the uninterrupted run."""
    findings: list[str] = field(default_factory=list)
    """What `verify` said."""
    files: int = 0
    """Files compared, over all directories."""


def begun(*words: object) -> "subprocess.Popen[str]":
    """Begin a command as a user does."""
    return subprocess.Popen(
        command_line(*words),
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def measure(setting: Setting) -> list[Figure]:
    """Kill a plan at seeded random moments and compare it with an uninterrupted run."""
    promise = "Logs and tables are byte-identical to an uninterrupted run's"
    if setting.reduced:
        # Two kills of such a plan are a test.
        return [Figure(promise, TESTS, "run with the tests", "", None)]
    plan, wanted = setting.work / "kill.yaml", 20
    plan.write_text(yaml.safe_dump(small_plan(10, 8)))
    setting.say(f"a plan killed {wanted} times")
    kills = kill_and_resume(plan, setting.work / "kill", kills=wanted, seed=2604)
    return [*kill_figures(promise, kills, wanted, ""), _killed_at_each_write(setting)]


def _killed_at_each_write(setting: Setting) -> Figure:
    """Kill a small plan before, inside and after each call that writes; some are tried by the tests."""
    tried, problems = 0, []
    for mode in ("before", "torn", "lost"):
        out = setting.work / f"writes-{mode}"
        script = [sys.executable, crash_points.__file__, str(out), mode, "1"]
        ended = subprocess.run(script, capture_output=True, text=True, check=True)
        found = json.loads(ended.stdout)
        tried += found["tried"]
        problems += found["problems"]
    return Figure(
        "A plan killed at any write ends with the same bytes",
        "SIGKILL before each writing call, in the middle of it, and with what was not synced lost",
        f"{tried} places, {len(problems)} of them otherwise",
        "0 otherwise",
        not problems,
    )


def measure_worlds(setting: Setting) -> list[Figure]:
    """Kill a plan of both pairs at seeded random moments; compare with an uninterrupted run."""
    promise = "A study of two worlds leaves the bytes of an uninterrupted run"
    if setting.reduced:
        return [Figure(promise, TESTS_OF_WORLDS, "run with the tests", "", None)]
    plan, wanted = setting.work / "alfworld-kill.yaml", 12
    world = world_at_hand()
    plan.write_text(yaml.safe_dump(two_worlds(world, 6, 5)))
    setting.say(f"a plan of {world} and babyai killed {wanted} times")
    kills = kill_and_resume(plan, setting.work / "alfworld-kill", kills=wanted, seed=2608)
    return kill_figures(promise, kills, wanted, f"{world} and babyai, ")


def kill_figures(promise: str, kills: Kills, wanted: int, what: str) -> list[Figure]:
    """Say what kills left: the files, and what `verify` finds.

    Args:
        promise: What is promised of the files.
        kills: What happened.
        wanted: How many kills there should have been.
        what: What was run, such as `two worlds, `; or nothing.
    """
    how = (
        f"`langgraft run`, {what}SIGKILL at {kills.killed} seeded moments ({kills.while_playing}"
        f" between the first and the last commit), in {kills.directories} directories, each"
        " re-issued until complete"
    )
    same = kills.files - len(kills.different)
    return [
        Figure(
            promise,
            how,
            share(same, kills.files, kills.different) + " files",
            "all",
            kills.killed == wanted and kills.while_playing > 0 and not kills.different,
        ),
        Figure(
            "`verify` finds nothing",
            f"`langgraft verify` in {kills.directories} directories",
            "; ".join(kills.findings) or "no finding",
            "no finding",
            not kills.findings,
        ),
    ]


def small_plan(train_items: int, test_items: int) -> dict[str, Any]:
    """Return a continual plan on real BabyAI, both directions, two memories and a control."""
    return {
        "study": "continual",
        "title": "Killed",
        "train_items": train_items,
        "test_items": test_items,
        "runs": 1,
        "baseline_runs": 1,
        "conditions": [
            {"name": "raw", "provider": "trajectory"},
            {"name": "agg", "provider": "insight"},
        ],
        "controls": [{"control": "shuffled", "of": "agg"}],
    }


def world_at_hand() -> str:
    """Return the world of the released games, or of generated ones where there are none."""
    try:
        return open_library().world
    except SettingsError:
        return "alfworld-generated"


def two_worlds(world: str, train_items: int, test_items: int) -> dict[str, Any]:
    """Return a continual plan with a pair of households and one of grids."""
    return {
        "study": "continual",
        "title": "Killed in two worlds",
        "train_items": train_items,
        "test_items": test_items,
        "runs": 1,
        "baseline_runs": 1,
        "pairs": [
            {
                "name": "households",
                "A": f"{world}/pick_and_place",
                "B": f"{world}/pick_clean_then_place",
            },
            {"name": "grids", "A": "babyai/action_obj_door", "B": "babyai/find_obj"},
        ],
        "conditions": [
            {"name": "raw", "provider": "trajectory"},
            {"name": "agg", "provider": "insight", "settings": {"granularity": "aggregate"}},
        ],
        "controls": [{"control": "random-own", "of": "raw", "transfer": True}],
    }


def three_tasks(train_items: int, test_items: int) -> dict[str, Any]:
    """Return a plan of three tasks in sequence in both worlds, played without memory, too."""
    families = {
        "grid": ("action_obj_door", "pickup_loc", "find_obj"),
        "home": ("pick_and_place", "pick_two_obj", "pick_clean_then_place"),
    }
    worlds = {"grid": "babyai", "home": "alfworld-generated"}
    return {
        **small_plan(train_items, test_items),
        "title": "Killed in sequences of three tasks",
        "pairs": [
            {"name": name, **dict(zip("ABC", (f"{worlds[name]}/{e}" for e in each), strict=True))}
            for name, each in families.items()
        ],
        "conditions": [{"name": "raw", "provider": "trajectory"}],
        "controls": [{"control": "placebo", "of": "raw"}],
        "sequences": ["A>B>C"],
        "online_baseline": True,
    }


def kill_and_resume(
    plan: Path,
    work: Path,
    *,
    kills: int,
    seed: int,
    begin: Callable[..., Started] = begun,
    undisturbed: Callable[..., tuple[int, str, str]] | None = None,
) -> Kills:
    """Run a plan undisturbed, then again under kills, and compare what they leave.

    The moment of each kill is drawn from 0 to a little beyond the time the uninterrupted run
    took to its last episode. A killed plan is re-issued, and killed again, until all episodes
    are committed; it then ends by itself, and the next directory begins while kills are left.
    Where `undisturbed` ran the other one, how long it took says less of those that are killed: they
    are, at the latest, as soon as all episodes are committed, so that no directory is played in vain.

    Args:
        plan: A plan file.
        work: Folder for the run directories.
        kills: How many kills.
        seed: Of the moments.
        begin: Begins a command in a process of its own.
        undisturbed: Runs a command that is not killed, returns its exit code and what it said;
            `None`: as those are that are.
    """
    chance = random.Random(seed)
    whole = work / "whole"
    run_whole = partial(_ended, begin) if undisturbed is None else undisturbed
    alike = undisturbed is None
    longest = BEYOND * _seconds_to_last_episode(plan, whole, run_whole, loading=alike)
    expected = results(whole)
    report = Kills()
    while report.killed < kills:
        out = work / f"killed-{report.directories}"
        while report.killed < kills and not _complete(out):
            seconds = chance.uniform(0, longest)
            if _kill_after(seconds, begin, plan, out, at_the_end=not alike):
                report.killed += 1
                report.while_playing += _under_way(out)
        report.directories += 1
        _finish(begin, plan, out, report, expected)
    return report


def results(out: Path) -> dict[str, bytes]:
    """Return the logs and tables of a run directory."""
    paths = [*out.glob("runs/*/items.jsonl"), *out.glob("report/**/*.csv")]
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(paths)}


def _ended(begin: Callable[..., Started], *words: object) -> tuple[int, str, str]:
    """Run a command to its end."""
    with begin(*words) as process:
        printed, said = process.communicate()
        return process.wait(), printed, said


def _seconds_to_last_episode(
    plan: Path, out: Path, run: Callable[..., tuple[int, str, str]], *, loading: bool
) -> float:
    """Run the plan; return how long it took from its start, or from when everything was loaded."""
    started = time.time()
    code, _, said = run("run", plan, "--out", out)
    if code != 0:
        msg = f"the uninterrupted run ended with {code}: {said.strip()}"
        raise RuntimeError(msg)
    if not loading:
        started = (out / "manifest.json").stat().st_mtime
    return max(path.stat().st_mtime for path in out.glob("runs/*/DONE.json")) - started


def _kill_after(
    seconds: float, begin: Callable[..., Started], plan: Path, out: Path, *, at_the_end: bool
) -> bool:
    """Start the plan and kill it, if need be as its episodes end; return whether it was still running."""
    until = time.monotonic() + seconds
    with begin("run", plan, "--out", out) as process:
        while process.poll() is None:
            if at_the_end and not (out / "manifest.json").exists():
                until = time.monotonic() + seconds  # it still loads
            if time.monotonic() >= until or (at_the_end and _complete(out)):
                process.kill()  # SIGKILL
                return True
            time.sleep(0.01)  # until the next look
    return False


def _complete(out: Path) -> bool:
    if not (out / "runs.jsonl").is_file():
        return False
    planned = len((out / "runs.jsonl").read_bytes().splitlines())
    return planned == len([*out.glob("runs/*/DONE.json")])


def _under_way(out: Path) -> bool:
    return not _complete(out) and any(p.stat().st_size for p in out.glob("runs/*/items.jsonl"))


def _finish(
    begin: Callable[..., Started],
    plan: Path,
    out: Path,
    report: Kills,
    expected: Mapping[str, bytes],
) -> None:
    code, _, said = _ended(begin, "run", plan, "--out", out)
    if code != 0:
        report.findings.append(f"{out.name}: exit code {code}: {said.strip()[-200:]}")
    found = results(out)
    names = sorted({*expected, *found})
    report.files += len(names)
    report.different += [
        f"{out.name}/{name}" for name in names if found.get(name) != expected.get(name)
    ]
    code, printed, _ = _ended(begin, "verify", out)
    if code != 0:
        report.findings.append(f"{out.name}: {printed.strip()[-200:]}")
