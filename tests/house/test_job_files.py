"""Job files of clusters do what they say, as far as that can be seen without a cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import storms
import yaml
from chain_study import log_bytes
from memory_command import ran_here

from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.schedule import Shard

pytestmark = pytest.mark.matrix  # each starts processes for whole plans

JOBS = Path(__file__).resolve().parents[2] / "examples" / "many_machines"
SLURM = JOBS / "slurm_array.sh"
KUBERNETES: dict[str, Any] = yaml.safe_load((JOBS / "kubernetes_job.yaml").read_text())


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `langgraft` is a command."""
    command = tmp_path / "bin" / "langgraft"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m langgraft "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}


def ran(command: list[object], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*map(str, command)], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.usefixtures("no_figures")
def test_array_when_each_of_its_jobs_has_run_has_the_bytes_of_a_plain_run(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The number of shards is that of the array, and options go to the command."""
    text = SLURM.read_text()
    (last,) = re.findall(r"^#SBATCH --array=0-(\d+)$", text, re.MULTILINE)
    assert f"\nshards={int(last) + 1} " in text
    assert ran(["bash", "-n", SLURM], environment).returncode == 0
    plan, out = storms.write_plan(tmp_path / "plan.yaml", runs=1, items=1), tmp_path / "a folder"
    simulated = ("--model", "simulated", "--processes", "1")
    told = {**environment, "SLURM_ARRAY_TASK_ID": last}
    done = ran(["bash", SLURM, plan, out, *simulated], told)
    assert done.returncode == 0, done.stderr
    for index in range(int(last)):  # the others are told apart by their number alone
        shard = f"{index}/{int(last) + 1}"
        assert ran_here("run", plan, "--out", out, "--shard", shard, *simulated).returncode == 0
    plain = ran_here("run", plan, "--out", tmp_path / "plain", *simulated)
    assert plain.returncode == 0, plain.stderr
    assert log_bytes(out) == log_bytes(tmp_path / "plain")


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [(["plan", "out"], "to be sent with sbatch"), (["plan"], "a run directory"), ([], "a plan")],
)
def test_array_when_something_is_missing_says_so_and_runs_nothing(
    arguments: list[str], missing: str, environment: dict[str, str]
) -> None:
    """Nobody works on all shards by mistake."""
    environment.pop("SLURM_ARRAY_TASK_ID", None)
    done = ran(["bash", SLURM, *arguments], environment)
    assert done.returncode
    assert missing in done.stderr


def test_indexed_job_when_a_pod_runs_does_its_shard(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The command of a pod, with a folder in the place of its volume, does the part of its index."""
    job, template = KUBERNETES["spec"], KUBERNETES["spec"]["template"]["spec"]
    assert (KUBERNETES["apiVersion"], KUBERNETES["kind"]) == ("batch/v1", "Job")
    assert (job["completionMode"], template["restartPolicy"]) == ("Indexed", "Never")
    assert job["parallelism"] == job["completions"]
    (container,) = template["containers"]
    (volume,), (mount,) = template["volumes"], container["volumeMounts"]
    assert volume["name"] == mount["name"]
    shell, option, line = container["command"]
    plan, last = storms.write_plan(tmp_path / "plan.yaml", runs=1, items=1), job["completions"] - 1
    line = line.replace(mount["mountPath"], str(tmp_path)).replace(" demo ", f" {plan} ")
    told = {**environment, "JOB_COMPLETION_INDEX": str(last)}
    done = ran([shell, option, f"{line} --model simulated --processes 1"], told)
    assert done.returncode == 0, done.stderr
    assert f"shard {last}/{last + 1} is done" in done.stdout
    own = Shard(last, last + 1).runs(PlanLog(tmp_path / "demo").graph)
    written = [path.parent.name for path in (tmp_path / "demo").rglob("items.jsonl")]
    assert len(written) == len(own) > 0
