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

import pytest
from chain_study import chain_plan, log_bytes, run_chain

from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.verify import verify_directory

pytestmark = pytest.mark.kill  # processes that are stopped

PAUSE = 0.05


def start(
    out: Path, pause: float, manner: str = "polite", largest: int = 0
) -> subprocess.Popen[str]:
    """Start a plan as a process."""
    script = Path(__file__).parents[2] / "support" / "chain_process.py"
    command = [sys.executable, str(script), str(out), str(pause), manner, str(largest)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def started(
    out: Path, pause: float, manner: str = "polite", until: str = "run"
) -> Iterator[subprocess.Popen[str]]:
    """A process that has told of an event of the kind `until`."""
    with start(out, pause, manner) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if json.loads(line)["event"] == until:
                    break
            yield process
        finally:
            process.kill()


def finish(out: Path) -> dict[str, bytes]:
    """Run the plan to its end and return its logs."""
    assert asyncio.run(run_chain(out, chain_plan(pause=PAUSE))).complete
    return log_bytes(out)


def test_process_when_interrupted_then_exits_with_130_and_resumes(tmp_path: Path) -> None:
    """Ctrl-C ends a plan with exit code 130, in order, and the rest is done later."""
    whole = finish(tmp_path / "whole")
    out = tmp_path / "interrupted"
    with started(out, PAUSE, until="item") as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
    log = PlanLog(out)
    assert 0 < log.n_done < log.n_planned
    assert verify_directory(out) == []
    assert finish(out) == whole


@pytest.mark.parametrize("until", ["plan", "item"])
def test_processes_when_all_are_interrupted_then_only_the_first_says_so(
    tmp_path: Path, until: str
) -> None:
    """A terminal sends Ctrl-C to all processes of a plan, also to those that are still loading."""
    command = [sys.executable, "-m", "langgraft", "run", "demo", "--limit", "3", "--json"]
    with subprocess.Popen(
        [*command, "--processes", "2", "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert any(json.loads(line)["event"] == until for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "not finished; run the same command again to go on\n"
    assert verify_directory(tmp_path) == []


def test_process_when_interrupted_twice_then_ends_at_once(tmp_path: Path) -> None:
    """A second Ctrl-C ends the process even while an item keeps it busy."""
    with started(tmp_path / "out", PAUSE, "deaf", until="deaf") as process:
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
    with started(out, PAUSE), pytest.raises(RunDirectoryError, match="another process"):
        asyncio.run(run_chain(out, chain_plan(pause=PAUSE)))
    assert finish(out) == finish(tmp_path / "whole")


def test_process_when_a_file_cannot_grow_then_one_line_names_it_and_resuming_works(
    tmp_path: Path,
) -> None:
    """A write the system refuses half-way is taken back, named in one line, and made good."""
    out = tmp_path / "out"
    with start(out, PAUSE, largest=3_200) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "File too large" in said
    assert str(out) in said
    assert said.count("\n") == 1
    assert verify_directory(out) == []
    assert finish(out) == finish(tmp_path / "whole")


@pytest.mark.parametrize(
    ("broken", "least", "said"),
    [
        ("blocks", 15, "No space left on device"),
        ("inodes", 20, "No space left on device"),
        ("served", 8, "(full|disk I/O error|No space left on device)"),
        ("gone", 12, "mount"),
        ("read-only", 2, "Read-only file system"),
    ],
)
def test_plan_when_its_disk_breaks_then_says_what_to_do_and_goes_on_once_it_is_mended(
    tmp_path: Path, broken: str, least: int, said: str
) -> None:
    """Full in any place, gone or read-only: a line names the file and the remedy, and nothing is lost.

    That holds for the run directory, for the replies, spending and bank of a served model, and for
    calls: those under way may be made twice, and no others.
    """
    script = Path(__file__).parents[2] / "support" / "broken_disks.py"
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    apart = ["unshare", *as_root, "--mount"]
    try:
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted here; a file that cannot grow is tried above")
    except OSError:
        pytest.skip("there is no unshare; a file that cannot grow is tried above")
    done = subprocess.run(
        [*apart, sys.executable, script, tmp_path, broken],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["problems"] == []
    assert found["tried"] >= least
    remedy = re.compile(f"^[^\n]*/[^\n]*: [^\n]*{said}[^\n]*(put that right|put it back)[^\n]*$")
    assert [line for line in found["said"] if not remedy.search(line)] == []
