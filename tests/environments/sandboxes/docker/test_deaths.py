"""Who is to blame when a container dies, and what is left of it."""

import asyncio
import gc
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from docker import DockerClient
from docker.models.containers import Container
from docker_places import (
    containers_of,
    ending,
    kill,
    kill_process,
    remove,
    settled,
    wait_until_running,
)
from urllib3.exceptions import ProtocolError
from warm_python import started_code

from langgraft._core.errors import SandboxFailureError
from langgraft.environments.sandboxes.docker import DockerSandbox, remove_orphans
from langgraft.environments.sandboxes.docker.container import Container as PlaceInContainer
from langgraft.environments.sandboxes.places import Place
from langgraft.environments.sandboxes.sandbox import Job, Limits, PythonProgram

HELD = Job(
    PythonProgram(
        "import os, time\nwhile not os.path.exists('input/go'): time.sleep(0.05)\nprint('done')"
    ),
    seconds=3600,
)
ENDLESS = Job(PythonProgram("import time\ntime.sleep(3600)"), seconds=3600)
HELLO = Job(PythonProgram("print('hello')"))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry at once."""
    monkeypatch.setattr("langgraft.environments.sandboxes.supervised._PAUSE", 0.0)


def test_run_when_its_container_is_ended_from_outside_then_another_takes_over(
    docker_image: str, limits: Limits, engine: DockerClient, tmp_path: Path
) -> None:
    """What is not the program's doing does not show in its result."""
    folder = tmp_path / "input"
    folder.mkdir()
    folder.chmod(0o755)

    def last(container: Container) -> None:
        kill_process(container)
        (folder / "go").touch()  # the next one comes to its end

    ways = kill, remove, last
    with DockerSandbox(
        docker_image, limits=limits, inputs={"input": folder}, pool=0, retries=len(ways)
    ) as sandbox:
        sandbox.run(HELLO)
        settled(sandbox)
        with ending(engine, sandbox, *ways) as ended:
            result = sandbox.run(HELD)
    assert len(ended) == len(ways)
    assert (result.stdout, result.ok, result.oom) == ("done\n", True, False)


def test_run_when_containers_are_ended_again_and_again_then_the_engine_is_blamed(
    docker_image: str, limits: Limits, engine: DockerClient
) -> None:
    """When the retries are used up, it is a failure of the sandbox and no result."""
    with DockerSandbox(docker_image, limits=limits, pool=0, retries=1) as sandbox:
        sandbox.run(HELLO)
        settled(sandbox)
        with (
            ending(engine, sandbox, kill, kill) as ended,
            pytest.raises(SandboxFailureError, match="exit code 137"),
        ):
            sandbox.run(ENDLESS)
    assert len(ended) == 2


@pytest.mark.parametrize("how", [kill, remove])
def test_pool_when_a_waiting_container_dies_then_no_program_notices(
    docker_image: str, limits: Limits, engine: DockerClient, how: Callable[[Container], None]
) -> None:
    """A container that died while it waited is replaced, without a retry of anything."""
    with DockerSandbox(docker_image, limits=limits, pool=1, retries=0) as sandbox:
        sandbox.run(HELLO)
        settled(sandbox)
        assert sandbox._reached().pool.wait_until_full(300)
        (waiting,) = containers_of(engine, sandbox)
        ((_, place),) = sandbox._reached().pool._ready
        how(waiting)
        while place.alive():  # until the engine has told of it
            time.sleep(0.02)
        assert sandbox.run(HELLO).stdout == "hello\n"


def test_run_when_over_then_its_container_is_gone(
    sandbox: DockerSandbox, engine: DockerClient
) -> None:
    """A container serves one program."""
    for _ in range(3):
        sandbox.run(HELLO)
    assert sandbox._reached().pool.wait_until_full(300)
    settled(sandbox)
    assert len(containers_of(engine, sandbox)) == 1


def test_close_when_the_pool_is_filling_then_nothing_is_left(
    docker_image: str, limits: Limits, engine: DockerClient
) -> None:
    """Closing at any time removes all."""
    sandbox = DockerSandbox(docker_image, limits=limits, pool=3)
    sandbox.run(HELLO)
    label = sandbox._reached().opening.label
    sandbox.close()
    assert engine.containers.list(all=True, filters={"label": label}) == []


def test_sandbox_when_nobody_closes_it_then_its_containers_go_with_it(
    docker_image: str, limits: Limits, engine: DockerClient
) -> None:
    """Forgetting to close costs nothing but the time until it is collected."""
    sandbox = DockerSandbox(docker_image, limits=limits, pool=1)
    sandbox.run(HELLO)
    label = sandbox._reached().opening.label
    del sandbox
    gc.collect()
    assert engine.containers.list(all=True, filters={"label": label}) == []


async def test_arun_when_cancelled_then_the_program_ends(
    docker_image: str, limits: Limits, engine: DockerClient
) -> None:
    """Whoever gives up on a program need not care for its container."""
    async with DockerSandbox(docker_image, limits=limits, pool=0) as sandbox:
        await sandbox.arun(HELLO)
        settled(sandbox)
        # Without end: where cancelling did not end it, nothing would.
        running = asyncio.create_task(sandbox.arun(ENDLESS))
        await asyncio.to_thread(wait_until_running, engine, sandbox)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        settled(sandbox)
        assert containers_of(engine, sandbox) == []


_FORKER = """
import os, sys, threading
from langgraft._core.errors import SandboxUnavailableError
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import Job, PythonProgram
job = Job(PythonProgram("import time\\ntime.sleep(1.5)\\nprint('whole')"))
with DockerSandbox(sys.argv[1], pool=1, retries=0) as sandbox:
    kernel = sandbox.kernel()
    running = threading.Thread(target=lambda: print(sandbox.run(job).stdout, end=""))
    running.start()
    child = os.fork()
    if child == 0:
        try:
            sandbox.run(job)
        except SandboxUnavailableError as error:
            print(error, flush=True)
        sandbox.close()
        os._exit(0)
    os.waitpid(child, 0)
    running.join()
    print(kernel.execute("6 * 7").stdout, end="")
"""


def test_fork_when_it_uses_and_closes_a_sandbox_then_its_parent_does_not_notice(
    docker_image: str,
) -> None:
    """Two processes never talk to one container."""
    with started_code(_FORKER, docker_image) as process:
        done = process.ended()
    told, *printed = done.stdout.splitlines()
    assert "make one in each process" in told
    assert printed == ["whole", "42"]


_CLIENT = """
import sys, threading, time
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import Job, PythonProgram
sandbox = DockerSandbox(sys.argv[1], pool=1)
program = "import os, time\\nif os.fork() == 0: os.setsid()\\ntime.sleep(600)"
threading.Thread(target=sandbox.run, args=(Job(PythonProgram(program)),), daemon=True).start()
while sandbox._engine is None or not sandbox._engine.pool.wait_until_full(60): time.sleep(0.02)
print(sandbox._engine.opening.label, flush=True)
time.sleep(600)
"""


def test_orphans_when_a_client_is_killed_then_all_ends_and_the_next_sandbox_clears_up(
    docker_image: str, limits: Limits, engine: DockerClient, sandbox: DockerSandbox
) -> None:
    """A killed client's programs end at once; its containers go when the next sandbox opens."""
    with started_code(_CLIENT, docker_image) as client:
        filters: dict[str, str | list[str] | bool] = {"label": client.stdout.readline().strip()}
        sandbox.run(HELLO)
        while len(engine.containers.list(filters=filters)) < 2:
            assert client.poll() is None, client.ended()
            time.sleep(0.02)
        own = {each.id for each in engine.containers.list(filters=filters)}
        assert not own & {*remove_orphans(engine)}
        client.kill()
    while engine.containers.list(filters=filters):
        time.sleep(0.05)
    # Until the next sandbox opens they are there, ended; with tests beside this one it may be open already.
    with DockerSandbox(docker_image, limits=limits, pool=0) as other:
        other.run(HELLO)
        while engine.containers.list(all=True, filters=filters):  # or somebody else removes them
            time.sleep(0.05)
    assert sandbox.run(HELLO).ok


def test_run_when_the_engine_is_away_for_a_moment_then_it_is_waited_for(
    docker_image: str, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that is being restarted costs time, and none of a program's tries."""
    with DockerSandbox(docker_image, limits=limits, pool=0, retries=0) as sandbox:
        sandbox.run(HELLO)
        api = sandbox._reached().client.api
        create, ping = api.create_container_from_config, api.ping
        refusals = [requests.ConnectionError("refused") for _ in range(3)]

        def refuse_once(config: object) -> object:
            if refusals:
                raise refusals.pop()
            return create(config)  # type: ignore[no-untyped-call]

        def refuse_twice() -> bool:
            if refusals:
                raise refusals.pop()
            return ping()

        monkeypatch.setattr(api, "create_container_from_config", refuse_once)
        monkeypatch.setattr(api, "ping", refuse_twice)
        assert sandbox.run(HELLO).stdout == "hello\n"
        assert not refusals


def test_run_when_the_engine_does_not_come_back_then_that_is_said(
    docker_image: str, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting has an end, and no program is blamed."""

    def refuse(*_: object) -> None:
        raise requests.ConnectionError("refused")

    with DockerSandbox(docker_image, limits=limits, pool=0, retries=0) as sandbox:
        sandbox.run(HELLO)
        engine = sandbox._reached()
        engine.opening._patience = 0.1
        with monkeypatch.context() as patch:
            patch.setattr(engine.client.api, "create_container_from_config", refuse)
            patch.setattr(engine.client.api, "ping", refuse)
            with pytest.raises(SandboxFailureError, match=r"has not answered for 0\.1 s"):
                sandbox.run(HELLO)
        assert sandbox.run(HELLO).ok


HOG = "b = []\nwhile True: b.append(bytearray(1 << 20))"


def test_post_mortem_when_memory_took_the_supervisor_then_the_program_is_to_blame(
    sandbox: DockerSandbox,
) -> None:
    """Many small processes can take the first one along: still the program's doing."""
    place = started(sandbox, HOG)
    assert place.post_mortem().oom
    place.destroy()


def test_post_mortem_when_memory_took_a_child_long_before_then_it_is_not_to_blame(
    sandbox: DockerSandbox,
) -> None:
    """A program that outlived its child is not blamed for the end of its container."""
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.run([sys.executable, '-c', {HOG!r}])\n"
        "time.sleep(6)\n"
        "raise SystemExit(137)"
    )
    place = started(sandbox, code)
    death = place.post_mortem()
    assert (death.oom, death.reason) == (False, "exit code 137")
    place.destroy()


def test_post_mortem_when_the_engine_breaks_off_then_it_is_no_answer(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that goes away while it is asked why does not make that anybody's error."""

    def break_off(**_: object) -> None:
        raise ProtocolError("connection broken")

    place = started(sandbox, HOG)
    monkeypatch.setattr(sandbox._reached().client.api, "events", break_off)
    death = place.post_mortem()
    assert (death.oom, death.reason) == (False, "the engine does not answer (connection broken)")
    place.destroy()


def started(sandbox: DockerSandbox, code: str) -> Place:
    """Run code in the supervisor's place, until it ends."""
    engine = sandbox._reached()
    api = engine.client.api
    config = engine.opening._configure(["python3", "-c", code])
    created: dict[str, str] = api.create_container_from_config(config)  # type: ignore[no-untyped-call]
    place = PlaceInContainer.start(api, created["Id"], engine.removals)
    while place.alive():
        time.sleep(0.02)
    return place
