"""A sandbox on the real engine, and a client to look at its containers from outside."""

from collections.abc import Iterator

import docker
import pytest
from docker import DockerClient

from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import MIB, Limits


@pytest.fixture(scope="session")
def limits() -> Limits:
    """Return limits that are soon reached."""
    return Limits(
        seconds=300,
        memory=192 * MIB,
        cpus=1,
        pids=64,
        workspace=48 * MIB,
        tmp=8 * MIB,
        shm=8 * MIB,
        file=32 * MIB,
        output=8000,
        flood=20 * MIB,
    )


@pytest.fixture(scope="session")
def engine(docker_image: str) -> Iterator[DockerClient]:
    """Return a client of the engine."""
    client = docker.from_env(timeout=60)
    yield client
    client.close()


@pytest.fixture(scope="session")
def sandbox(docker_image: str, limits: Limits) -> Iterator[DockerSandbox]:
    """Return a sandbox that many tests use, none of which ends more than a program."""
    with DockerSandbox(docker_image, limits=limits, pool=1) as sandbox:
        yield sandbox
