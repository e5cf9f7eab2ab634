"""Controls that do not hold are found, one by one, on either version of cgroups."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from langgraft.environments.sandboxes.docker.controls import Wish
from langgraft.environments.sandboxes.docker.opening import failures
from langgraft.environments.sandboxes.sandbox import Limits

LIMITS = Limits()


def mount(path: str, size: int | None = None, *, writable: bool = True) -> dict[str, Any]:
    """Return a mount as the probe reports it: a tmpfs where it has a size."""
    if size is None:
        return {"path": path, "kind": "ext4", "options": ["ro"], "size": 1, "writable": False}
    options = ["rw", "nosuid", "nodev"]
    return {"path": path, "kind": "tmpfs", "options": options, "size": size, "writable": writable}


VERSION_1: dict[str, Any] = {
    "python": [3, 11],
    "pid": 1,
    "ids": [10001] * 7,
    "status": {
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0000000000000000"),
        "NoNewPrivs": "1",
        "Seccomp": "2",
    },
    "interfaces": [],
    "mounts": [
        mount("/"),
        mount("/workspace", LIMITS.workspace),
        mount("/tmp", LIMITS.tmp),
        mount("/dev/shm", LIMITS.shm),
        mount("/workspace/input"),
    ],
    "limits": {"core": [0, 0], "nofile": [4096, 4096], "fsize": [LIMITS.file, LIMITS.file]},
    "memory": str(LIMITS.memory),
    "memory_and_swap": str(LIMITS.memory),
    "swap": None,
    "pids": "256",
    "cpu": ["200000", "100000"],
}
VERSION_2 = {**VERSION_1, "memory_and_swap": None, "swap": "0", "cpu": ["200000 100000", None]}


def found(report: dict[str, Any], *, foreign: bool = False) -> list[str]:
    """Return what is found wrong."""
    runtime = "runsc" if foreign else None
    inputs = {"input": Path("data")}
    return failures(report, Wish("image", "id", LIMITS, cpus=2, inputs=inputs, runtime=runtime))


@pytest.mark.parametrize("report", [VERSION_1, VERSION_2], ids=["v1", "v2"])
def test_failures_when_all_holds_then_there_are_none(report: dict[str, Any]) -> None:
    """A container as it should be passes."""
    assert found(report) == []


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("pid",), 7, "process 7"),
        (("ids",), [10001, 0], "run as"),
        (("status", "CapBnd"), "00000000a80425fb", "capabilities"),
        (("status", "NoNewPrivs"), "0", "gain rights"),
        (("status", "Seccomp"), "0", "system calls"),
        (("interfaces",), ["eth0"], "network: eth0"),
        (("mounts", 0, "options"), ["rw"], "root folder"),
        (("mounts", 1, "size"), 1 << 40, "/workspace holds"),
        (("mounts", 2, "options"), ["rw", "nodev"], "/tmp is not nosuid"),
        (("mounts", 3, "kind"), "ext4", "/dev/shm is no tmpfs"),
        (("mounts", 4, "options"), ["rw"], "/workspace/input is not mounted read-only"),
        (("mounts", 4, "writable"), True, "more can be written to"),
        (("limits", "core"), [-1, -1], "limit core"),
        (("memory",), "9223372036854771712", "memory is bounded by"),
        (("memory",), None, "memory is not bounded"),
        (("memory_and_swap",), str(2 * LIMITS.memory), "memory_and_swap is bounded by"),
        (("pids",), "max", "pids is bounded by max"),
        (("cpu",), ["-1", "100000"], "processor time"),
        (("cpu",), ["max 100000", None], "processor time"),
        (("cpu",), ["400000", "100000"], "4 processors"),
        (("swap",), "max", "swap is max"),
        (("python",), [3, 7], "3.7 is too old"),
    ],
)
def test_failures_when_a_control_does_not_hold_then_it_is_named(
    path: tuple[str | int, ...], value: object, words: str
) -> None:
    """Whatever is missing is told, and nothing else."""
    report = deepcopy(VERSION_1)
    place: Any = report
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (failure,) = found(report)
    assert words in failure


def test_failures_when_a_mount_inside_an_input_can_be_written_then_it_is_named() -> None:
    """An engine may make the folder read-only and leave what is mounted in it as it was."""
    inside = {**mount("/workspace/input/disk"), "options": ["rw"]}
    report = {**VERSION_1, "mounts": [*VERSION_1["mounts"], inside]}
    assert found(report) == ["/workspace/input/disk is not mounted read-only"]


def test_failures_when_a_runtime_of_its_own_shows_no_cgroups_then_that_is_accepted() -> None:
    """What a chosen runtime keeps to itself is not held against it; what it shows is."""
    unseen = dict.fromkeys(("memory", "memory_and_swap", "swap", "pids"))
    report = {**VERSION_1, **unseen, "cpu": [None, None], "interfaces": ["eth0"]}
    assert found(report, foreign=True) == ["there is a network: eth0"]
