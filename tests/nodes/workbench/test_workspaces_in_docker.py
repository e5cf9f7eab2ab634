"""Live workspaces where programs are kept apart: memory runs out, and containers die."""

import docker
from docker_places import containers_of, kill
from workbench_cases import HandRun, output, workspaces

from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import MIB, Limits


def test_run_when_memory_ends_and_the_container_dies_then_its_state_is_that_of_the_log(
    docker_image: str,
) -> None:
    """A cell out of memory loses the variables alone; a dead container is built anew from the log."""
    limits = Limits(memory=256 * MIB, workspace=64 * MIB, flood=16 * MIB)
    engine = docker.from_env()
    with DockerSandbox(docker_image, limits=limits) as place:
        run = HandRun(workspaces(place))
        run.cell("x = 1; y = open('kept.txt', 'w').write('kept')")
        flood = run.bash("head -c 1000000000 /dev/zero | tr '\\0' 'a'")
        assert "TOO MUCH OUTPUT" in flood.text
        for container in containers_of(engine, place):
            kill(container)
        assert output(run.cell("print(open('kept.txt').read(), x)")) == "kept 1"
        lost = run.cell("import sys; x = bytearray(10**9)")
        assert (lost.lost, lost.oom, lost.exception) == ("kernel", True, "MemoryError")
        run.cell("z = 2")
        other = run.elsewhere()
        seen = other.cell("print(open('kept.txt').read(), 'x' in globals(), z)")
        assert output(seen) == "kept False 2"
        other.spaces.close()
        run.spaces.close()
    engine.close()
