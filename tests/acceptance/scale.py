"""Run directories of ten thousand runs and a hundred thousand items, and Ctrl-C, in figures.

Seconds are of CPU, user and system, of a process that did it all: others may keep the machine busy.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import large_directories
import yaml
from large_directories import RUNS_A_REPLICATE, make_directory

from acceptance.command import Cost, clean_environment, command_line, cost
from acceptance.figure import Figure, Setting
from langgraft.benchmarks.studies import plan_path

ITEMS: Final = 100
"""Of a test run, where the report is measured."""
FLAT: Final = 64
"""Megabytes that ten times as many items may add: their names stand in the plan."""
INTERRUPTED: Final = 3.0
"""Seconds until a plan has ended after Ctrl-C."""


def measure(setting: Setting) -> list[Figure]:
    """Measure `status`, `verify`, running and the report at size."""
    replicates = setting.size(358, 4)
    many, large, demo = (setting.work / name for name in ("many", "large", "demo"))
    setting.say(f"a directory of {replicates * RUNS_A_REPLICATE:,} runs")
    make_directory(many, replicates, 10)
    for number, mark in enumerate(sorted(many.glob("runs/*/DONE.json"))):
        if number % 3 == 0:
            mark.unlink()
    status = _measured("status", many)
    _measured("run", "demo", "--out", demo, *(["--limit", "2"] * setting.reduced))
    verified = _measured("verify", demo)
    judged = not setting.reduced
    return [
        Figure(
            "`status` tells at once how far thousands of runs are",
            f"`langgraft status`, {replicates * RUNS_A_REPLICATE:,} runs, a third of them not marked",
            f"{status.seconds:.2f} s of CPU",
            "< 2 s",
            status.seconds < 2 if judged else None,
        ),
        Figure(
            "`verify` of the demo takes a moment",
            "`langgraft verify`" + ", two items a run" * setting.reduced,
            f"{verified.seconds:.2f} s of CPU",
            "< 2 s",
            verified.seconds < 2 if judged else None,
        ),
        _flat(setting),
        *_report(setting, large),
    ]


def _flat(setting: Setting) -> Figure:
    """Compare the memory of runs of many items with that of ten times as many."""
    most = setting.size(100_000, 5_000)
    script = [sys.executable, str(Path(large_directories.__file__))]
    peaks = [
        _successful(cost([*script, str(setting.work / f"one-{size}"), str(size)])).megabytes
        for size in (most // 10, most)
    ]
    grown = peaks[1] - peaks[0]
    return Figure(
        "Memory stays flat while items are committed",
        f"peak memory of a process that runs one run of {most // 10:,} and of {most:,} items",
        f"{peaks[0]:.0f} and {peaks[1]:.0f} MB",
        f"{FLAT} MB more at the most",
        grown < FLAT,
    )


def _report(setting: Setting, out: Path) -> list[Figure]:
    replicates = setting.size(47, 1)
    setting.say(f"a directory of {replicates * 2_160:,} items")
    outcome = make_directory(out, replicates, ITEMS)
    items = sum(run.done for run in outcome.runs)
    measured = _measured("report", out)
    seconds, peak = measured.seconds, measured.megabytes
    judged = not setting.reduced
    how = f"`langgraft report`, {items:,} items in {len(outcome.runs):,} runs, drawn"
    promise = "The report of a large study takes a minute and little memory"
    return [
        Figure(promise, how, f"{seconds:.0f} s of CPU", "< 60 s", seconds < 60 if judged else None),
        Figure(promise, how, f"{peak:.0f} MB", "< 500 MB", peak < 500 if judged else None),
    ]


def measure_interrupts(setting: Setting) -> list[Figure]:
    """Measure how long plans take to end after Ctrl-C, which a terminal sends to all their processes."""
    coding = yaml.safe_load(plan_path("demo-mle-chain").read_text("utf-8"))
    plan = setting.work / "sandbox.yaml"
    plan.write_text(yaml.safe_dump({**coding, "sandbox": "subprocess"}))
    return [
        _interrupted(setting, "a plan whose agents run programs", plan, "--processes", "1"),
        _interrupted(setting, "a plan in two processes", "demo", "--processes", "2"),
        _interrupted(
            setting, "two processes that are loading", "demo", "--processes", "2", at="plan"
        ),
    ]


def _interrupted(setting: Setting, what: str, *words: object, at: str = "item") -> Figure:
    taken = []
    for number in range(setting.size(3, 1)):
        out = setting.work / f"{what.replace(' ', '-')}-{number}"
        with subprocess.Popen(
            command_line("run", *words, "--out", out, "--json"),
            env=clean_environment(),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            next(line for line in process.stdout if json.loads(line)["event"] == at)
            began = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)
            process.stdout.read()
        taken.append(time.monotonic() - began)
    return Figure(
        f"Ctrl-C ends {what} within three seconds",
        f"`langgraft run`, SIGINT to its process group after the first `{at}`; wall time",
        ", ".join(f"{each:.1f} s" for each in taken),
        f"< {INTERRUPTED:g} s",
        max(taken) < INTERRUPTED if not setting.reduced else None,
    )


def _measured(*words: object) -> Cost:
    """Run a command of langgraft, and measure it.

    Raises:
        RuntimeError: It failed.
    """
    return _successful(cost(command_line(*words)))


def _successful(measured: Cost) -> Cost:
    if measured.ended.code:
        raise RuntimeError(measured.ended.stderr)
    return measured
