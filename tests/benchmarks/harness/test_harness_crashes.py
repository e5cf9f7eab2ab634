"""A plan killed anywhere ends with the same bytes once it has been run again."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from chain_study import chain_plan, log_bytes, run_chain
from warm_python import ran_script

from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.verify import Finding, verify_directory

SUPPORT = Path(__file__).parents[2] / "support"


def crash(out: Path, *arguments: str) -> tuple[int, list[str]]:
    """Return how many kills there were and what went wrong."""
    done = ran_script(SUPPORT / "crash_points.py", out, *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["tried"], found["problems"]


@pytest.mark.parametrize(
    ("mode", "stride", "least"),
    [
        pytest.param("before", 6, 15, marks=pytest.mark.kill),
        pytest.param("torn", 3, 10, marks=pytest.mark.kill),
        pytest.param("lost", 4, 20, marks=pytest.mark.kill),
        ("lost", 8, 7),
    ],
)
def test_plan_when_killed_at_writing_calls_then_ends_with_same_bytes(
    tmp_path: Path, mode: str, stride: int, least: int
) -> None:
    """Killed before, inside or with unsynced data lost at a write, a plan ends the same.

    Here at some of them; at each one in `acceptance.kill`.
    """
    tried, problems = crash(tmp_path / "crash", mode, str(stride))
    assert problems == []
    assert tried > least


@pytest.mark.kill
@pytest.mark.parametrize("seed", [1, 2])
def test_plan_when_killed_at_random_moments_then_ends_with_same_bytes(
    tmp_path: Path, seed: int
) -> None:
    """A plan that is killed twelve times and resumed each time ends like one left alone."""
    tried, problems = crash(tmp_path / "crash", "random", str(seed))
    assert problems == []
    assert tried == 12


PLAN = chain_plan(streams=1, items=2, probes=())
FILES = ("plan.yaml", "runs.jsonl", "manifest.json")
RUN_FILES = ("spec.json", "items.jsonl", "events.jsonl", "DONE.json")


def all_bytes(out: Path) -> dict[str, bytes]:
    """Return what every file of a directory holds."""
    files = (path for path in sorted(out.rglob("*")) if path.is_file())
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def stopped(out: Path) -> Finding | None:
    """Run the plan, and return what stops it, or is found afterwards."""
    before = all_bytes(out)
    try:
        asyncio.run(run_chain(out, PLAN))
    except RunDirectoryError as error:
        told = "" if all_bytes(out) == before else "something was changed: "
        return Finding(error.path, told + str(error))
    return next(iter(verify_directory(out)), None)


def follow(found: Finding, whole: bytes) -> None:
    """Do what a message says."""
    if "delete its folder" in found.message:
        shutil.rmtree(found.path.parent)
    elif "delete it" in found.message:
        found.path.unlink()
    else:
        assert "restore it" in found.message, found
        found.path.write_bytes(whole)


def cuts(data: bytes) -> list[int]:
    """Return where to cut: on both sides of each line's ends and of the whole, and at bytes in between."""
    ends = [0, *(place + 1 for place, byte in enumerate(data) if byte == ord("\n")), len(data)]
    near = {end + beside for end in ends for beside in (-2, -1, 0, 1)}
    return sorted(each for each in near | {*range(0, len(data), 35)} if 0 <= each < len(data))


@pytest.mark.kill
@pytest.mark.parametrize(
    ("marked", "name"),
    [*((True, each) for each in (*FILES, *RUN_FILES)), *((False, each) for each in RUN_FILES[:3])],
)
def test_plan_when_a_file_is_cut_at_any_byte_then_ends_with_same_bytes_or_says_what_to_do(
    tmp_path: Path, name: str, *, marked: bool
) -> None:
    """A plan goes on with what is left, or says what to do and changes nothing; doing so is enough.

    Cut are files of a whole plan, and of one whose second run is not marked yet.
    """
    out, copy = tmp_path / "out", tmp_path / "copy"
    asyncio.run(run_chain(out, PLAN))
    whole, graph = log_bytes(out), PlanLog(out).graph
    second, third = (run_folder(out, graph[f"0/{run}"]) for run in ("second", "third"))
    if not marked:
        (second / "DONE.json").unlink()
        shutil.rmtree(third)
    file = out / name if name in FILES else second / name
    data = file.read_bytes()
    for size in cuts(data):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(out, copy)
        cut = copy / file.relative_to(out)
        cut.write_bytes(data[:size])
        found = stopped(copy)
        if found is not None:
            assert found.path == cut or found.path.parent == cut.parent
            assert "\n" not in found.message
            assert "something was changed" not in found.message
            if size % 5:
                continue  # what to do is the same as at the bytes beside it
            follow(found, data)
            assert stopped(copy) is None, size
        assert log_bytes(copy) == whole, size
