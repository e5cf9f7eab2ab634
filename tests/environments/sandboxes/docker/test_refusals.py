"""What cannot be had is refused before a program runs, in words that help."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from docker_places import containers_of

from langgraft._core.errors import InputError, SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import Job, Limits, PythonProgram

HELLO = Job(PythonProgram("print('hello')"))


@pytest.fixture
def empty_image(engine: DockerClient) -> Iterator[str]:
    """Return an image with nothing in it."""
    file = io.BytesIO()
    tarfile.open(fileobj=file, mode="w").close()
    tag = "langgraft-test-empty:latest"
    engine.api.import_image_from_data(file.getvalue(), repository=tag)
    yield tag
    engine.images.remove(tag, force=True)


@pytest.fixture
def image_with_volume(engine: DockerClient, docker_image: str) -> Iterator[str]:
    """Return an image that wants a folder outside of every limit."""
    tag = "langgraft-test-volume:latest"
    container = engine.containers.create(docker_image)
    container.commit(*tag.split(":"), changes=["VOLUME /data"])
    container.remove()
    yield tag
    engine.images.remove(tag, force=True)


@pytest.mark.parametrize("name", ["langgraft-absent:latest", "http://127.0.0.1:1", "-1"])
def test_image_when_there_is_none_of_that_name_then_the_command_is_named(
    docker_image: str, name: str
) -> None:
    """A missing image is told with what makes one; so is what no image could be called."""
    with (
        DockerSandbox(name) as sandbox,
        pytest.raises(SandboxUnavailableError, match="`langgraft sandbox build`") as caught,
    ):
        sandbox.run(HELLO)
    assert name in str(caught.value)


def test_sandbox_when_it_was_closed_unused_then_no_engine_is_reached(docker_image: str) -> None:
    """What is closed opens nothing that nobody would close."""
    sandbox = DockerSandbox(docker_image)
    sandbox.close()
    with pytest.raises(SandboxUnavailableError, match="closed"):
        _ = sandbox.digest
    assert sandbox._engine is None


def test_image_when_it_has_no_python_then_that_is_said(empty_image: str) -> None:
    """An image that no supervisor can run in is told as such."""
    with (
        DockerSandbox(empty_image, pool=0) as sandbox,
        pytest.raises(SandboxUnavailableError, match="no `python3`"),
    ):
        sandbox.run(HELLO)


def test_image_when_it_declares_volumes_then_it_is_refused(image_with_volume: str) -> None:
    """No program gets a folder that is not bounded."""
    with (
        DockerSandbox(image_with_volume, pool=0) as sandbox,
        pytest.raises(SandboxUnavailableError, match="volumes, which no limit holds: /data"),
    ):
        sandbox.run(HELLO)


def test_gpus_when_the_engine_has_none_then_it_says_what_to_install(
    docker_image: str, engine: DockerClient
) -> None:
    """Asked for GPUs in vain, nothing is run without them silently, and nothing is left."""
    with DockerSandbox(docker_image, gpus="all", pool=0) as sandbox:
        with pytest.raises(SandboxUnavailableError, match="NVIDIA Container Toolkit") as caught:
            sandbox.run(HELLO)
        assert "leave `gpus` out" in str(caught.value)
        assert containers_of(engine, sandbox) == []


def test_runtime_when_the_engine_has_none_of_that_name_then_it_is_refused(
    docker_image: str,
) -> None:
    """A stronger isolation that is not there is not replaced by a weaker one."""
    with (
        DockerSandbox(docker_image, runtime="runsc-absent", pool=0) as sandbox,
        pytest.raises(SandboxUnavailableError, match="no runtime 'runsc-absent'"),
    ):
        sandbox.run(HELLO)


def test_controls_when_the_engine_warns_then_nothing_is_run(
    docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that an engine leaves out with a warning is as good as a refusal."""
    with DockerSandbox(docker_image, pool=0) as sandbox:
        api = sandbox._reached().client.api
        create = api.create_container_from_config

        def warning(config: object) -> dict[str, object]:
            made: dict[str, object] = create(config)  # type: ignore[no-untyped-call]
            return {**made, "Warnings": ["Your kernel does not support swap limit"]}

        monkeypatch.setattr(api, "create_container_from_config", warning)
        with pytest.raises(SandboxUnavailableError, match="does not support swap limit"):
            sandbox.run(HELLO)


def test_controls_when_the_container_differs_from_what_was_asked_then_nothing_is_run(
    docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What holds inside decides, not what was sent."""
    with DockerSandbox(docker_image, pool=0) as sandbox:
        api = sandbox._reached().client.api
        create = api.create_container_from_config

        def loosened(config: dict[str, dict[str, object]]) -> dict[str, object]:
            host = {**config["HostConfig"], "PidsLimit": 4096, "ReadonlyRootfs": False}
            made: dict[str, object] = create({**config, "HostConfig": host})  # type: ignore[no-untyped-call]
            return made

        monkeypatch.setattr(api, "create_container_from_config", loosened)
        with pytest.raises(SandboxUnavailableError) as caught:
            sandbox.run(HELLO)
    for words in ("PidsLimit is 4096", "pids is bounded by 4096", "root folder is not read-only"):
        assert words in str(caught.value)


def test_cpus_when_more_than_the_engine_has_then_all_it_has_are_granted(
    docker_image: str,
) -> None:
    """A bound that is never reached is no reason to refuse."""
    with DockerSandbox(docker_image, limits=Limits(cpus=64), pool=0) as sandbox:
        assert sandbox.run(HELLO).stdout == "hello\n"


def test_supervisor_when_it_cannot_begin_then_its_own_words_are_told(
    docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image whose Python lacks something is told by what that Python says."""
    with DockerSandbox(docker_image, pool=0, retries=0) as sandbox:
        sandbox.run(HELLO)
        broken = b"s%08d" % 13 + b"import absent"
        monkeypatch.setattr(sandbox._reached().opening, "_supervisor", broken)
        with pytest.raises(SandboxFailureError, match="No module named 'absent'"):
            sandbox.run(HELLO)


def test_pool_when_negative_then_it_is_refused(tmp_path: Path) -> None:
    """A slip in an option is told at once."""
    with pytest.raises(InputError, match="pool is -1"):
        DockerSandbox(pool=-1)


def test_inputs_when_a_folder_went_then_none_is_made_in_its_place(
    docker_image: str, limits: Limits, tmp_path: Path
) -> None:
    """Programs are not run without their data, and nothing appears on this machine."""
    folder = tmp_path / "with:colon"
    folder.mkdir(mode=0o755)
    with DockerSandbox(docker_image, limits=limits, inputs={"input": folder}, pool=0) as sandbox:
        assert sandbox.run(HELLO).ok
        folder.rmdir()
        with pytest.raises(SandboxUnavailableError, match="there no longer"):
            sandbox.run(HELLO)
    assert not folder.exists()
