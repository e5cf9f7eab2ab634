"""What a workspace on disk is found to hold: all of it, once, and none of what is mounted in it."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from langgraft.environments.sandboxes.inside.watching import Disk

MIB = 1 << 20


def look(disk: Disk, seconds: float = 300.0) -> str:
    """Look until something is found, or one look is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := disk.over():
            return found
        if disk._look is None:
            return ""
    raise AssertionError("the look has no end")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """See this process's children alone, as in a container: other tests share the disk, and /proc."""
    listdir = os.listdir

    def ours(path: str) -> list[str]:
        if path != "/proc":
            return listdir(path)
        found: list[str] = []
        for task in Path("/proc/self/task").glob("*/children"):
            with contextlib.suppress(OSError):  # a thread that ends just now
                found += task.read_text().split()
        return found

    monkeypatch.setattr(os, "listdir", ours)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace of 3 MiB, with a mount of 8 more."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(bytes(MIB))
    (tmp_path / "two").write_bytes(bytes(2 * MIB))
    (tmp_path / "input" / "deep").mkdir(parents=True)
    (tmp_path / "input" / "deep" / "data").write_bytes(bytes(8 * MIB))
    return tmp_path


@pytest.mark.parametrize(("most", "found"), [(4 * MIB, ""), (2 * MIB, "disk")])
def test_disk_when_the_workspace_holds_more_than_it_may_says_so(
    workspace: Path, most: int, found: str
) -> None:
    """What is mounted belongs to somebody else."""
    assert look(Disk(str(workspace), most, ["input"])) == found
    assert look(Disk(str(workspace), 4 * MIB, [])) == "disk"


def test_disk_when_a_file_has_several_names_counts_it_once(workspace: Path) -> None:
    """A checkpoint that is linked as the best one takes no room twice."""
    for number in range(10):
        os.link(workspace / "two", workspace / f"again{number}")
    assert look(Disk(str(workspace), 4 * MIB, ["input"])) == ""


def test_disk_when_a_file_is_sparse_counts_what_it_takes(workspace: Path) -> None:
    """And not what it claims to hold."""
    with (workspace / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert look(Disk(str(workspace), 4 * MIB, ["input"])) == ""


def test_disk_when_files_are_empty_counts_them(workspace: Path) -> None:
    """They use up the disk's list of files."""
    for number in range(300):
        (workspace / f"empty{number}").touch()
    assert look(Disk(str(workspace), 4 * MIB, ["input"])) == "disk"


def test_disk_when_a_deleted_file_is_held_open_counts_it_once(workspace: Path) -> None:
    """It has no name to find it by, and takes room until its last holder ends."""
    hold = "import os, sys; f = open('gone', 'wb'); f.write(bytes(2 << 20)); f.flush()"
    hold += "; os.unlink('gone'); os.dup(f.fileno()); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], cwd=workspace, stdin=-1, stdout=-1
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert look(Disk(str(workspace), 6 * MIB, ["input"])) == ""
        assert look(Disk(str(workspace), 4 * MIB, ["input"])) == "disk"
        holder.communicate()
    assert look(Disk(str(workspace), 4 * MIB, ["input"])) == ""


def test_disk_when_a_program_begins_with_too_much_lets_it_clear_up(workspace: Path) -> None:
    """It is ended where it writes more, not where it looks, or removes something."""
    disk = Disk(str(workspace), 2 * MIB, ["input"])
    assert look(disk) == "disk"
    disk.begin()
    assert look(disk) == ""
    disk.begin()
    (workspace / "three").write_bytes(bytes(MIB))
    assert look(disk) == "disk"
    for name in ("two", "three"):
        (workspace / name).unlink()
    disk.begin()
    assert look(disk) == ""
    disk.begin()
    (workspace / "four").write_bytes(bytes(2 * MIB))
    assert look(disk) == "disk"


@pytest.mark.parametrize(("written", "found"), [(0, "full"), (3 * MIB, "disk")])
def test_disk_when_it_is_nearly_full_blames_the_program_only_for_what_it_wrote(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, written: int, found: str
) -> None:
    """What nobody can find in the workspace, and is gone from the disk, is its own where it is much."""
    left = 100 * MIB

    def disk_of(_: int) -> SimpleNamespace:
        return SimpleNamespace(
            f_bavail=left, f_frsize=1, f_blocks=1000 * MIB, f_files=0, f_favail=0
        )

    monkeypatch.setattr(os, "fstatvfs", disk_of)
    disk = Disk(str(workspace), 2 * MIB, ["input", "a", "two"])
    disk.begin()
    assert look(disk) == ""
    left = 50 * MIB + written - 1
    disk.begin()
    left = 50 * MIB - 1
    assert disk.over() == found
