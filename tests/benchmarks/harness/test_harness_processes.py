"""How a plan behaves as a process: signals, a second process, a full disk."""

import asyncio
import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chain_study import chain_plan, log_bytes, run_chain

from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.log import LogContent, LogWriter, PlanLog, encode_record, read_log
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


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    try:
        made = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        made = False
    if not made:
        pytest.skip("a tmpfs cannot be mounted here; the test of a file that cannot grow covers it")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def append_endlessly(writer: LogWriter) -> None:
    """Commit records until something fails."""
    for index in itertools.count():
        writer.append(encode_record(index, "item", {"text": "x" * 3_000}, ()))


def test_append_when_disk_is_full_then_record_is_taken_back(tiny_disk: Path) -> None:
    """On a full disk a commit fails with the path, and the records before it are whole."""
    path = tiny_disk / "items.jsonl"
    writer = LogWriter(path, LogContent((), b"", 0))
    with pytest.raises(RunDirectoryError, match=r"items\.jsonl: cannot commit .* No space left"):
        append_endlessly(writer)
    writer.close()
    content = read_log(path)
    assert len(content.records) > 0
    assert content.tail == 0
