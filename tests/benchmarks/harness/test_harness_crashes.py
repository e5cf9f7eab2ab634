"""A plan killed anywhere ends with the same bytes once it has been run again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[2] / "support"


def crash(out: Path, *arguments: str) -> tuple[int, list[str]]:
    """Return how many kills there were and what went wrong."""
    command = [sys.executable, str(SUPPORT / "crash_points.py"), str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found["tried"], found["problems"]


@pytest.mark.parametrize(
    ("mode", "stride", "least"),
    [
        pytest.param("before", 1, 60, marks=pytest.mark.kill),
        pytest.param("torn", 1, 30, marks=pytest.mark.kill),
        pytest.param("lost", 1, 60, marks=pytest.mark.kill),
        ("lost", 8, 7),
    ],
)
def test_plan_when_killed_at_writing_calls_then_ends_with_same_bytes(
    tmp_path: Path, mode: str, stride: int, least: int
) -> None:
    """Killed before, inside or with unsynced data lost at any write, a plan ends the same."""
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
