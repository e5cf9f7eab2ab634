"""Run plans on disks that are full, read-only, or gone, and again once that is put right.

Run in a mount namespace of its own (`unshare --mount`), so that nobody else sees the disks and none is
left behind. Arguments: an empty folder; a plan, the URL of its models and the server's call log; and what
to break, one after the other. Prints a JSON object of each: how often something was broken, what was said
of it, and what went wrong.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

from chain_study import ChainPlan, ChainStudy, chain_plan, log_bytes, run_chain

from langgraft._core.errors import InfrastructureError, LanggraftError
from langgraft.benchmarks.harness.budget import SPENT, CallBudget, Caps
from langgraft.benchmarks.harness.models import plan_budget, run_models
from langgraft.benchmarks.harness.progress import PlanOutcome
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.studies import choose

PAGE = 4096
IN_FLIGHT = 4
"""Calls at once."""

Run: TypeAlias = Callable[[Path], PlanOutcome]
"""Runs a plan in a directory."""


def mount(*arguments: object) -> None:
    """Call `mount`."""
    subprocess.run(["mount", *map(str, arguments)], check=True)


@contextmanager
def small_disk(path: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory."""
    path.mkdir(exist_ok=True)
    mount("-t", "tmpfs", "-o", options, "tmpfs", path)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


class Report:
    """What is to be told.

    Args:
        base: An empty folder.
        run: Runs a plan in a directory.
    """

    def __init__(self, base: Path, run: Run) -> None:
        self.base = base
        self._run = run
        run(base / "whole")
        self.reference = log_bytes(base / "whole")
        self.tried = 0
        self.said: list[str] = []
        self.problems: list[str] = []

    def broken(self, work: Callable[[], PlanOutcome]) -> bool:
        """Run a plan on something broken; return whether it was stopped."""
        try:
            outcome = work()
        except LanggraftError as error:
            self.said.append(str(error))
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            self.problems.append(f"{type(error).__name__}: {error}")
        else:
            if outcome.complete:
                return False
            self.said += [problem.message for problem in outcome.problems]
        self.tried += 1
        return True

    def mended(self, out: Path, what: str) -> None:
        """Check what was left, go on, and compare with a whole run."""
        try:
            if (out / "manifest.json").exists():
                self.problems += [
                    f"{what}: {each}" for each in verify_directory(out) if not each.interrupted
                ]
            self._run(out)
        except LanggraftError as error:
            self.problems.append(f"{what}: could not go on: {error}")
            return
        if log_bytes(out) != self.reference:
            self.problems.append(f"{what}: other bytes")
        self.problems += [f"{what}: {each}" for each in verify_directory(out)]


def chained(plan: ChainPlan, study: ChainStudy | None = None) -> Run:
    """Return what runs a plan of chains."""
    return lambda out: asyncio.run(run_chain(out, plan, study, concurrency=2))


def full(base: Path, option: str, sizes: Iterable[int], run: Run) -> Report:
    """Run plans on disks of growing size, until one has room enough; then make room for each."""
    report = Report(base, run)
    for size in sizes:
        with small_disk(base / f"{size}", f"{option}={size}") as disk:
            if not report.broken(lambda: run(disk / "out")):
                return report
            mount("-o", "remount,size=64m,nr_inodes=1000", disk)
            report.mended(disk / "out", f"{option}={size}")
    report.problems.append("no disk was large enough")
    return report


def served_to(url: str, plan: Path) -> Run:
    """Return what runs a plan of a served model: replies, what is spent and banks lie on the disk, too."""

    def run(out: Path) -> PlanOutcome:
        prepared = choose(str(plan), model=None, base_url=url, limit=None)
        budget = plan_budget(prepared.plan, out, Caps(calls=10_000))
        with run_models(prepared.study, prepared.plan, out, budget) as model_for:
            running = run_plan(
                prepared,
                out,
                model_for=model_for,
                store=f"sqlite:{out.parent}/banks.sqlite",
                concurrency=IN_FLIGHT,
            )
            return asyncio.run(running)

    return run


def served_models(base: Path, plan: Path, url: str, log: Path) -> Report:
    """Run plans of a served model on full disks: a call is paid twice only if it was under way."""
    run = served_to(url, plan)
    # At first each file in turn is the one that cannot be begun, later one that grows.
    growing = [100_000 * 1.5**step for step in range(4)] + [10**6, 3 * 10**6, 9 * 10**6]
    sizes = [round(size) // PAGE * PAGE for size in growing]
    report = full(base, "size", sizes, run)
    calls = len(log.read_text("utf-8").splitlines())
    run(base / "again")
    needed = len(log.read_text("utf-8").splitlines()) - calls
    most = needed * (report.tried + 2) + IN_FLIGHT * report.tried
    if calls > most:
        report.problems.append(f"{calls} calls, where {most} are enough")
    return report


def gone(base: Path) -> Report:
    """Take the disk of a run directory away before each item in turn, and put it back."""
    plan = chain_plan(streams=2, items=2, probes=())
    report = Report(base, chained(plan))
    for number in range(6 * plan.items):
        disk, place = base / f"disk-{number}", base / f"place-{number}"
        left = count()

        def take_away(_run: str, _item: str) -> None:
            if next(left) == number:  # noqa: B023 - called here
                subprocess.run(["umount", "--lazy", place], check=True)  # noqa: B023 - called here

        disk.mkdir()
        place.mkdir()
        mount("--bind", disk, place)
        run = chained(plan, ChainStudy(take_away))
        if not report.broken(lambda: run(place / "out")):  # noqa: B023 - called here
            report.problems.append(f"{number}: nobody noticed that the disk is gone")
        if beside := [str(each.relative_to(place)) for each in place.rglob("*")]:
            report.problems.append(f"{number}: written beside the disk: {beside}")
        mount("--bind", disk, place)
        report.mended(place / "out", f"{number}")
    return report


def read_only(base: Path) -> Report:
    """Look at a plan under way that can only be read, and try to go on with it."""

    def stop(_run: str, item: str) -> None:
        if item == "item-1":
            msg = "the network is away"
            raise InfrastructureError(msg)

    plan = chain_plan(streams=1, items=3)
    report = Report(base, chained(plan))
    disk = base / "disk"
    disk.mkdir()
    mount("--bind", disk, disk)
    chained(plan, ChainStudy(stop))(disk / "out")
    budget = CallBudget(path=disk / "out" / SPENT)
    budget.reserve(100)
    budget.close()
    mount("-o", "remount,bind,ro", disk)
    for name in ("out", "new"):
        report.broken(lambda: chained(plan)(disk / name))  # noqa: B023 - called here
    for command in ("status", "verify"):
        done = subprocess.run(
            [sys.executable, "-m", "langgraft", command, disk / "out"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            report.problems.append(f"{command}: {done.stderr}")
    mount("-o", "remount,bind,rw", disk)
    report.mended(disk / "out", "read-only")
    return report


def main() -> None:
    """Break what is asked for."""
    base, plan, url, log, *broken = sys.argv[1:]
    os.environ.setdefault("OPENAI_API_KEY", "none")
    told = {}
    for what in broken:
        (Path(base) / what).mkdir()
        if what == "served":
            report = served_models(Path(base) / what, Path(plan), url, Path(log))
        else:
            report = broke(Path(base) / what, what)
        told[what] = {"tried": report.tried, "said": report.said, "problems": report.problems}
    sys.stdout.write(json.dumps(told))


def broke(base: Path, what: str) -> Report:
    """Break something, in a folder that is empty."""
    chains = chained(chain_plan(streams=1, items=3, probes=(2,)))
    match what:
        case "blocks":
            return full(base, "size", range(PAGE, 100 * PAGE, PAGE), chains)
        case "inodes":
            return full(base, "nr_inodes", range(1, 100), chains)
        case "gone":
            return gone(base)
        case _:
            return read_only(base)


if __name__ == "__main__":
    main()
