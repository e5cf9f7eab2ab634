"""What shows that the battery's programs really try: where they may, they succeed."""

import time
from pathlib import Path

import docker
from toy_competition import write_competition

from langgraft.environments.competitions.attempts import attempt
from langgraft.environments.competitions.grading import grade_submission
from langgraft.environments.competitions.layout import read_competition
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.sandboxes import DockerSandbox, PythonProgram
from langgraft.environments.sandboxes.hostile.attacks import SUCCEEDED, source
from langgraft.environments.sandboxes.hostile.surroundings import Surroundings


def test_network_attack_when_there_is_a_network_gets_through(docker_image: str) -> None:
    """A container with the host's network reaches the listener, and the host notices."""
    client = docker.from_env()
    program = f"{source('attempts.py')}\n{source('network.py')}".replace(
        "from attempts import attempt, done", ""
    )
    try:
        with Surroundings() as surroundings:
            told = client.containers.run(
                docker_image,
                ["python3", "-c", program],
                environment=surroundings.told,
                network_mode="host",
                remove=True,
            ).decode()
            assert f"{SUCCEEDED}connect to 127.0.0.1" in told
            while not surroundings.contacts:
                time.sleep(0.01)
            assert any("listener was reached" in line for line in surroundings.harm())
    finally:
        client.close()


def test_program_when_it_forges_scores_is_graded_by_its_submission_alone(
    docker_image: str, tmp_path: Path
) -> None:
    """A claim of gold with a submission that is none: no score, no medal, not valid."""
    competition = read_competition(write_competition(tmp_path / "mine"), tmp_path / "data")
    prepare_competition(competition)
    with DockerSandbox(docker_image, pool=0) as sandbox:
        made = attempt(PythonProgram(source("forged_scores.py")), competition, sandbox)
    assert made.result.ok
    assert made.submission is not None
    assert made.submission_valid is False
    path = tmp_path / "submission.csv"
    path.write_bytes(made.submission)
    report = grade_submission(path, competition)
    assert report.score is None
    medals = (report.any_medal, report.gold_medal, report.above_median)
    assert not report.valid_submission
    assert not any(medals)
