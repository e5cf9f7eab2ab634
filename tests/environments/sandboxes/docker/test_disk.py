"""A workspace on the engine's disk: it takes no memory, and nobody fills the disk."""

from collections.abc import Iterator

import pytest
from docker import DockerClient
from docker_places import containers_of, settled

from langgraft._core.errors import SandboxUnavailableError
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.result_text import told
from langgraft.environments.sandboxes.sandbox import MIB, Command, Job, Limits, PythonProgram

FILL = """
import time
for number in range(1000):
    open(f"file{number}", "wb").write(bytes(8 << 20))
    time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def on_disk(limits: Limits) -> Limits:
    """Return limits with more workspace than memory."""
    return limits.model_copy(
        update={"workspace_on": "disk", "workspace": 300 * MIB, "file": 256 * MIB}
    )


@pytest.fixture(scope="module")
def sandbox(docker_image: str, on_disk: Limits) -> Iterator[DockerSandbox]:
    """Return a sandbox with such a workspace."""
    with DockerSandbox(docker_image, limits=on_disk, pool=1) as opened:
        yield opened


def test_workspace_on_disk_when_it_holds_more_than_the_memory_then_nobody_is_killed(
    sandbox: DockerSandbox, on_disk: Limits
) -> None:
    """Files in it are no memory; what is collected comes out as ever."""
    code = "f = open('large', 'wb')\nfor _ in range(240): f.write(bytes(1 << 20))\nopen('out', 'w').write('here')"
    assert on_disk.memory < 240 * MIB
    result = sandbox.run(Job(PythonProgram(code), collect=("out",)))
    assert result.ok
    assert result.files == {"out": b"here"}


def test_program_when_it_writes_beyond_the_workspace_then_is_stopped_and_told_so(
    sandbox: DockerSandbox, on_disk: Limits
) -> None:
    """As an agent reads it."""
    result = sandbox.run(Job(PythonProgram(FILL)))
    assert result.stopped == "disk"
    assert not result.ok
    assert "WORKSPACE FULL: it was stopped" in told(result, on_disk)
    assert "held more than 300 MiB" in told(result, on_disk)


def test_kernel_when_a_cell_filled_its_workspace_then_another_can_clear_up(
    sandbox: DockerSandbox,
) -> None:
    """Files stay, variables are gone, and there is room again."""
    with sandbox.kernel() as kernel:
        filled = kernel.execute(FILL)
        assert (filled.stopped, filled.kernel_lost) == ("disk", True)
        assert "file0" in kernel.run(Command("ls")).stdout
        assert kernel.run(Command("rm file*")).ok
        assert kernel.execute("open('small', 'wb').write(bytes(1 << 20))").ok


def test_volumes_when_programs_are_over_then_none_is_left(
    docker_image: str, on_disk: Limits, engine: DockerClient
) -> None:
    """Each goes with its container."""
    with DockerSandbox(docker_image, limits=on_disk, pool=0) as sandbox:
        sandbox.run(Job(PythonProgram("open('a', 'w')")))
        settled(sandbox)
        with sandbox.kernel():
            (container,) = containers_of(engine, sandbox)
            mounts = container.attrs["Mounts"]
            own = {mount["Name"] for mount in mounts if mount["Type"] == "volume"}
        assert own
    assert not own & {volume.id for volume in engine.volumes.list()}


def test_disk_when_it_has_no_room_for_a_workspace_then_nothing_is_run(
    docker_image: str, on_disk: Limits
) -> None:
    """One line that says how much there is."""
    huge = on_disk.model_copy(update={"workspace": 1 << 50})
    with (
        DockerSandbox(docker_image, limits=huge, pool=0) as sandbox,
        pytest.raises(SandboxUnavailableError, match=r"its disk has .* MiB left, and a workspace"),
    ):
        sandbox.run(Job(PythonProgram("print(1)")))
