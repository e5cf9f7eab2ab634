"""What a plan promises its agents is held against the machine, before a model is paid."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from mle_study import house_plan
from toy_competition import ID
from typer.testing import CliRunner

from langgraft._core.errors import InputError, RunDirectoryError, SandboxUnavailableError
from langgraft.benchmarks.mle.checking import hold
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.sandboxes import make_sandbox, weights_in
from langgraft.cli.app import app
from langgraft.environments.sandboxes.sandbox import MIB, Job, PythonProgram

DISK = {"workspace_on": "disk", "workspace": 64 * MIB, "file": 64 * MIB}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Return a folder of weights as libraries leave it: links to what was downloaded."""
    folder = tmp_path / "weights"
    for name in (
        "models--timm--net",
        "models--gpt2",
        "models--ill named--net",
        "models--no--files",
    ):
        (folder / "huggingface" / "hub" / name / "snapshots").mkdir(parents=True)
    for name in ("models--timm--net", "models--gpt2", "models--ill named--net"):
        at = folder / "huggingface" / "hub" / name
        (at / "blobs").mkdir()
        (at / "blobs" / "b10b").write_text("{}")
        (at / "snapshots" / "abc").mkdir()
        (at / "snapshots" / "abc" / "config.json").symlink_to("../../blobs/b10b")
    (folder / "torch" / "hub" / "checkpoints").mkdir(parents=True)
    (folder / "torch" / "hub" / "checkpoints" / "resnet50-0676ba61.pth").write_bytes(b"1" * 100)
    folder.chmod(0o755)
    return folder


def written(folder: Path, **changes: Any) -> Path:
    """Write a plan for the toy competition, whose data is there."""
    plan = house_plan(folder, memory=["off"])
    path = folder / "plan.yaml"
    fields = {
        **plan.model_dump(mode="json", exclude_defaults=True),
        "title": "Toy",
        "agents": [{"name": "tree", "steps": 3}],
        "study": "mle",
        "folders": [str(folder / "mine")],
        "data_dir": str(folder / "data"),
        "sandbox": "docker",
        **changes,
    }
    path.write_text(yaml.safe_dump(fields))
    return path


def checked(path: Path) -> tuple[int, Mapping[str, str], list[str]]:
    """Return the exit code of `preview --check`, what it says of each thing, and what fails."""
    shown = CliRunner().invoke(app, ["preview", str(path), "--check"])
    lines = [line for line in shown.output.splitlines() if line.startswith(("ok ", "FAILS"))]
    told = {line[6:].partition(": ")[0]: line[6:].partition(": ")[2] for line in lines}
    failing = [line[6:].partition(": ")[0] for line in lines if line.startswith("FAILS")]
    return shown.exit_code, told, failing


def test_check_when_all_is_there_then_says_what_was_found_and_succeeds(
    docker_image: str, tmp_path: Path, weights: Path
) -> None:
    """Packages are imported, the sample goes the way of a submission, disk and tokens are counted."""
    agents = [{"name": "tree", "steps": 3}]
    path = written(tmp_path, image=docker_image, weights=str(weights), limits=DISK, agents=agents)
    code, told, failing = checked(path)
    assert (code, failing) == (0, [])
    assert told["weights"] == "gpt2, resnet50-0676ba61.pth, timm/net"
    assert told["packages"] == "all 9 that agents are told of can be imported"
    assert "2 workspaces of 64 MiB at once on the engine's disk" in told["container"]
    assert told[f"sample of {ID}"].endswith("collected, and valid")
    assert told[f"data of {ID}"].startswith("prepared")
    assert "6 calls if nothing has to be asked again" in told["cost of tree"]
    assert "are free here" in told["disk"]


def test_check_when_something_is_missing_then_each_is_a_line_and_it_fails(
    docker_image: str, tmp_path: Path
) -> None:
    """A package, a version, memory of a larger machine, and a submission that is not taken out."""
    path = written(
        tmp_path,
        image=docker_image,
        packages=["torch 2.9", "numpy 1.26", "scikit-learn", "xgboost"],
        limits={"collected": 0, "memory": 1 << 50},
    )
    code, told, failing = checked(path)
    assert code == 1
    assert failing == ["machine", "packages", f"sample of {ID}"]
    assert "agents are told of torch, which the image" in told["packages"]
    assert "--requirements mle" in told["packages"]
    assert "told of numpy 1.26, and" in told["packages"]
    assert "xgboost" not in told["packages"].partition(";")[0]
    assert "promised 1,073,741,824 MiB of memory" in told["machine"]
    assert "is refused: " in told[f"sample of {ID}"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"packages": ["torch"]}, "agents are told of torch, which the image"),
        ({"gpus": 1}, "cannot give containers GPUs"),
        ({"limits": {"workspace_on": "disk", "workspace": 1 << 50}}, "its disk has"),
    ],
    ids=["package", "gpu", "disk"],
)
def test_run_when_a_promise_is_not_kept_then_nothing_is_begun(
    docker_image: str, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """One line from `langgraft run` itself, and no run directory."""
    out = tmp_path / "out"
    path = written(tmp_path, image=docker_image, **changes)
    with pytest.raises(SandboxUnavailableError) as refusal:
        CliRunner().invoke(app, ["run", str(path), "--out", str(out)], catch_exceptions=False)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not out.exists()


def test_run_when_the_disk_of_its_directory_is_full_then_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that could not even begin its log says so before a model is set up."""
    full = SimpleNamespace(total=10**9, used=10**9, free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    out = tmp_path / "deep" / "out"
    path = written(tmp_path, sandbox="subprocess")
    with pytest.raises(RunDirectoryError, match=r"out: its disk is full \(1,000 bytes are left\)"):
        CliRunner().invoke(app, ["run", str(path), "--out", str(out)], catch_exceptions=False)
    assert not out.parent.exists()


def test_run_when_nothing_is_promised_then_no_container_is_started_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What costs a second is asked only where it can be wrong."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    hold(house_plan(tmp_path, sandbox="docker"))


def test_weights_when_mounted_then_programs_find_them_and_change_nothing(
    docker_image: str, weights: Path
) -> None:
    """By the variables that libraries go by, offline, and read-only."""
    plan = MlePlan(title="", image=docker_image, weights=weights)
    program = """
import os
home = os.environ["HF_HOME"]
print(os.listdir(home + "/hub/models--timm--net/snapshots"), os.environ["HF_HUB_OFFLINE"])
print(open(home + "/hub/models--timm--net/snapshots/abc/config.json").read())
print(os.listdir(os.environ["TORCH_HOME"] + "/hub/checkpoints"))
open("weights/mine", "w")
"""
    with make_sandbox(plan, plan.limits, None) as sandbox:
        result = sandbox.run(Job(PythonProgram(program)))
    assert result.stdout == "['abc'] 1\n{}\n['resnet50-0676ba61.pth']\n"
    assert result.error is not None
    assert "Read-only file system" in result.error.message


@pytest.mark.parametrize("there", [False, True])
def test_weights_when_there_are_none_then_the_folder_is_named(tmp_path: Path, there: bool) -> None:
    """And how one is filled."""
    folder = tmp_path / "weights"
    if there:
        folder.mkdir()
    with pytest.raises(InputError, match="HF_HOME" if there else "is no folder"):
        weights_in(folder)
