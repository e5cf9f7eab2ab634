"""How a plan behaves as a process: signals, a second process, a full disk."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chain_study import log_bytes, run_chain
from storms import served, write_plan
from warm_python import Warm, started_script
from warm_python import started as command

from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.verify import verify_directory

pytestmark = pytest.mark.kill  # processes that are stopped

LONG = 600.0
"""Seconds that items take which are still under way when something is done to their process."""
SUPPORT = Path(__file__).parents[2] / "support"


def start(out: Path, seconds: float, manner: str = "polite", largest: int = 0) -> Warm:
    """Start a plan as a process, in which an item takes so many seconds."""
    return started_script(SUPPORT / "chain_process.py", out, seconds, manner, largest)


@contextmanager
def started(out: Path, manner: str = "polite", until: str = "run") -> Iterator[Warm]:
    """A process that has told of an event of the kind `until`, and is far from its end."""
    with start(out, 0 if manner == "deaf" else LONG, manner) as process:
        try:
            for line in process.stdout:
                if json.loads(line)["event"] == until:
                    break
            yield process
        finally:
            process.kill()


def finish(out: Path) -> dict[str, bytes]:
    """Run the plan to its end and return its logs."""
    assert asyncio.run(run_chain(out)).complete
    return log_bytes(out)


def test_process_when_interrupted_then_exits_with_130_and_resumes(tmp_path: Path) -> None:
    """Ctrl-C ends a plan with exit code 130, in order, and the rest is done later."""
    whole = finish(tmp_path / "whole")
    out = tmp_path / "interrupted"
    with started(out, until="item") as process:
        process.send_signal(signal.SIGINT)
        assert process.ended().returncode == 130
    log = PlanLog(out)
    assert 0 < log.n_done < log.n_planned
    assert verify_directory(out) == []
    assert finish(out) == whole


@pytest.mark.parametrize("until", ["plan", "item"])
def test_processes_when_all_are_interrupted_then_only_the_first_says_so(
    tmp_path: Path, until: str
) -> None:
    """A terminal sends Ctrl-C to all processes of a plan, also to those that are still loading."""
    words = ("run", "demo", "--limit", "12", "--json", "--processes", "2", "--out", tmp_path)
    with command(*words, apart=True, cold=until == "plan") as process:
        assert any(json.loads(line)["event"] == until for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said == "not finished; run the same command again to go on\n"
    assert verify_directory(tmp_path) == []


def test_process_when_interrupted_twice_then_ends_at_once(tmp_path: Path) -> None:
    """A second Ctrl-C ends the process even while an item keeps it busy."""
    with started(tmp_path / "out", "deaf", until="deaf") as process:
        while process.poll() is None:  # signals sent in one moment arrive as one
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
        assert process.returncode == -signal.SIGINT


def test_second_process_when_directory_is_in_use_then_refused(tmp_path: Path) -> None:
    """While one process runs a plan, another one is told so and changes nothing."""
    out = tmp_path / "out"
    with started(out), pytest.raises(RunDirectoryError, match="another process"):
        asyncio.run(run_chain(out))
    assert finish(out) == finish(tmp_path / "whole")


def test_process_when_a_file_cannot_grow_then_one_line_names_it_and_resuming_works(
    tmp_path: Path,
) -> None:
    """A write the system refuses half-way is taken back, named in one line, and made good."""
    out = tmp_path / "out"
    with start(out, 0, largest=3_200) as process:
        _, said = process.communicate()
    assert process.returncode == 2
    assert "File too large" in said
    assert str(out) in said
    assert said.count("\n") == 1
    assert verify_directory(out) == []
    assert finish(out) == finish(tmp_path / "whole")


BROKEN = {
    "blocks": (15, "No space left on device"),
    "inodes": (20, "No space left on device"),
    "served": (5, "(full|disk I/O error|No space left on device)"),
    "gone": (12, "mount"),
    "read-only": (2, "Read-only file system"),
}
"""What is broken, how often at least, and what the system says of it."""


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Break disks, all in one process, and return what came of each."""
    script = SUPPORT / "broken_disks.py"
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    apart = ["unshare", *as_root, "--mount"]
    try:
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted here; a file that cannot grow is tried above")
    except OSError:
        pytest.skip("there is no unshare; a file that cannot grow is tried above")
    base, calls = (
        tmp_path_factory.mktemp("disks"),
        tmp_path_factory.mktemp("served") / "calls.jsonl",
    )
    # A call that is slow because the machine is would be made again.
    plan = write_plan(calls.with_name("plan.yaml"), runs=1, items=1, call_seconds=600.0)
    with served(plan, "--call-log", calls) as url:
        done = subprocess.run(
            [*apart, sys.executable, script, base, plan, url, calls, *BROKEN],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("broken", BROKEN)
def test_plan_when_its_disk_breaks_then_says_what_to_do_and_goes_on_once_it_is_mended(
    disks: dict[str, Any], broken: str
) -> None:
    """Full in any place, gone or read-only: a line names the file and the remedy, and nothing is lost.

    That holds for the run directory, for the replies, spending and bank of a served model, and for
    calls: those under way may be made twice, and no others.
    """
    found, (least, said) = disks[broken], BROKEN[broken]
    assert found["problems"] == []
    assert found["tried"] >= least
    remedy = re.compile(f"^[^\n]*/[^\n]*: [^\n]*{said}[^\n]*(put that right|put it back)[^\n]*$")
    assert [line for line in found["said"] if not remedy.search(line)] == []
