"""What figures of sandboxes are made of works at any size; the figures themselves are measured."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from acceptance import sandbox_chaos
from acceptance.chaos_worker import ENDINGS, LIMITS, Errand, ending
from acceptance.figure import Setting
from acceptance.sandboxes import measure_speed

from langgraft.benchmarks.performance import environments
from langgraft.benchmarks.performance.environments import Paired, Times
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import ExecutionResult, ProgramError

FINE = ExecutionResult(0, "done 499500\n", "", duration=1.0)


# That of imports in a kernel, which takes longest, acceptance measures at reduced size too.
@pytest.mark.parametrize(
    "measure", [environments.fresh_over_floor, environments.first_instruction_over_floor]
)
def test_comparison_when_measured_then_both_sides_took_time(
    measure: Callable[..., Paired], docker_image: str
) -> None:
    """Each comparison runs at a small size and gives times, not guesses."""
    found = measure(docker_image, rounds=1)
    assert found.ours.median > 0
    assert found.floor.median > 0
    assert found.ratio == found.ours.median / found.floor.median


def test_kernel_cells_when_measured_then_took_time(docker_image: str) -> None:
    """A cell is timed there and back."""
    assert len(environments.kernel_cells(docker_image, rounds=3).values) == 3


def test_times_when_written_then_tell_median_quartiles_and_number() -> None:
    """No median is told without its spread and its n."""
    assert str(Times((0.1, 0.2, 0.3))) == "200.0 ms (100.0 to 300.0, n = 3)"
    assert str(Times((0.1,))) == "100.0 ms (100.0 to 100.0, n = 1)"


def test_programs_when_run_in_a_sandbox_then_end_as_they_are_named(docker_image: str) -> None:
    """The true ending of each program is known, or a storm could not tell what is mislabeled."""
    with DockerSandbox(docker_image, limits=LIMITS) as sandbox:
        found = [ending(sandbox.run(Errand(1, name, 0.0).job())) for name in ENDINGS]
    assert found == list(ENDINGS)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (FINE, "ok"),
        (ExecutionResult(0, "", "", duration=1.0), "printed ''"),
        (ExecutionResult(3, "", "", duration=1.0), "exit 3"),
        (ExecutionResult(137, "", "", duration=1.0, signal="SIGKILL"), "SIGKILL"),
        (ExecutionResult(137, "", "", duration=1.0, signal="SIGKILL", oom=True), "oom"),
        (ExecutionResult(137, "", "", duration=1.0, stopped="timeout"), "timeout"),
        (
            ExecutionResult(1, "", "", duration=1.0, error=ProgramError("ValueError", "no")),
            "ValueError",
        ),
    ],
)
def test_ending_when_a_result_says_how_then_is_named_by_it_alone(
    result: ExecutionResult, expected: str
) -> None:
    """A result that blames a kill from outside on the program is never taken for a true one."""
    assert ending(result) == expected


def test_errands_when_drawn_twice_with_one_seed_then_are_the_same() -> None:
    """What runs in a storm is decided by its seed, and every ending comes in every round."""
    first, second = sandbox_chaos.Errands(7), sandbox_chaos.Errands(7)
    drawn = [first.draw() for _ in range(2 * len(ENDINGS))]
    assert drawn == [second.draw() for _ in range(2 * len(ENDINGS))]
    assert sorted(one.ending for one in drawn[: len(ENDINGS)]) == sorted(ENDINGS)


def test_storm_when_no_engine_can_be_started_then_says_why_and_judges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dockerd, or without root, the promise is neither kept nor broken."""
    setting = Setting(tmp_path, tmp_path, reduced=True, say=print)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    (without_engine,) = sandbox_chaos.measure(setting)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (without_root,) = sandbox_chaos.measure(setting)
    assert without_engine.passed is without_root.passed is None
    assert "install Docker Engine" in without_engine.figure
    assert "root" in without_root.figure


def test_speed_when_no_engine_answers_then_says_why_and_judges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no engine, there is nothing to measure, and that is told in a line."""
    # docker-py leaves a UNIX socket that could not connect to the garbage collector.
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    setting = Setting(tmp_path, tmp_path, reduced=True, say=print)
    (figure,) = measure_speed(setting)
    assert figure.passed is None
    assert "no Docker engine answers" in figure.figure
