"""Without Docker everything else works, and what needs it says how to get it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from counting_sandbox import CountingSandbox

from langgraft._core.errors import SandboxUnavailableError
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import Job, PythonProgram

JOB = Job(PythonProgram("print('hello')"))


@pytest.fixture
def without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Point Docker's clients at a port where nothing listens.

    No UNIX socket: docker-py leaves one that could not connect to the garbage collector, which
    warns of it in whatever test comes next.
    """
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process whose Docker socket is dead."""
    return {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}


def run(*arguments: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run Python to its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def assert_helps(message: str) -> None:
    """Check that a message says in one line what is missing and how to get it."""
    assert message.count("\n") == 0
    assert "no Docker engine answers" in message
    assert "install and start one, or set DOCKER_HOST" in message
    assert "langgraft sandbox build" in message


@pytest.mark.usefixtures("without_engine")
def test_docker_sandbox_when_there_is_no_engine_then_its_first_use_says_how_to_get_one() -> None:
    """It can be made, so that settings are checked anywhere, and says it at whatever comes first."""
    with DockerSandbox() as sandbox:
        for use in (lambda: sandbox.run(JOB), sandbox.kernel, lambda: sandbox.digest):
            with pytest.raises(SandboxUnavailableError) as refused:
                use()
            assert_helps(str(refused.value))


@pytest.mark.usefixtures("without_engine")
async def test_docker_sandbox_when_there_is_no_engine_then_async_uses_say_the_same() -> None:
    """The asynchronous uses are no other."""
    async with DockerSandbox() as sandbox:
        with pytest.raises(SandboxUnavailableError) as refused:
            await sandbox.arun(JOB)
        assert_helps(str(refused.value))
        with pytest.raises(SandboxUnavailableError) as refused:
            await sandbox.akernel()
        assert_helps(str(refused.value))


@pytest.mark.usefixtures("without_engine")
def test_cached_sandbox_when_there_is_no_engine_then_passes_on_what_docker_says(
    tmp_path: Path,
) -> None:
    """A cache hides nothing, and keeps nothing of it."""
    path = tmp_path / "executions.sqlite"
    with CachedSandbox(DockerSandbox(), path) as cached:
        with pytest.raises(SandboxUnavailableError) as refused:
            cached.run(JOB)
        assert_helps(str(refused.value))
        assert len(cached.cache) == 0
    with CachedSandbox(CountingSandbox(), path) as cached:
        assert cached.run(JOB).ok


@pytest.mark.parametrize("command", ["check", "build", "clean"])
def test_command_when_there_is_no_engine_then_says_how_to_get_one_in_a_line(
    command: str, environment: dict[str, str]
) -> None:
    """`langgraft sandbox …` ends with 2 and a line, without a traceback."""
    ended = run("-m", "langgraft", "sandbox", command, environment=environment)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    (line,) = [line for line in ended.stderr.splitlines() if "Docker engine" in line]
    assert_helps(line)


def test_subprocess_sandbox_when_there_is_no_engine_then_runs_programs_and_kernels(
    environment: dict[str, str],
) -> None:
    """What isolates nothing needs nothing, and Docker's client is not even loaded."""
    ended = run("-c", _RUN, environment=environment)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"ran": "hello\n", "cell": "2\n", "docker": False}


_RUN = """
import json, sys
from langgraft.environments.sandboxes import Job, PythonProgram, SubprocessSandbox
with SubprocessSandbox() as sandbox:
    ran = sandbox.run(Job(PythonProgram("print('hello')")))
    kernel = sandbox.kernel()
    cell = kernel.execute("1 + 1")
    kernel.close()
told = {"ran": ran.stdout, "cell": cell.stdout, "docker": "docker" in sys.modules}
print(json.dumps(told))
"""


def test_rooms_when_imported_then_load_no_docker(environment: dict[str, str]) -> None:
    """Naming what there is costs nobody Docker's client, and asks no engine."""
    ended = run("-c", _IMPORT, environment=environment)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "[]\n"


_IMPORT = """
import sys
import langgraft
import langgraft.environments.competitions.attempts
import langgraft.environments.sandboxes.cached
import langgraft.environments.sandboxes.result_text
from langgraft.environments.sandboxes.docker import DockerSandbox
DockerSandbox()
print([name for name in ("docker", "requests", "pandas") if name in sys.modules])
"""
