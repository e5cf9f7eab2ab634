"""`SimulatedEngineer` in the real graphs, with real programs in the real sandbox."""

from pathlib import Path

import pytest
from engineer_cases import competition_of
from scientist_cases import Case

from langgraft.benchmarks.simulated import SimulatedEngineer
from langgraft.environments.sandboxes import DockerSandbox, Limits
from langgraft.graphs import build_chain_agent, build_mlab_agent
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.workbench.limits import RunLimits
from langgraft.nodes.workbench.log import read_log, steps_of

CHECKS = ("validate_submission", "Validate Submission")


@pytest.mark.parametrize("build", [build_chain_agent, build_mlab_agent])
def test_run_when_it_knows_all_ends_with_a_valid_submission(
    build: object, cases: dict[str, Case], tmp_path: Path, docker_image: str
) -> None:
    """It looks, writes programs that run, has the submission checked, and finishes."""
    assert build in (build_chain_agent, build_mlab_agent)
    competition, artifacts = competition_of(cases["kinds"], tmp_path), MemoryArtifacts()
    inputs = {"input": competition.public_dir}
    with DockerSandbox(image=docker_image, limits=Limits(cpus=1), inputs=inputs) as sandbox:
        agent = (build_chain_agent if build is build_chain_agent else build_mlab_agent)(
            SimulatedEngineer(ignorance=0),
            competition=competition,
            sandbox=sandbox,
            artifacts=artifacts,
            limits=RunLimits(steps=7),
            seconds=60,
        )
        out = agent.invoke({"episode_id": "run"}, {"recursion_limit": 200})
    steps = steps_of(read_log(artifacts, out["log"]))
    assert out["ended"] == "finished"
    assert out["submission"]
    assert not any(step.failed for step in steps)
    assert any(step.executed and step.metric is not None for step in steps)
    assert [step.submission for step in steps if step.action in CHECKS][-1] == "valid"
