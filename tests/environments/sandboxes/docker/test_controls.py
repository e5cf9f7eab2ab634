"""What a program finds in its container, and what stops it there."""

import json
from pathlib import Path

import docker
import pytest
from sandbox_cases import given_time

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.docker.controls import Wish, container_config
from langgraft.environments.sandboxes.sandbox import (
    MIB,
    Command,
    ExecutionResult,
    Job,
    Limits,
    PythonProgram,
)

INSIDE = """
import json, os, socket, pathlib
status = dict(l.split(":", 1) for l in pathlib.Path("/proc/self/status").read_text().splitlines())
def writes(path):
    try:
        open(path + "/probe", "w").close()
        return True
    except OSError:
        return False
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "rights": [status[n].strip() for n in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")],
    "interfaces": [name for _, name in socket.if_nameindex()],
    "host": socket.gethostname(),
    "folder": os.getcwd(),
    "written": [p for p in ("/", "/usr", "/etc", "/dev", "/sys", "/tmp", "/dev/shm", ".") if writes(p)],
    "threads": os.environ["OMP_NUM_THREADS"],
    "docker": os.path.exists("/var/run/docker.sock"),
}))
"""


def run(sandbox: DockerSandbox, code: str, **options: object) -> ExecutionResult:
    """Run a program."""
    return sandbox.run(Job(PythonProgram(code), **options))  # type: ignore[arg-type]


def test_controls_when_a_program_looks_around_then_they_all_hold(sandbox: DockerSandbox) -> None:
    """Without rights, network or a place to write to but three, under a name that never changes."""
    found = json.loads(run(sandbox, INSIDE).stdout)
    assert found == {
        "user": [10001, 10001],
        "rights": ["0000000000000000", "0000000000000000", "1", "2"],
        "interfaces": ["lo"],
        "host": "sandbox",
        "folder": "/workspace",
        "written": ["/tmp", "/dev/shm", "."],
        "threads": "1",
        "docker": False,
    }


def test_memory_when_a_program_takes_too_much_then_it_ends_out_of_memory(
    sandbox: DockerSandbox,
) -> None:
    """What the OOM killer ends is the program's doing, and is not tried again."""
    result = run(sandbox, "b = []\nwhile True: b.append(bytearray(1 << 20))")
    assert result.oom
    assert not result.ok
    assert result.stopped is None


def test_memory_when_a_child_takes_too_much_then_that_is_told_of_a_program_that_went_on(
    sandbox: DockerSandbox,
) -> None:
    """A worker's death by the OOM killer is seen where its parent lives on."""
    code = (
        "import subprocess, sys\n"
        "hog = 'b = []\\nwhile True: b.append(bytearray(1 << 20))'\n"
        "print(subprocess.run([sys.executable, '-c', hog]).returncode)"
    )
    result = run(sandbox, code)
    assert (result.stdout, result.exit_code, result.oom) == ("-9\n", 0, True)


def test_disk_when_the_workspace_is_full_then_the_error_says_so(sandbox: DockerSandbox) -> None:
    """Writing beyond the workspace fails in the program, which is told why."""
    code = (
        "for i in range(100):\n"
        "    with open(f'f{i}', 'wb') as file:\n"
        "        file.write(bytes(4 << 20))"
    )
    result = run(sandbox, code)
    assert result.error is not None
    assert result.error.type == "OSError"
    assert "No space left on device" in result.error.message


def test_disk_when_one_file_is_too_large_then_it_is_cut_off(sandbox: DockerSandbox) -> None:
    """No file grows beyond its limit."""
    result = run(
        sandbox,
        "import os\ntry:\n    open('f', 'wb').write(bytes(40 << 20))\n"
        "finally:\n    print(os.path.getsize('f'), flush=True)",
    )
    assert not result.ok
    assert int(result.stdout or 0) <= 32 * MIB


def test_timeout_when_daemons_ignore_signals_then_the_whole_tree_is_gone(
    sandbox: DockerSandbox,
) -> None:
    """Nothing that a program starts outlives its time, and what it wrote is still taken out."""
    code = (
        "import os, signal, time\n"
        "for number in range(1, 32):\n"
        "    if number not in (9, 19):\n"
        "        signal.signal(number, signal.SIG_IGN)\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(3600)\n"
        "        os._exit(0)\n"
        "open('part', 'w').write('so far')\n"
        "print('ready', flush=True)\n"
        "time.sleep(3600)"
    )
    result = given_time(lambda seconds: run(sandbox, code, seconds=seconds, collect=("part",)))
    assert result.timed_out
    assert result.stdout == "ready\n"
    assert result.files == {"part": b"so far"}


def test_processes_when_a_program_forks_without_end_then_it_is_contained(
    sandbox: DockerSandbox,
) -> None:
    """A fork bomb ends with its time, and the next program runs."""
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert run(sandbox, code, seconds=1.5).timed_out
    assert run(sandbox, "print('next')").stdout == "next\n"


def test_output_when_a_program_prints_without_end_then_it_is_stopped(
    sandbox: DockerSandbox,
) -> None:
    """A flood is cut, and told as one."""
    result = run(sandbox, "while True: print('x' * 10_000)")
    assert result.stopped == "output"
    assert len(result.stdout) < 10_000


def test_command_when_the_image_has_a_shell_then_it_runs_there(sandbox: DockerSandbox) -> None:
    """A line for the shell runs in the workspace."""
    assert sandbox.run(Job(Command("pwd && id -u"))).stdout == "/workspace\n10001\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that programs may read."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "train.csv").write_text("id,y\n1,2\n")
    # What keeps programs from writing is the mount, not the modes.
    folder.chmod(0o777)
    (folder / "train.csv").chmod(0o666)
    (folder / "way_out").symlink_to("/etc/shadow")
    return folder


def test_inputs_when_mounted_then_they_are_read_and_never_written(
    docker_image: str, limits: Limits, folder: Path
) -> None:
    """A folder of this machine is seen as it is, and comes to no harm."""
    code = (
        "print(open('input/train.csv').read())\n"
        "for path in ('input/train.csv', 'input/new'):\n"
        "    try: open(path, 'a')\n"
        "    except OSError as error: print(error.strerror)\n"
        "open('mine', 'w')"
    )
    with DockerSandbox(docker_image, limits=limits, inputs={"input": folder}, pool=0) as sandbox:
        before = sandbox.digest
        result = run(sandbox, code, collect=("**",))
    assert result.stdout == "id,y\n1,2\n\nRead-only file system\nRead-only file system\n"
    assert result.ok
    (folder / "train.csv").write_text("id,y\n1,3\n")
    with DockerSandbox(docker_image, limits=limits, inputs={"input": folder}, pool=0) as sandbox:
        assert sandbox.digest != before
    with DockerSandbox(docker_image, limits=limits, pool=0) as sandbox:
        assert sandbox.digest != before


def test_inputs_when_the_engine_is_elsewhere_then_files_are_named_as_the_way(
    docker_image: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of this machine cannot be mounted on another."""
    monkeypatch.setattr("langgraft.environments.sandboxes.docker.sandbox.is_remote", lambda _: True)
    with (
        DockerSandbox(docker_image, inputs={"input": folder}) as sandbox,
        pytest.raises(InputError, match=r"Job\.files"),
    ):
        run(sandbox, "pass")


def test_filter_when_an_engine_leaves_it_off_then_it_is_asked_for(limits: Limits) -> None:
    """What an engine does not do by itself is part of what it is asked for."""
    api = docker.APIClient(base_url="http://127.0.0.1:1", version="1.44")
    asked = [
        container_config(
            api, Wish("image", "id", limits, cpus=1, filtered=filtered), command=[], labels={}
        )["HostConfig"]["SecurityOpt"]
        for filtered in (True, False)
    ]
    assert asked == [["no-new-privileges"], ["no-new-privileges", "seccomp=builtin"]]
    api.close()


def test_processors_when_the_engine_has_fewer_then_no_more_are_asked_for() -> None:
    """An engine refuses a container that asks for more than it has."""
    api = docker.APIClient(base_url="http://127.0.0.1:1", version="1.44")
    asked = [
        container_config(api, Wish("image", "id", Limits(cpus=2), cpus), command=[], labels={})
        for cpus in (1, 8)
    ]
    assert [each["HostConfig"]["NanoCpus"] for each in asked] == [10**9, 2 * 10**9]
    api.close()
